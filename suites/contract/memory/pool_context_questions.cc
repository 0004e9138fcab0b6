// SPDX-License-Identifier: MIT
// Stream-ordered memory and contexts: it belongs to a pool, so what is left when the context goes in which it was taken.
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::pool_context_questions {
namespace {

struct Taking {
  explicit Taking(Asker& asker) : a(asker) { a.Prepare(a.d.Init(0)); }
  void Retain() {
    CUcontext c = nullptr;
    a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
    a.Prepare(a.d.CtxSetCurrent(c));
  }
  void Create() { a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0)); }
  void Take() {
    a.Prepare(a.d.MemAllocAsync(&p, 4096, nullptr));
    a.Prepare(a.d.StreamSynchronize(nullptr));
  }
  void MakePool() {
    CUmemPoolProps properties = PoolOfDevice();
    a.Prepare(a.d.MemPoolCreate(&pool, &properties));
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pool, nullptr));
    a.Prepare(a.d.StreamSynchronize(nullptr));
  }
  void Ask() {
    unsigned long long id = 0;
    a(a.d.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
  }
  void Used(CUmemoryPool of) {
    cuuint64_t used = 0;
    a(a.d.MemPoolGetAttribute(of, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), used);
  }

  Asker& a;
  CUcontext other = nullptr;
  CUmemoryPool pool = nullptr;
  CUdeviceptr p = 0;
};

}  // namespace

