// SPDX-License-Identifier: MIT
// Copies in batches and between contexts.
#include "suites/contract/question.h"

namespace cuaudit::contract::batch_questions {
namespace {

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

}  // namespace cuaudit::contract::batch_questions
