// SPDX-License-Identifier: MIT
// Advice about ranges of managed memory, prefetches, and copies in batches.
#include "suites/contract/question.h"

namespace cuaudit::contract::range_questions {
namespace {

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 0};
constexpr CUmemLocation kNode{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};

// Managed memory of two large pages.
struct Managed {
  explicit Managed(Asker& a) : asker(a), p(a.MemAllocManaged(2 * kGranule)) {}
  void Tell(CUmem_range_attribute attribute, std::size_t bytes = 2 * kGranule) const {
    int value = 77;
    asker.Values(asker.d.MemRangeGetAttribute(&value, sizeof(value), attribute, p, bytes), value);
  }
  Asker& asker;
  const CUdeviceptr p;
};

// Two device buffers, a stream, one set of attributes for a whole batch.
struct Batch {
  explicit Batch(Asker& a) : asker(a), s(a.StreamCreate()) {
    for (CUdeviceptr& p : to) p = a.MemAlloc(4096);
    for (CUdeviceptr& p : from) p = a.MemAlloc(4096);
    a.Prepare(a.d.MemsetD8(from[0], 3, 4096));
    a.Prepare(a.d.MemsetD8(from[1], 4, 4096));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  }
  CUresult Copy(std::size_t count, std::size_t attributes, CUstream stream) {
    return asker.d.MemcpyBatchAsync(to, from, sizes, count, &how, &first, attributes, stream);
  }
  Asker& asker;
  const CUstream s;
  CUdeviceptr to[2] = {}, from[2] = {};
  std::size_t sizes[2] = {4096, 4096};
  CUmemcpyAttributes how{};
  std::size_t first = 0;
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("range.untouched", "0 -2 -2 0 -2 0 -2", [](Ready&, const Managed& managed) {
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
  });
  ask.Risky("range.bad_arguments", "INVALID_VALUE x6", [](Ready& a, const Managed& managed) {
    int value[4] = {};
    a(a.d.MemRangeGetAttribute(value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 0, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, 0));
    a(a.d.MemRangeGetAttribute(nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 4, Beyond<CUmem_range_attribute>(99), managed.p, kGranule));
    a(a.d.MemRangeGetAttribute(value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, kGranule));
  });
  ask.Risky("range.not_managed", "INVALID_VALUE x3", [](Ready& a, const Managed&) {
    int value = 0;
    const CUdeviceptr p = a.MemAlloc(kGranule);
    a(a.d.MemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, kGranule));
    a(a.d.MemAdvise(p, kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemPrefetchAsync(p, kGranule, kDevice, 0, nullptr));
  });
  ask.Risky("range.beyond_end", "INVALID_VALUE x3", [](Ready& a, const Managed& managed) {
    int value = 0;
    a(a.d.MemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed.p + kGranule, std::size_t{1} << 40));
    a(a.d.MemAdvise(managed.p + kGranule, std::size_t{1} << 40, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemPrefetchAsync(managed.p + kGranule, std::size_t{1} << 40, kDevice, 0, nullptr));
  });
  ask.Risky("range.plural", "SUCCESS 0 -2 INVALID_VALUE INVALID_VALUE", [](Ready& a, const Managed& managed) {
    int value[2] = {77, 77};
    void* out[2] = {&value[0], &value[1]};
    std::size_t sizes[2] = {4, 4};
    CUmem_range_attribute wanted[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
    a(a.d.MemRangeGetAttributes(out, sizes, wanted, 2, managed.p, kGranule));
    a.Value(value[0]);
    a.Value(value[1]);
    a(a.d.MemRangeGetAttributes(out, sizes, wanted, 0, managed.p, kGranule));
    sizes[1] = 3;
    a(a.d.MemRangeGetAttributes(out, sizes, wanted, 2, managed.p, kGranule));
  });
  ask.Plain("range.read_mostly", "SUCCESS 1 SUCCESS 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
  });
  ask.Plain("range.half_advised", "SUCCESS 1 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, kGranule);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
  });
  ask.Plain("range.preferred", "SUCCESS 0 1 0 SUCCESS -1 2 SUCCESS -2 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kHost));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
  });
  ask.Plain("range.preferred_node", "SUCCESS -2 0 -2", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kNode));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
  });
  ask.Plain("range.half_preferred", "SUCCESS -2 0", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
  });
  ask.Plain("range.accessed_by", "SUCCESS SUCCESS 0 -2 -2 SUCCESS SUCCESS -2 -2", [](Ready& a, const Managed& managed) {
    int value[3] = {77, 77, 77};
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice));
    a(a.d.MemRangeGetAttribute(value, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kGranule));
    for (const int one : value) a.Value(one);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_UNSET_ACCESSED_BY, kDevice));
    a(a.d.MemRangeGetAttribute(value, 8, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kGranule), value[0], value[1]);
  });
  ask.Risky("range.accessed_by_host", "SUCCESS SUCCESS 0 -1 -2 INVALID_VALUE", [](Ready& a, const Managed& managed) {
    int value[3] = {77, 77, 77};
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kHost));
    a.Prepare(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice));
    a(a.d.MemRangeGetAttribute(value, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed.p, 2 * kGranule));
    for (const int one : value) a.Value(one);
    a(a.d.MemAdvise(managed.p, 2 * kGranule, CU_MEM_ADVISE_SET_ACCESSED_BY, kNode));
  });
  ask.Risky("range.bad_advice", "INVALID_VALUE x7", [](Ready& a, const Managed& managed) {
    a(a.d.MemAdvise(managed.p, kGranule, Beyond<CUmem_advise>(0), kDevice));
    a(a.d.MemAdvise(managed.p, kGranule, Beyond<CUmem_advise>(99), kDevice));
    a(a.d.MemAdvise(managed.p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemAdvise(0, kGranule, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice));
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, 99}));
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_INVALID, 0}));
    a(a.d.MemAdvise(managed.p, kGranule, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 4095}));
  });
  ask.Plain("range.prefetch", "SUCCESS 0 1 0 SUCCESS -1 2 SUCCESS -1 3", [](Ready& a, const Managed& managed) {
    a(a.d.MemPrefetchAsync(managed.p, 2 * kGranule, kDevice, 0, nullptr));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
    a(a.d.MemPrefetchAsync(managed.p, 2 * kGranule, kHost, 0, nullptr));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    a(a.d.MemPrefetchAsync(managed.p, 2 * kGranule, kNode, 0, nullptr));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
    a.Prepare(a.d.CtxSynchronize(nullptr));
  });
  ask.Risky("range.bad_prefetch", "INVALID_DEVICE INVALID_VALUE x4", [](Ready& a, const Managed& managed) {
    a(a.d.MemPrefetchAsync(managed.p, kGranule, {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0, nullptr));
    a(a.d.MemPrefetchAsync(managed.p, 0, kDevice, 0, nullptr));
    a(a.d.MemPrefetchAsync(0, kGranule, kDevice, 0, nullptr));
    a(a.d.MemPrefetchAsync(managed.p, kGranule, kDevice, 1, nullptr));
    a(a.d.MemPrefetchAsync(managed.p, kGranule, {CU_MEM_LOCATION_TYPE_INVALID, 0}, 0, nullptr));
  });
  ask.Fresh("range.prefetch_while_capturing", "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED",
            [](Ready& a, const Managed& managed) {
              const CUstream s = a.StreamCreate();
              a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
              a(a.d.MemPrefetchAsync(managed.p, kGranule, kDevice, 0, s));
              a(a.d.StreamEndCapture(s, kIgnored));
            });
  ask.Risky("range.prefetch_batch", "SUCCESS 0 INVALID_VALUE x4", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr at[2] = {managed.p, managed.p + kGranule};
    std::size_t sizes[2] = {kGranule, kGranule};
    CUmemLocation where[1] = {kDevice};
    std::size_t first[1] = {0};
    a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 1, 0, s));
    a.Prepare(a.d.StreamSynchronize(s));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    a(a.d.MemPrefetchBatchAsync(at, sizes, 0, where, first, 1, 0, s));
    a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 0, 0, s));
    a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 1, 1, s));
    first[0] = 1;
    a(a.d.MemPrefetchBatchAsync(at, sizes, 2, where, first, 1, 0, s));
  });
  ask.Risky("range.discard", "SUCCESS INVALID_VALUE x4", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    const CUdeviceptr other = a.MemAlloc(kGranule);
    CUdeviceptr at[1] = {managed.p};
    std::size_t sizes[1] = {kGranule};
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, s));
    a(a.d.MemDiscardBatchAsync(at, sizes, 0, 0, s));
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 1, s));
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, nullptr));
    at[0] = other;
    a(a.d.MemDiscardBatchAsync(at, sizes, 1, 0, s));
    a.Prepare(a.d.StreamSynchronize(s));
  });
  ask.Risky("range.discard_and_prefetch", "SUCCESS 0 INVALID_VALUE", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    CUdeviceptr at[2] = {managed.p, managed.p + kGranule};
    std::size_t sizes[2] = {kGranule, kGranule};
    CUmemLocation where[1] = {kDevice};
    std::size_t first[1] = {0};
    a(a.d.MemDiscardAndPrefetchBatchAsync(at, sizes, 2, where, first, 1, 0, s));
    a.Prepare(a.d.StreamSynchronize(s));
    managed.Tell(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    a(a.d.MemDiscardAndPrefetchBatchAsync(at, sizes, 2, where, first, 3, 0, s));
  });
  ask.Risky("range.attach", "SUCCESS SUCCESS INVALID_VALUE x3", [](Ready& a, const Managed& managed) {
    const CUstream s = a.StreamCreate();
    const CUdeviceptr other = a.MemAlloc(4096);
    a(a.d.StreamAttachMemAsync(s, managed.p, 0, CU_MEM_ATTACH_SINGLE));
    a(a.d.StreamAttachMemAsync(s, managed.p, 0, CU_MEM_ATTACH_GLOBAL));
    a(a.d.StreamAttachMemAsync(s, managed.p, 0, 8));
    a(a.d.StreamAttachMemAsync(s, other, 0, CU_MEM_ATTACH_SINGLE));
    a(a.d.StreamAttachMemAsync(s, managed.p, 64, CU_MEM_ATTACH_SINGLE));
    a.Prepare(a.d.StreamSynchronize(s));
  });
  ask.Plain("batch.copies", "SUCCESS 3 4", [](Ready& a, Batch& batch) {
    unsigned char out[2] = {};
    a(batch.Copy(2, 1, batch.s));
    a.Prepare(a.d.StreamSynchronize(batch.s));
    a.Prepare(a.d.MemcpyDtoH(&out[0], batch.to[0] + 100, 1));
    a.Values(a.d.MemcpyDtoH(&out[1], batch.to[1] + 100, 1), out[0], out[1]);
  });
  ask.Risky("batch.bad", "INVALID_VALUE x6", [](Ready& a, Batch& batch) {
    a(batch.Copy(0, 1, batch.s));
    a(batch.Copy(2, 0, batch.s));
    a(batch.Copy(2, 3, batch.s));
    a(batch.Copy(2, 1, nullptr));
    batch.first = 1;
    a(batch.Copy(2, 1, batch.s));
    batch.first = 0;
    batch.how.srcAccessOrder = Beyond<CUmemcpySrcAccessOrder>(0);
    a(batch.Copy(2, 1, batch.s));
  });
  ask.Risky("batch.zero_size", "INVALID_VALUE", [](Ready& a, Batch& batch) {
    batch.sizes[1] = 0;
    a(batch.Copy(2, 1, batch.s));
  });
  ask.Risky("batch.freed", "crash", [](Ready& a, Batch& batch) {
    unsigned char out = 0;
    a.Prepare(a.d.MemsetD8(batch.to[0], 0, 4096));
    a.Prepare(a.d.MemFree(batch.from[1]));
    a(batch.Copy(2, 1, batch.s));
    a.Prepare(a.d.StreamSynchronize(batch.s));
    a.Values(a.d.MemcpyDtoH(&out, batch.to[0], 1), out);
    batch.from[1] = 0;
  });
  ask.Fresh("batch.of_capture", "STREAM_CAPTURE_UNSUPPORTED 0", [](Ready& a, Batch& batch) {
    CUgraph graph = nullptr;
    std::size_t nodes = 0;
    a.Prepare(a.d.StreamBeginCapture(batch.s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    a(batch.Copy(1, 1, batch.s));
    (void)a.d.StreamEndCapture(batch.s, &graph);
    if (graph != nullptr) {
      a.Prepare(a.d.GraphGetNodes(graph, nullptr, &nodes));
      (void)a.d.GraphDestroy(graph);
    }
    a.Value(static_cast<long long>(nodes));
  });
  ask.Risky("batch.volume", "SUCCESS 3 INVALID_VALUE INVALID_VALUE", [](Ready& a, Batch& batch) {
    unsigned char out = 0;
    CUDA_MEMCPY3D_BATCH_OP operation{};
    operation.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    operation.src.op.ptr.ptr = batch.from[0];
    operation.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    operation.dst.op.ptr.ptr = batch.to[0];
    operation.extent = {64, 2, 1};
    operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    a(a.d.Memcpy3DBatchAsync(1, &operation, 0, batch.s));
    a.Prepare(a.d.StreamSynchronize(batch.s));
    a.Values(a.d.MemcpyDtoH(&out, batch.to[0] + 127, 1), out);
    a(a.d.Memcpy3DBatchAsync(0, &operation, 0, batch.s));
    a(a.d.Memcpy3DBatchAsync(1, &operation, 1, batch.s));
  });
  ask.Risky("peer.same_context", "SUCCESS 3 SUCCESS SUCCESS", [](Ready& a, const Batch& batch) {
    unsigned char out = 0;
    a(a.d.MemcpyPeer(batch.to[0], a.context, batch.from[0], a.context, 4096));
    a.Values(a.d.MemcpyDtoH(&out, batch.to[0], 1), out);
    a(a.d.MemcpyPeerAsync(batch.to[1], a.context, batch.from[1], a.context, 4096, batch.s));
    a(a.d.MemcpyPeer(batch.to[0], nullptr, batch.from[0], nullptr, 4096));
  });
  ask.Fresh("peer.two_contexts", "SUCCESS 4 SUCCESS", [](Ready& a, const Batch& batch) {
    unsigned char out = 0;
    const CUcontext other = a.CtxCreate();
    const CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.MemcpyPeer(p, other, batch.from[1], a.context, 4096));
    a.Values(a.d.MemcpyDtoH(&out, p + 5, 1), out);
    a(a.d.MemcpyDtoD(p, batch.from[0], 4096));
  });
  ask.Risky("copy.plane_bounds", "INVALID_VALUE INVALID_VALUE SUCCESS INVALID_VALUE", [](Ready& a, const Batch& batch) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = batch.from[0];
    copy.srcPitch = 64;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = batch.to[0];
    copy.dstPitch = 64;
    copy.WidthInBytes = 64;
    copy.Height = std::size_t{1} << 20;
    a(a.d.Memcpy2D(&copy));
    copy.Height = 4;
    copy.srcXInBytes = 16;
    a(a.d.Memcpy2D(&copy));
    copy.srcXInBytes = 0;
    copy.Height = 0;
    a(a.d.Memcpy2D(&copy));
    copy.Height = 4;
    copy.srcMemoryType = Beyond<CUmemorytype>(9);
    a(a.d.Memcpy2D(&copy));
  });
}

}  // namespace cuaudit::contract::range_questions
