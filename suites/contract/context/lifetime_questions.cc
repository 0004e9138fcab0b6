// SPDX-License-Identifier: MIT
// How contexts end: what outlives them, and what is left of one that an error has lost.

#include "suites/contract/question.h"
#include "suites/contract/stream/stage.h"

// What outlives its context, and what outlives the references to the primary context.
namespace cuaudit::contract::lifetime_questions {
namespace {

// The primary context has been retained once and set current, and the question releases it, or nobody does.
struct Retained : Initialised {
  explicit Retained(const Asker& asker) : Initialised(asker), c(DevicePrimaryCtxRetain()) { Prepare(d.CtxSetCurrent(c)); }
  const CUcontext c;
};

// Beside the primary context, another one is current.
struct Other : Ready {
  explicit Other(const Asker& asker) : Ready(asker), c(CtxCreate()) {}
  const CUcontext c;
};

// A stream, an event and memory of the current context.
struct Furniture {
  explicit Furniture(Asker& a) {
    a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    a.Prepare(a.d.EventCreate(&e, 0));
    a.Prepare(a.d.MemAlloc(&p, 4096));
  }
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUdeviceptr p = 0;
};

constexpr std::size_t kMega = std::size_t{1} << 20;
constexpr std::size_t kPeta = std::size_t{1} << 50;

Busy busy;

}  // namespace

void List(Questions& ask) {
  ask.Fresh("context.pop_empty", "INVALID_CONTEXT", [](Initialised& a) { a(a.d.CtxPopCurrent(kIgnored)); });
  ask.Fresh("context.destroy_elsewhere", "SUCCESS SUCCESS", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a(a.d.CtxPopCurrent(kIgnored));
    a(a.d.CtxDestroy(c));
  });
  ask.Risky("context.destroy_below_top", "SUCCESS SUCCESS CONTEXT_IS_DESTROYED", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    const CUcontext top = a.CtxCreate();
    a(a.d.CtxDestroy(c));
    a(a.d.CtxDestroy(top));
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Risky("context.destroyed_stream", "crash", [](Other& a) {
    const CUstream s = a.StreamCreate(0);
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("context.destroyed_event", "CONTEXT_IS_DESTROYED", [](Other& a) {
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.EventDestroy(e));
  });
  ask.Risky("context.destroyed_module", "INVALID_HANDLE", [](Other& a) {
    const CUmodule m = a.ModuleLoadData();
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.ModuleUnload(m));
  });
  ask.Risky("context.destroyed_pinned", "INVALID_VALUE", [](Other& a) {
    void* const h = a.MemAllocHost(64);
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.MemFreeHost(h));
  });
  ask.Fresh("primary.release_unretained", "INVALID_CONTEXT", [](Initialised& a) { a(a.d.DevicePrimaryCtxRelease(0)); });
  ask.Risky("primary.push_unretained", "SUCCESS", [](Retained& a) {
    a.CtxPopCurrent();
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.CtxPushCurrent(a.c));
  });
  ask.Risky("primary.set_unretained", "SUCCESS", [](Retained& a) {
    a.CtxPopCurrent();
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.CtxSetCurrent(a.c));
  });
  ask.Fresh("primary.held_elsewhere", "SUCCESS x4", [](Retained& a) {
    a.DevicePrimaryCtxRetain();
    const CUstream s = a.StreamCreate(0);
    const CUdeviceptr p = a.MemAlloc(64);
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.StreamDestroy(s));
    a(a.d.MemFree(p));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Fresh("primary.same_handle_again", "1", [](Retained& a) {
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    const CUcontext again = a.DevicePrimaryCtxRetain();
    a.Value(a.c == again);
  });
  ask.Fresh("primary.current_again", "SUCCESS", [](Retained& a) {
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.DevicePrimaryCtxRetain();
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Risky("primary.memory_of_before", "INVALID_VALUE", [](Retained& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(a.c));
    a(a.d.MemFree(p));
  });
  ask.Risky("primary.stream_of_before", "INVALID_CONTEXT", [](Retained& a) {
    const CUstream s = a.StreamCreate(0);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(a.c));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("primary.stream_after_release", "crash", [](Retained& a) {
    const CUstream s = a.StreamCreate(0);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("primary.memory_after_release", "CONTEXT_IS_DESTROYED", [](Retained& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.MemFree(p));
  });
  ask.Risky("primary.reset_keeps_references", "SUCCESS 0 SUCCESS INVALID_CONTEXT", [](Retained& a) {
    unsigned flags = 0;
    int active = -1;
    a(a.d.DevicePrimaryCtxReset(0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Risky("primary.use_after_reset", "CONTEXT_IS_DESTROYED", [](Retained& a) {
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Fresh("primary.set_flags_when_active", "SUCCESS 4", [](Retained& a) {
    unsigned flags = 0;
    int active = 0;
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), flags);
  });
  ask.Fresh("context.limits_of_graphics", "SUCCESS", [](Retained& a) { a(a.d.CtxGetLimit(kIgnored, CU_LIMIT_SHMEM_SIZE)); });

  ask.Risky("reset.memory_is_gone", "SUCCESS CONTEXT_IS_DESTROYED CONTEXT_IS_DESTROYED INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    void* const h = a.MemAllocHost(4096);
    a(a.d.DevicePrimaryCtxReset(0));
    a(a.d.MemFree(p));
    a(a.d.CtxSynchronize(nullptr));
    a.CtxPopCurrent();
    a(a.d.MemFree(p));
    a(a.d.MemFreeHost(h));
  });
  ask.Risky("reset.module_is_gone", "INVALID_HANDLE", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a.CtxPopCurrent();
    a(a.d.ModuleUnload(m));
  });
  ask.Risky("reset.event_is_gone", "CONTEXT_IS_DESTROYED", [](Ready& a) {
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a.CtxPopCurrent();
    a(a.d.EventDestroy(e));
  });
  ask.Risky("reset.retain_again", "SUCCESS 1 SUCCESS x3", [](Ready& a) {
    CUcontext again = nullptr;
    CUdeviceptr p = 0;
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a(a.d.DevicePrimaryCtxRetain(&again, 0));
    a.Value(again == a.context);
    a(a.d.MemAlloc(&p, 4096));
    a(a.d.MemFree(p));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Risky("reset.counts", "SUCCESS 1 SUCCESS x3", [](Asker& a) {
    unsigned flags = 0;
    int active = -1;
    a.Prepare(a.d.Init(0));
    CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a(a.d.DevicePrimaryCtxRetain(&c, 0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Risky("reset.flags", "4 SUCCESS 0", [](Asker& a) {
    unsigned flags = 0;
    int active = 0;
    a.Prepare(a.d.Init(0));
    a.Prepare(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), flags);
    a(a.d.DevicePrimaryCtxReset(0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), flags);
  });
  ask.Risky("reset.spares_other_contexts", "SUCCESS x5", [](Ready& a) {
    const CUcontext c = a.CtxCreate();
    const CUdeviceptr p = a.MemAlloc(4096);
    const CUstream s = a.StreamCreate(0);
    a(a.d.DevicePrimaryCtxReset(0));
    a(a.d.StreamSynchronize(s));
    a(a.d.MemFree(p));
    a(a.d.StreamDestroy(s));
    a(a.d.CtxDestroy(c));
  });
  ask.Risky("reset.spares_graphs", "SUCCESS SUCCESS", [](Ready& a) {
    const CUgraph g = a.GraphCreate();
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a(a.d.GraphGetNodes(g, nullptr, kIgnored));
    a(a.d.GraphDestroy(g));
  });
  ask.Risky("reset.pool_is_gone", "SUCCESS", [](Ready& a) {
    CUmemPoolProps wish = PoolOfDevice();
    const CUmemoryPool pool = a.MemPoolCreate(wish);
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Risky("reset.while_busy", "SUCCESS 1", [](Ready& a, const Furniture& f) {
    a.Prepare(a.d.LaunchHostFunc(f.s, BeSlow, busy.Begin()));
    a(a.d.DevicePrimaryCtxReset(0));
    a.Value(busy.done.load());
  });
  ask.Risky("reset.while_capturing", "SUCCESS", [](Ready& a, const Furniture& f) {
    a.Prepare(a.d.StreamBeginCapture(f.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.DevicePrimaryCtxReset(0));
  });
  ask.Risky("context.destroy_while_busy", "SUCCESS 1", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    const Furniture f(a);
    a.Prepare(a.d.LaunchHostFunc(f.s, BeSlow, busy.Begin()));
    a(a.d.CtxDestroy(c));
    a.Value(busy.done.load());
  });
  ask.Risky("context.release_while_busy", "SUCCESS 1", [](Initialised& a) {
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(c));
    const Furniture f(a);
    a.Prepare(a.d.LaunchHostFunc(f.s, BeSlow, busy.Begin()));
    a(a.d.DevicePrimaryCtxRelease(0));
    a.Value(busy.done.load());
  });
  ask.Risky("context.destroy_while_capturing", "SUCCESS", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    const Furniture f(a);
    a.Prepare(a.d.StreamBeginCapture(f.s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.CtxDestroy(c));
  });
  ask.Fresh("context.reset_persisting_l2", "INVALID_CONTEXT SUCCESS", [](Initialised& a) {
    a(a.d.CtxResetPersistingL2Cache());
    const Ready ready(a);
    a(a.d.CtxResetPersistingL2Cache());
  });
  ask.Fresh("refusal.leaves_no_trace", "INVALID_VALUE INVALID_VALUE SUCCESS x3", [](Ready& a, const Furniture& f) {
    char byte = 0;
    a.Prepare(a.d.MemFree(f.p));
    a(a.d.MemcpyHtoDAsync(f.p, &byte, 1, f.s));
    a(a.d.MemsetD8Async(f.p, 0, 16, f.s));
    a(a.d.StreamQuery(f.s));
    a(a.d.StreamSynchronize(f.s));
    a(a.d.CtxSynchronize(nullptr));
  });
  ask.Fresh("limit.huge", "OUT_OF_MEMORY x3 SUCCESS SUCCESS", [](Ready& a) {
    CUdeviceptr p = 0;
    a(a.d.MemAlloc(&p, kPeta));
    a(a.d.MemAlloc(&p, ~std::size_t{0}));
    a(a.d.MemAlloc(&p, ~std::size_t{0} / 2));
    a(a.d.MemAlloc(&p, 4096));
    a(a.d.MemFree(p));
  });
  ask.Fresh("limit.huge_pinned", "OUT_OF_MEMORY OUT_OF_MEMORY SUCCESS SUCCESS", [](Ready& a) {
    void* h = nullptr;
    a(a.d.MemAllocHost(&h, kPeta));
    a(a.d.MemHostAlloc(&h, ~std::size_t{0}, 0));
    a(a.d.MemAllocHost(&h, 4096));
    a(a.d.MemFreeHost(h));
  });
  ask.Fresh("limit.huge_pitch", "OUT_OF_MEMORY INVALID_VALUE", [](Ready& a) {
    CUdeviceptr p = 0;
    std::size_t pitch = 0;
    a(a.d.MemAllocPitch(&p, &pitch, std::size_t{1} << 30, std::size_t{1} << 20, 4));
    a(a.d.MemAllocPitch(&p, &pitch, std::size_t{1} << 40, std::size_t{1} << 40, 4));
  });
  ask.Fresh("limit.huge_async", "OUT_OF_MEMORY OUT_OF_MEMORY SUCCESS SUCCESS", [](Ready& a, const Furniture& f) {
    CUdeviceptr p = 0;
    a(a.d.MemAllocAsync(&p, kPeta, f.s));
    a(a.d.MemAllocAsync(&p, ~std::size_t{0}, f.s));
    a(a.d.StreamSynchronize(f.s));
    a(a.d.MemAllocAsync(&p, 4096, f.s));
  });
  ask.Fresh("limit.pool_maximum", "SUCCESS SUCCESS OUT_OF_MEMORY SUCCESS SUCCESS", [](Ready& a, const Furniture& f) {
    CUmemPoolProps wish = PoolOfDevice();
    wish.maxSize = 32 * kMega;
    CUmemoryPool pool = nullptr;
    CUdeviceptr p = 0;
    a(a.d.MemPoolCreate(&pool, &wish));
    a(a.d.MemAllocFromPoolAsync(&p, 4096, pool, f.s));
    a(a.d.MemAllocFromPoolAsync(kIgnored, 64 * kMega, pool, f.s));
    a(a.d.MemFreeAsync(p, f.s));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Fresh("limit.huge_virtual", "OUT_OF_MEMORY OUT_OF_MEMORY SUCCESS SUCCESS", [](Ready& a) {
    CUmemAllocationProp shape = MemoryOfDevice();
    CUdeviceptr p = 0;
    a(a.d.MemAddressReserve(&p, kPeta, 0, 0, 0));
    a(a.d.MemCreate(kIgnored, kPeta, &shape, 0));
    a(a.d.MemAddressReserve(&p, 2 * kMega, 0, 0, 0));
    a(a.d.MemAddressFree(p, 2 * kMega));
  });
  ask.Fresh("limit.huge_array", "INVALID_VALUE INVALID_VALUE SUCCESS", [](Ready& a) {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR shape{std::size_t{1} << 24, 1 << 20, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    a(a.d.ArrayCreate(&array, &shape));
    shape = {16, std::size_t{1} << 24, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    a(a.d.ArrayCreate(&array, &shape));
    a(a.d.CtxSynchronize(nullptr));
  });
}

}  // namespace cuaudit::contract::lifetime_questions