void List(Questions& ask) {
  ask.Fresh("pool_context.destroyed", "SUCCESS 4096 SUCCESS SUCCESS 4096 SUCCESS SUCCESS 7 SUCCESS x3 0", [](Asker& a, Taking& t) {
    CUmemoryPool standard = nullptr;
    unsigned char value = 0;
    t.Retain();
    t.Create();
    t.Take();
    a.Prepare(a.d.DeviceGetDefaultMemPool(&standard, 0));
    t.Used(standard);
    a(a.d.CtxDestroy(t.other));
    t.Used(standard);
    a(a.d.MemsetD8(t.p, 7, 4096));
    a(a.d.MemcpyDtoH(&value, t.p, 1), value);
    a(a.d.MemFreeAsync(t.p, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    t.Used(standard);
  });
  ask.Fresh("pool_context.only_context_destroyed", "SUCCESS x3", [](Asker& a, Taking& t) {
    t.Create();
    t.Take();
    a(a.d.CtxDestroy(t.other));
    t.Create();
    t.Ask();
    a(a.d.MemFree(t.p));
  });
  ask.Risky("pool_context.primary_released", "SUCCESS x3", [](Asker& a, Taking& t) {
    t.Retain();
    t.Take();
    a(a.d.DevicePrimaryCtxRelease(0));
    t.Retain();
    t.Ask();
    a(a.d.MemFree(t.p));
  });
  ask.Risky("pool_context.primary_released_beside_another", "SUCCESS x3", [](Asker& a, Taking& t) {
    t.Retain();
    t.Take();
    t.Create();
    a(a.d.DevicePrimaryCtxRelease(0));
    t.Ask();
    a(a.d.MemFree(t.p));
  });
  ask.Risky("pool_context.primary_reset", "SUCCESS x3", [](Asker& a, Taking& t) {
    t.Retain();
    t.Take();
    a(a.d.DevicePrimaryCtxReset(0));
    t.Retain();
    t.Ask();
    a(a.d.MemFree(t.p));
  });
  ask.Risky("pool_context.of_a_pool", "SUCCESS x3 4096 SUCCESS SUCCESS", [](Asker& a, Taking& t) {
    t.Retain();
    t.Create();
    t.MakePool();
    a(a.d.CtxDestroy(t.other));
    t.Ask();
    t.Used(t.pool);
    a(a.d.MemFree(t.p));
    a(a.d.MemPoolDestroy(t.pool));
  });
  ask.Risky("pool_context.of_a_pool_primary_released", "SUCCESS x3 4096 SUCCESS x3", [](Asker& a, Taking& t) {
    t.Retain();
    t.MakePool();
    a(a.d.DevicePrimaryCtxRelease(0));
    t.Retain();
    t.Ask();
    t.Used(t.pool);
    a(a.d.MemAllocFromPoolAsync(kIgnored, 4096, t.pool, nullptr));
    a(a.d.MemFree(t.p));
    a(a.d.MemPoolDestroy(t.pool));
  });
  ask.Risky("pool_context.graph_primary_released", "SUCCESS x5", [](Asker& a, Taking& t) {
    t.Retain();
    Sketch s(a);
    (void)s.Alloc(4096, &t.p);
    s.Instantiate();
    a(a.d.GraphLaunch(s.x, nullptr));
    a(a.d.StreamSynchronize(nullptr));
    a(a.d.DevicePrimaryCtxRelease(0));
    t.Retain();
    t.Ask();
    a(a.d.MemFree(t.p));
  });
  ask.Risky("pool_context.graph_launched_after_release", "SUCCESS SUCCESS", [](Asker& a, Taking& t) {
    t.Retain();
    Sketch s(a);
    (void)s.Alloc(4096, &t.p);
    s.Instantiate();
    a(a.d.DevicePrimaryCtxRelease(0));
    t.Retain();
    a(a.d.GraphLaunch(s.x, nullptr));
  });
  ask.Risky("pool_context.green", "SUCCESS x3", [](Asker& a, Taking& t) {
    CUdevResource all{}, part{};
    unsigned groups = 1;
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    CUstream s = nullptr;
    t.Create();
    a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    a.Prepare(a.d.DevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16));
    a.Prepare(a.d.DevResourceGenerateDesc(&description, &part, 1));
    a.Prepare(a.d.GreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    a.Prepare(a.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
    a.Prepare(a.d.MemAllocAsync(&t.p, 4096, s));
    a.Prepare(a.d.StreamSynchronize(s));
    a(a.d.GreenCtxDestroy(green));
    t.Ask();
    a(a.d.MemFree(t.p));
  });
  ask.Risky("pool_context.freed_with_nothing_current", "SUCCESS SUCCESS INVALID_VALUE", [](Asker& a, Taking& t) {
    t.Retain();
    t.Take();
    a.CtxPopCurrent();
    t.Ask();
    a(a.d.MemFree(t.p));
    t.Ask();
  });
  ask.Risky("pool_context.freed_with_no_context", "SUCCESS x3", [](Asker& a, Taking& t) {
    t.Create();
    t.Take();
    a(a.d.CtxDestroy(t.other));
    t.Ask();
    a(a.d.MemFree(t.p));
  });
  ask.Risky("pool_context.written_from_another", "SUCCESS SUCCESS 9 SUCCESS 0", [](Asker& a, Taking& t) {
    unsigned char value = 0;
    int ordinal = -1;
    t.Retain();
    t.Take();
    t.Create();
    a(a.d.MemsetD8(t.p, 9, 4096));
    a(a.d.MemcpyDtoH(&value, t.p, 1), value);
    a(a.d.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, t.p), ordinal);
  });
  // Beside it, what dies with its context.
  ask.Risky("pool_context.others_die", "SUCCESS INVALID_VALUE x4", [](Asker& a) {
    static unsigned char page[8192];
    Taking t(a);
    void* pinned = nullptr;
    t.Retain();
    t.Create();
    const CUdeviceptr plain = a.MemAlloc(4096), managed = a.MemAllocManaged(4096);
    a.Prepare(a.d.MemHostAlloc(&pinned, 4096, 0));
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.CtxDestroy(t.other));
    for (const CUdeviceptr p : {plain, managed, reinterpret_cast<CUdeviceptr>(pinned), reinterpret_cast<CUdeviceptr>(&page[0])}) {
      t.p = p;
      t.Ask();
    }
  });
  ask.Fresh("pool_context.arrays_die", "SUCCESS 1 1", [](Asker& a, Taking& t) {
    CUDA_ARRAY_DESCRIPTOR shape{8192, 8192, CU_AD_FORMAT_FLOAT, 1};
    std::size_t before = 0, with = 0, after = 0, total = 0;
    t.Retain();
    a.Prepare(a.d.MemGetInfo(&before, &total));
    t.Create();
    a.ArrayCreate(shape);
    a.Prepare(a.d.MemGetInfo(&with, &total));
    a(a.d.CtxDestroy(t.other));
    a.Prepare(a.d.MemGetInfo(&after, &total));
    constexpr std::size_t kBytes = std::size_t{8192} * 8192 * 4;
    a.Value(before - with >= kBytes);
    a.Value(after - with >= kBytes);
  });
}

}  // namespace cuaudit::contract::pool_context_questions
