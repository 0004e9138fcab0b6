// SPDX-License-Identifier: MIT
#include "suites/contract/stage.h"

namespace cuaudit::contract::busy_questions {
namespace {

constexpr std::size_t kPage = 4096;

// An upload of `bytes` of pageable memory into a busy stream: did it wait?
void Upload(Asker& a, std::size_t bytes) {
  Stage stage(a);
  std::vector<char> source(bytes);
  CUdeviceptr p = 0;
  a.Prepare(a.d.MemAlloc(&p, bytes));
  stage.KeepBusy(stage.s);
  a(a.d.MemcpyHtoDAsync(p, source.data(), bytes, stage.s));
  stage.Passed();
  stage.LetGo();
  a.Prepare(a.d.CtxSynchronize(nullptr));
  (void)a.d.MemFree(p);
}

constexpr Question kQuestions[] = {
    {"busy.queries", "NOT_READY NOT_READY SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a(a.d.EventQuery(stage.e));
       a(a.d.StreamQuery(stage.s));
       stage.LetGo();
       a(a.d.StreamSynchronize(stage.s));
       a(a.d.StreamQuery(stage.s));
       a(a.d.EventQuery(stage.e));
     }},
    {"busy.destroyed_event_still_orders", "SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a.Prepare(a.d.StreamWaitEvent(stage.t, stage.e, 0));
       a(a.d.EventDestroy(stage.e));
       stage.e = nullptr;
       a(a.d.StreamQuery(stage.t));
       stage.LetGo();
       a(a.d.StreamSynchronize(stage.t));
       stage.Passed();
     }},
    {"busy.destroyed_stream_finishes", "SUCCESS 0 SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a(a.d.StreamDestroy(stage.s));
       stage.s = nullptr;
       stage.Passed();
       stage.LetGo();
       a(a.d.CtxSynchronize(nullptr));
       stage.Passed();
     }},
    {"busy.event_of_a_destroyed_stream", "SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a(a.d.StreamDestroy(stage.s));
       stage.s = nullptr;
       a(a.d.EventQuery(stage.e));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"busy.destroyed_stream_holds_the_legacy_one", "SUCCESS NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       stage.KeepBusy(stage.s);
       a(a.d.StreamDestroy(stage.s));
       stage.s = nullptr;
       a.Prepare(a.d.EventRecord(stage.e, nullptr));
       a(a.d.EventQuery(stage.e));
       stage.LetGo();
       a(a.d.EventSynchronize(stage.e));
       stage.Passed();
     }},
    {"busy.elapsed_not_ready", "NOT_READY SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       float ms = -1;
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a.Prepare(a.d.EventSynchronize(stage.e));
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.EventRecord(stage.f, stage.s));
       a(a.d.EventElapsedTime(&ms, stage.e, stage.f));
       stage.LetGo();
       a.Prepare(a.d.EventSynchronize(stage.f));
       a(a.d.EventElapsedTime(&ms, stage.e, stage.f));
       a.Value(ms >= 0);
     }},
    {"busy.elapsed_backwards_and_same", "SUCCESS 1 SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       Stage stage(a);
       float ms = 9;
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a.Prepare(a.d.EventRecord(stage.f, stage.s));
       a.Prepare(a.d.StreamSynchronize(stage.s));
       a(a.d.EventElapsedTime(&ms, stage.f, stage.e));
       a.Value(ms <= 0);
       a(a.d.EventElapsedTime(&ms, stage.e, stage.e));
       a.Value(ms == 0);
     }},
    {"busy.elapsed_refusals", "INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       float ms = 0;
       CUevent untimed = nullptr;
       a.Prepare(a.d.EventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
       a(a.d.EventElapsedTime(&ms, stage.e, stage.f));
       a(a.d.EventElapsedTime(&ms, untimed, stage.f));
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.EventRecord(untimed, stage.s));
       a.Prepare(a.d.EventRecord(stage.e, stage.s));
       a(a.d.EventElapsedTime(&ms, stage.e, untimed));
       stage.LetGo();
       a.Prepare(a.d.StreamSynchronize(stage.s));
       a(a.d.EventElapsedTime(nullptr, stage.e, stage.e));
       (void)a.d.EventDestroy(untimed);
     }},
    {"busy.pageable_upload_16k", "SUCCESS 0", Manner::Fresh, [](Asker& a) { Upload(a, 16384); }},
    {"busy.pageable_upload_64k", "SUCCESS 0", Manner::Fresh, [](Asker& a) { Upload(a, 65536); }},
    {"busy.pageable_upload_over_64k", "SUCCESS 0", Manner::Fresh, [](Asker& a) { Upload(a, 65537); }},
    {"busy.pageable_upload_1m", "SUCCESS 0", Manner::Fresh, [](Asker& a) { Upload(a, 1048576); }},
    {"busy.copy_on_the_device", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 2 * kPage));
       stage.KeepBusy(stage.s);
       a(a.d.MemcpyDtoD(p + kPage, p, kPage));
       stage.Passed();
     }},
    {"busy.copy_anywhere_on_the_device", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 2 * kPage));
       stage.KeepBusy(stage.s);
       a(a.d.Memcpy(p + kPage, p, kPage));
       stage.Passed();
     }},
    {"busy.upload_behind", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       CUdeviceptr p = 0;
       const int in = 1;
       a.Prepare(a.d.MemAlloc(&p, kPage));
       stage.KeepBusy(stage.s);
       a(a.d.MemcpyHtoD(p, &in, sizeof(in)));
       stage.Passed();
     }},
    {"busy.pinned_upload_behind", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       CUdeviceptr p = 0;
       void* h = nullptr;
       a.Prepare(a.d.MemAlloc(&p, kPage));
       a.Prepare(a.d.MemAllocHost(&h, kPage));
       stage.KeepBusy(stage.s);
       a(a.d.MemcpyHtoD(p, h, kPage));
       stage.Passed();
     }},
    {"busy.host_unregister", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       alignas(kPage) static char memory[kPage];
       a.Prepare(a.d.MemHostRegister(memory, kPage, 0));
       stage.KeepBusy(stage.s);
       a(a.d.MemHostUnregister(memory));
       stage.Passed();
     }},
    {"busy.free_with_another_context_busy", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       CUdeviceptr p = 0;
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.MemAlloc(&p, kPage));
       a(a.d.MemFree(p));
       stage.Passed();
       stage.LetGo();
       (void)a.d.CtxDestroy(other);
     }},
    {"busy.context_destroy", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       CUstream there = nullptr;
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.StreamCreate(&there, CU_STREAM_NON_BLOCKING));
       stage.KeepBusy(there);
       a(a.d.CtxDestroy(other));
       stage.Passed();
     }},
    {"busy.pool_destroy_and_trim", "SUCCESS SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       CUmemoryPool pool = nullptr;
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
       stage.KeepBusy(stage.s);
       a(a.d.MemPoolTrimTo(pool, 0));
       a(a.d.MemPoolDestroy(pool));
       stage.Passed();
     }},
    {"busy.unmap", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       constexpr std::size_t kBytes = std::size_t{2} << 20;
       CUmemGenericAllocationHandle physical = 0;
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemCreate(&physical, kBytes, &properties, 0));
       a.Prepare(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
       a.Prepare(a.d.MemMap(p, kBytes, 0, physical, 0));
       const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
       a.Prepare(a.d.MemSetAccess(p, kBytes, &access, 1));
       stage.KeepBusy(stage.s);
       a(a.d.MemUnmap(p, kBytes));
       stage.Passed();
       stage.LetGo();
       (void)a.d.MemRelease(physical);
       (void)a.d.MemAddressFree(p, kBytes);
     }},
    {"busy.free_on_another_stream", "SUCCESS SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAllocAsync(&p, kPage, stage.s));
       stage.KeepBusy(stage.s);
       a(a.d.MemFreeAsync(p, stage.t));
       a(a.d.StreamSynchronize(stage.t));
       stage.Passed();
     }},
    {"busy.use_behind_its_free", "SUCCESS INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAllocAsync(&p, kPage, stage.s));
       stage.KeepBusy(stage.s);
       a(a.d.MemFreeAsync(p, stage.s));
       a(a.d.MemsetD8Async(p, 1, kPage, stage.s));
       stage.LetGo();
       a(a.d.StreamSynchronize(stage.s));
     }},
    {"busy.allocation_used_by_another_stream", "SUCCESS SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUdeviceptr p = 0;
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.MemAllocAsync(&p, kPage, stage.s));
       a(a.d.MemsetD8Async(p, 1, kPage, stage.t));
       a(a.d.StreamSynchronize(stage.t));
       stage.Passed();
     }},
    {"busy.pageable_upload_4m", "SUCCESS 1", Manner::Fresh, [](Asker& a) { Upload(a, 4194304); }},
    {"busy.copies_with_arrays", "SUCCESS 0 SUCCESS 0 SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       CUdeviceptr p = 0;
       CUarray array = nullptr;
       CUarray other = nullptr;
       const CUDA_ARRAY_DESCRIPTOR shape{1024, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
       a.Prepare(a.d.MemAlloc(&p, kPage));
       a.Prepare(a.d.ArrayCreate(&array, &shape));
       a.Prepare(a.d.ArrayCreate(&other, &shape));
       stage.KeepBusy(stage.s);
       a(a.d.MemcpyDtoA(array, 0, p, 1024));
       stage.Passed();
       a(a.d.MemcpyAtoD(p, array, 0, 1024));
       stage.Passed();
       a(a.d.MemcpyAtoA(other, 0, array, 0, 1024));
       stage.Passed();
     }},
    {"busy.copy_of_rows_on_the_device", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 2 * kPage));
       CUDA_MEMCPY2D copy{};
       copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
       copy.srcDevice = p;
       copy.dstDevice = p + kPage;
       copy.srcPitch = copy.dstPitch = 64;
       copy.WidthInBytes = 32;
       copy.Height = 8;
       stage.KeepBusy(stage.s);
       a(a.d.Memcpy2D(&copy));
       stage.Passed();
     }},
    {"busy.copy_between_pinned_and_pinned", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a, CU_STREAM_DEFAULT);
       void* h = nullptr;
       a.Prepare(a.d.MemAllocHost(&h, 2 * kPage));
       const CUdeviceptr p = reinterpret_cast<std::uintptr_t>(h);
       stage.KeepBusy(stage.s);
       a(a.d.Memcpy(p + kPage, p, kPage));
       stage.Passed();
     }},
    {"busy.free_of_ordered_memory_in_use", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAllocAsync(&p, kPage, stage.s));
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.MemsetD8Async(p, 1, kPage, stage.s));
       a(a.d.MemFree(p));
       stage.Passed();
     }},
    {"busy.free_async_of_plain_memory", "SUCCESS 0 SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, kPage));
       stage.KeepBusy(stage.s);
       a(a.d.MemFreeAsync(p, stage.s));
       stage.Passed();
       stage.LetGo();
       a(a.d.StreamSynchronize(stage.s));
     }},
    {"busy.copies_of_memory_being_freed", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       CUdeviceptr p = 0;
       CUdeviceptr q = 0;
       int out = 0;
       a.Prepare(a.d.MemAlloc(&q, kPage));
       a.Prepare(a.d.MemAllocAsync(&p, kPage, stage.s));
       stage.KeepBusy(stage.s);
       a.Prepare(a.d.MemFreeAsync(p, stage.s));
       a(a.d.MemcpyDtoDAsync(q, p, kPage, stage.s));
       a(a.d.MemcpyDtoDAsync(p, q, kPage, stage.s));
       a(a.d.MemcpyDtoH(&out, p, sizeof(out)));
     }},
    {"busy.external_events_in_a_capture", "SUCCESS SUCCESS SUCCESS 2 7 6 SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Stage stage(a);
       CUgraph graph = nullptr;
       CUgraphNode nodes[2] = {};
       std::size_t count = 2;
       a.Prepare(a.d.StreamBeginCapture(stage.s, CU_STREAM_CAPTURE_MODE_RELAXED));
       a(a.d.EventRecordWithFlags(stage.e, stage.s, CU_EVENT_RECORD_EXTERNAL));
       a(a.d.StreamWaitEvent(stage.s, stage.f, CU_EVENT_WAIT_EXTERNAL));
       a(a.d.StreamEndCapture(stage.s, &graph));
       a.Prepare(a.d.GraphGetNodes(graph, nodes, &count));
       a.Value(static_cast<long long>(count));
       for (CUgraphNode node : nodes) {
         CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
         a.Prepare(a.d.GraphNodeGetType(node, &type));
         a.Value(type);
       }
       a(a.d.EventQuery(stage.e));
     }},
    {"busy.graph_in_another_context", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       Stage stage(a);
       CUcontext other = nullptr;
       CUstream there = nullptr;
       CUgraph graph = nullptr;
       CUgraphNode node = nullptr;
       CUgraphExec exec = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, kPage));
       CUDA_MEMSET_NODE_PARAMS fill{};
       fill.dst = p;
       fill.elementSize = 1;
       fill.width = 64;
       fill.height = 1;
       a.Prepare(a.d.GraphCreate(&graph, 0));
       a.Prepare(a.d.GraphAddMemsetNode(&node, graph, nullptr, 0, &fill, stage.ready.context));
       a.Prepare(a.d.GraphInstantiateWithFlags(&exec, graph, 0));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a.Prepare(a.d.StreamCreate(&there, 0));
       a(a.d.GraphLaunch(exec, there));
       a(a.d.StreamSynchronize(there));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::busy_questions

namespace cuaudit::contract {
std::span<const Question> BusyQuestions() { return busy_questions::kQuestions; }
}  // namespace cuaudit::contract
