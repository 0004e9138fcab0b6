// SPDX-License-Identifier: MIT
#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::busy_questions {
namespace {

constexpr std::size_t kPage = 4096;

// An upload of `bytes` of pageable memory into a busy stream: did it wait?
void Upload(Stage& a, std::size_t bytes) {
  const std::vector<char> source(bytes);
  const CUdeviceptr p = a.MemAlloc(bytes);
  a.KeepBusy(a.s);
  a(a.d.MemcpyHtoDAsync(p, source.data(), bytes, a.s));
  a.Passed();
  a.LetGo();
  a.Prepare(a.d.CtxSynchronize(nullptr));
}

}  // namespace

void List(Questions& ask) {
  ask.Plain("busy.queries", "NOT_READY NOT_READY SUCCESS x3", [](Stage& a) {
    a.KeepBusy(a.s);
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a(a.d.EventQuery(a.e));
    a(a.d.StreamQuery(a.s));
    a.LetGo();
    a(a.d.StreamSynchronize(a.s));
    a(a.d.StreamQuery(a.s));
    a(a.d.EventQuery(a.e));
  });
  ask.Plain("busy.destroyed_event_still_orders", "SUCCESS NOT_READY SUCCESS 1", [](Stage& a) {
    a.KeepBusy(a.s);
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a.Prepare(a.d.StreamWaitEvent(a.t, a.e, 0));
    a(a.d.EventDestroy(a.e));
    a.e = nullptr;
    a(a.d.StreamQuery(a.t));
    a.LetGo();
    a(a.d.StreamSynchronize(a.t));
    a.Passed();
  });
  ask.Plain("busy.destroyed_stream_finishes", "SUCCESS 0 SUCCESS 1", [](Stage& a) {
    a.KeepBusy(a.s);
    a(a.d.StreamDestroy(a.s));
    a.s = nullptr;
    a.Passed();
    a.LetGo();
    a(a.d.CtxSynchronize(nullptr));
    a.Passed();
  });
  ask.Plain("busy.event_of_a_destroyed_stream", "SUCCESS NOT_READY SUCCESS 1", [](Stage& a) {
    a.KeepBusy(a.s);
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a(a.d.StreamDestroy(a.s));
    a.s = nullptr;
    a(a.d.EventQuery(a.e));
    a.LetGoAndWait(a.e);
  });
  ask.Plain("busy.destroyed_stream_holds_the_legacy_one", "SUCCESS NOT_READY SUCCESS 1", [](BlockingStage& a) {
    a.KeepBusy(a.s);
    a(a.d.StreamDestroy(a.s));
    a.s = nullptr;
    a.Prepare(a.d.EventRecord(a.e, nullptr));
    a(a.d.EventQuery(a.e));
    a.LetGoAndWait(a.e);
  });
  ask.Plain("busy.elapsed_not_ready", "NOT_READY SUCCESS 1", [](Stage& a) {
    float ms = -1;
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a.Prepare(a.d.EventSynchronize(a.e));
    a.KeepBusy(a.s);
    a.Prepare(a.d.EventRecord(a.f, a.s));
    a(a.d.EventElapsedTime(&ms, a.e, a.f));
    a.LetGo();
    a.Prepare(a.d.EventSynchronize(a.f));
    a(a.d.EventElapsedTime(&ms, a.e, a.f));
    a.Value(ms >= 0);
  });
  ask.Plain("busy.elapsed_backwards_and_same", "SUCCESS 1 SUCCESS 1", [](Stage& a) {
    float ms = 9;
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a.Prepare(a.d.EventRecord(a.f, a.s));
    a.Prepare(a.d.StreamSynchronize(a.s));
    a(a.d.EventElapsedTime(&ms, a.f, a.e));
    a.Value(ms <= 0);
    a(a.d.EventElapsedTime(&ms, a.e, a.e));
    a.Value(ms == 0);
  });
  ask.Risky("busy.elapsed_refusals", "INVALID_HANDLE x4", [](Stage& a) {
    float ms = 0;
    const CUevent untimed = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a(a.d.EventElapsedTime(&ms, a.e, a.f));
    a(a.d.EventElapsedTime(&ms, untimed, a.f));
    a.KeepBusy(a.s);
    a.Prepare(a.d.EventRecord(untimed, a.s));
    a.Prepare(a.d.EventRecord(a.e, a.s));
    a(a.d.EventElapsedTime(&ms, a.e, untimed));
    a.LetGo();
    a.Prepare(a.d.StreamSynchronize(a.s));
    a(a.d.EventElapsedTime(nullptr, a.e, a.e));
  });
  ask.Fresh("busy.pageable_upload_16k", "SUCCESS 0", [](Stage& a) { Upload(a, 16384); });
  ask.Fresh("busy.pageable_upload_64k", "SUCCESS 0", [](Stage& a) { Upload(a, 65536); });
  ask.Fresh("busy.pageable_upload_over_64k", "SUCCESS 0", [](Stage& a) { Upload(a, 65537); });
  ask.Fresh("busy.pageable_upload_1m", "SUCCESS 0", [](Stage& a) { Upload(a, 1048576); });
  ask.Fresh("busy.copy_on_the_device", "SUCCESS 0", [](BlockingStage& a) {
    const CUdeviceptr p = a.MemAlloc(2 * kPage);
    a.KeepBusy(a.s);
    a(a.d.MemcpyDtoD(p + kPage, p, kPage));
    a.Passed();
  });
  ask.Fresh("busy.copy_anywhere_on_the_device", "SUCCESS 0", [](BlockingStage& a) {
    const CUdeviceptr p = a.MemAlloc(2 * kPage);
    a.KeepBusy(a.s);
    a(a.d.Memcpy(p + kPage, p, kPage));
    a.Passed();
  });
  ask.Fresh("busy.upload_behind", "SUCCESS 1", [](BlockingStage& a) {
    const int in = 1;
    const CUdeviceptr p = a.MemAlloc(kPage);
    a.KeepBusy(a.s);
    a(a.d.MemcpyHtoD(p, &in, sizeof(in)));
    a.Passed();
  });
  ask.Fresh("busy.pinned_upload_behind", "SUCCESS 1", [](BlockingStage& a) {
    const CUdeviceptr p = a.MemAlloc(kPage);
    void* const h = a.MemAllocHost(kPage);
    a.KeepBusy(a.s);
    a(a.d.MemcpyHtoD(p, h, kPage));
    a.Passed();
  });
  ask.Fresh("busy.host_unregister", "SUCCESS 1", [](Stage& a) {
    alignas(kPage) static char memory[kPage];
    a.Prepare(a.d.MemHostRegister(memory, kPage, 0));
    a.KeepBusy(a.s);
    a(a.d.MemHostUnregister(memory));
    a.Passed();
  });
  ask.Fresh("busy.free_with_another_context_busy", "SUCCESS 0", [](Stage& a) {
    a.KeepBusy(a.s);
    a.CtxCreate();
    const CUdeviceptr p = a.MemAlloc(kPage);
    a(a.d.MemFree(p));
    a.Passed();
    a.LetGo();
  });
  ask.Fresh("busy.context_destroy", "SUCCESS 1", [](Stage& a) {
    const CUcontext other = a.CtxCreate();
    const CUstream there = a.StreamCreate();
    a.KeepBusy(there);
    a(a.d.CtxDestroy(other));
    a.Passed();
  });
  ask.Fresh("busy.pool_destroy_and_trim", "SUCCESS SUCCESS 0", [](Stage& a) {
    const CUmemoryPool pool = a.MemPoolCreate();
    a.KeepBusy(a.s);
    a(a.d.MemPoolTrimTo(pool, 0));
    a(a.d.MemPoolDestroy(pool));
    a.Passed();
  });
  ask.Fresh("busy.unmap", "SUCCESS 0", [](Stage& a) {
    const CUmemGenericAllocationHandle physical = a.MemCreate(kGranule);
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    a.Prepare(a.d.MemMap(p, kGranule, 0, physical, 0));
    a.Prepare(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    a.KeepBusy(a.s);
    a(a.d.MemUnmap(p, kGranule));
    a.Passed();
    a.LetGo();
  });
  ask.Fresh("busy.free_on_another_stream", "SUCCESS SUCCESS 0", [](Stage& a) {
    const CUdeviceptr p = a.MemAllocAsync(kPage, a.s);
    a.KeepBusy(a.s);
    a(a.d.MemFreeAsync(p, a.t));
    a(a.d.StreamSynchronize(a.t));
    a.Passed();
  });
  ask.Risky("busy.use_behind_its_free", "SUCCESS INVALID_VALUE SUCCESS", [](Stage& a) {
    const CUdeviceptr p = a.MemAllocAsync(kPage, a.s);
    a.KeepBusy(a.s);
    a(a.d.MemFreeAsync(p, a.s));
    a(a.d.MemsetD8Async(p, 1, kPage, a.s));
    a.LetGo();
    a(a.d.StreamSynchronize(a.s));
  });
  ask.Fresh("busy.allocation_used_by_another_stream", "SUCCESS SUCCESS 0", [](Stage& a) {
    a.KeepBusy(a.s);
    const CUdeviceptr p = a.MemAllocAsync(kPage, a.s);
    a(a.d.MemsetD8Async(p, 1, kPage, a.t));
    a(a.d.StreamSynchronize(a.t));
    a.Passed();
  });
  ask.Fresh("busy.pageable_upload_4m", "SUCCESS 1", [](Stage& a) { Upload(a, 4194304); });
  ask.Fresh("busy.copies_with_arrays", "SUCCESS 0 SUCCESS 0 SUCCESS 0", [](BlockingStage& a) {
    const CUDA_ARRAY_DESCRIPTOR shape{1024, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    const CUdeviceptr p = a.MemAlloc(kPage);
    const CUarray array = a.ArrayCreate(shape), other = a.ArrayCreate(shape);
    a.KeepBusy(a.s);
    a(a.d.MemcpyDtoA(array, 0, p, 1024));
    a.Passed();
    a(a.d.MemcpyAtoD(p, array, 0, 1024));
    a.Passed();
    a(a.d.MemcpyAtoA(other, 0, array, 0, 1024));
    a.Passed();
  });
  ask.Fresh("busy.copy_of_rows_on_the_device", "SUCCESS 0", [](BlockingStage& a) {
    const CUdeviceptr p = a.MemAlloc(2 * kPage);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = p;
    copy.dstDevice = p + kPage;
    copy.srcPitch = copy.dstPitch = 64;
    copy.WidthInBytes = 32;
    copy.Height = 8;
    a.KeepBusy(a.s);
    a(a.d.Memcpy2D(&copy));
    a.Passed();
  });
  ask.Fresh("busy.copy_between_pinned_and_pinned", "SUCCESS 1", [](BlockingStage& a) {
    void* const h = a.MemAllocHost(2 * kPage);
    const CUdeviceptr p = reinterpret_cast<std::uintptr_t>(h);
    a.KeepBusy(a.s);
    a(a.d.Memcpy(p + kPage, p, kPage));
    a.Passed();
  });
  ask.Fresh("busy.free_of_ordered_memory_in_use", "SUCCESS 0", [](Stage& a) {
    const CUdeviceptr p = a.MemAllocAsync(kPage, a.s);
    a.KeepBusy(a.s);
    a.Prepare(a.d.MemsetD8Async(p, 1, kPage, a.s));
    a(a.d.MemFree(p));
    a.Passed();
  });
  ask.Fresh("busy.free_async_of_plain_memory", "SUCCESS 0 SUCCESS", [](Stage& a) {
    const CUdeviceptr p = a.MemAlloc(kPage);
    a.KeepBusy(a.s);
    a(a.d.MemFreeAsync(p, a.s));
    a.Passed();
    a.LetGo();
    a(a.d.StreamSynchronize(a.s));
  });
  ask.Risky("busy.copies_of_memory_being_freed", "INVALID_VALUE x3", [](Stage& a) {
    int out = 0;
    const CUdeviceptr q = a.MemAlloc(kPage), p = a.MemAllocAsync(kPage, a.s);
    a.KeepBusy(a.s);
    a.Prepare(a.d.MemFreeAsync(p, a.s));
    a(a.d.MemcpyDtoDAsync(q, p, kPage, a.s));
    a(a.d.MemcpyDtoDAsync(p, q, kPage, a.s));
    a(a.d.MemcpyDtoH(&out, p, sizeof(out)));
  });
  ask.Fresh("busy.external_events_in_a_capture", "SUCCESS x3 2 7 6 SUCCESS", [](Stage& a) {
    CUgraph graph = nullptr;
    CUgraphNode nodes[2] = {};
    std::size_t count = 2;
    a.Prepare(a.d.StreamBeginCapture(a.s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a(a.d.EventRecordWithFlags(a.e, a.s, CU_EVENT_RECORD_EXTERNAL));
    a(a.d.StreamWaitEvent(a.s, a.f, CU_EVENT_WAIT_EXTERNAL));
    a(a.d.StreamEndCapture(a.s, &graph));
    a.Values(a.d.GraphGetNodes(graph, nodes, &count), count);
    for (CUgraphNode node : nodes) {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
      a.Values(a.d.GraphNodeGetType(node, &type), type);
    }
    a(a.d.EventQuery(a.e));
  });
  ask.Risky("busy.graph_in_another_context", "SUCCESS SUCCESS", [](Stage& a) {
    const CUdeviceptr p = a.MemAlloc(kPage);
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = p;
    fill.elementSize = 1;
    fill.width = 64;
    fill.height = 1;
    const CUgraph graph = a.GraphCreate();
    a.Prepare(a.d.GraphAddMemsetNode(kIgnored, graph, nullptr, 0, &fill, a.context));
    const CUgraphExec exec = a.GraphInstantiate(graph);
    a.CtxCreate();
    const CUstream there = a.StreamCreate(0);
    a(a.d.GraphLaunch(exec, there));
    a(a.d.StreamSynchronize(there));
  });
}

}  // namespace cuaudit::contract::busy_questions
