// SPDX-License-Identifier: MIT
// What outlives its context, what outlives the references to the primary context, and calls about objects of a context that is not current.
#include <string>

#include "suites/contract/context/away.h"

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

void ListKind(const Kind& ask) {
  ask.Allowed("stream_destroy", [](Away& a) { a(a.d.StreamDestroy(a.s)); });
  ask.Allowed("stream_synchronize", [](Away& a) { a(a.d.StreamSynchronize(a.s)); });
  ask.Allowed("stream_query", [](Away& a) { a(a.d.StreamQuery(a.s)); });
  ask.None("end_capture", "SUCCESS SUCCESS 0 ILLEGAL_STATE", [](Away& a) {
    CUgraph g = nullptr;
    CUstreamCaptureStatus status{};
    a.Return();
    a.Prepare(a.d.StreamBeginCapture(a.s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a.CtxPopCurrent();
    a(a.d.StreamEndCapture(a.s, &g));
    a.Return();
    a(a.d.StreamIsCapturing(a.s, &status), status);
    a(a.d.StreamEndCapture(a.s, &g));
  });
  ask.None("begin_capture", "SUCCESS x3", [](Away& a) {
    a(a.d.StreamBeginCapture(a.s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a.Return();
    a(a.d.EventRecord(a.e, a.s));
    a(a.d.StreamEndCapture(a.s, kIgnored));
  });
  ask.None("begin_capture_to_graph", "SUCCESS SUCCESS", [](Away& a) {
    a(a.d.StreamBeginCaptureToGraph(a.s, a.g, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    a.Return();
    a(a.d.StreamEndCapture(a.s, &a.g));
  });
  ask.Allowed("stream_wait_event", [](Away& a) { a(a.d.StreamWaitEvent(a.s, a.e, 0)); });
  ask.Allowed("host_function", [](Away& a) {
    a(a.d.LaunchHostFunc(a.s, Nothing, nullptr));
    (void)a.d.StreamSynchronize(a.s);
  });
  ask.Allowed("event_destroy", [](Away& a) { a(a.d.EventDestroy(a.e)); });
  ask.Allowed("event_query", [](Away& a) { a(a.d.EventQuery(a.e)); });
  ask.Allowed("event_synchronize", [](Away& a) { a(a.d.EventSynchronize(a.e)); });
  ask.Allowed("event_record", [](Away& a) {
    a(a.d.EventRecord(a.e, a.s));
    (void)a.d.StreamSynchronize(a.s);
  });
  ask.Allowed("memory_free", [](Away& a) { a(a.d.MemFree(a.p)); });
  ask.Both("memory_copy", "INVALID_CONTEXT", "SUCCESS", [](Away& a) {
    int in = 1;
    a(a.d.MemcpyHtoD(a.p, &in, sizeof(in)));
  });
  ask.Allowed("memory_attribute", [](Away& a) {
    unsigned type = 0;
    a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a.p));
  });
  ask.Allowed("async_alloc", [](Away& a) { a(a.d.MemAllocAsync(kIgnored, 64, a.s)); });
  ask.Allowed("async_free", [](Away& a) { a(a.d.MemFreeAsync(a.ordered, a.s)); });
  ask.Allowed("pinned_free", [](Away& a) { a(a.d.MemFreeHost(a.h)); });
  ask.Allowed("unregister", [](Away& a) { a(a.d.MemHostUnregister(a.page)); });
  ask.Allowed("array_destroy", [](Away& a) { a(a.d.ArrayDestroy(a.array)); });
  ask.Allowed("module_unload", [](Away& a) { a(a.d.ModuleUnload(a.m)); });
  ask.Allowed("library_unload", [](Away& a) { a(a.d.LibraryUnload(a.l)); });
  ask.None("graph_life", "SUCCESS x3", [](Away& a) {
    CUgraph g = nullptr;
    a(a.d.GraphCreate(&g, 0));
    a(a.d.GraphClone(kIgnored, g));
    a(a.d.GraphDestroy(g));
  });
  ask.None("graph_node", "SUCCESS", [](Away& a) { a(a.d.GraphAddEmptyNode(kIgnored, a.g, nullptr, 0)); });
  ask.None("graph_instantiate", "INVALID_CONTEXT", [](Away& a) { a(a.d.GraphInstantiateWithFlags(&a.x, a.g, 0)); });
  ask.Allowed("graph_launch", [](Away& a) { a(a.d.GraphLaunch(a.x, a.s)); });
  ask.Allowed("exec_destroy", [](Away& a) { a(a.d.GraphExecDestroy(a.x)); });
  ask.None("pool_destroy", "SUCCESS", [](Away& a) { a(a.d.MemPoolDestroy(a.pool)); });
  ask.None("link_destroy", "SUCCESS", [](Away& a) { a(a.d.LinkDestroy(a.link)); });
  ask.None("allocations", "INVALID_CONTEXT x3", [](Away& a) {
    std::size_t free = 0;
    a(a.d.MemAllocManaged(kIgnored, 64, CU_MEM_ATTACH_GLOBAL));
    a(a.d.MemHostAlloc(kIgnored, 64, 0));
    a(a.d.MemGetInfo(&free, &free));
  });
  ask.None("synchronize", "INVALID_CONTEXT", [](Away& a) { a(a.d.CtxSynchronize(nullptr)); });
  ask.None("virtual_memory", "SUCCESS x6", [](Away& a) {
    const CUmemAllocationProp properties = MemoryOfDevice();
    CUdeviceptr p = 0;
    CUmemGenericAllocationHandle h = 0;
    a(a.d.MemAddressReserve(&p, kGranule, 0, 0, 0));
    a(a.d.MemCreate(&h, kGranule, &properties, 0));
    a(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemUnmap(p, kGranule));
    a(a.d.MemRelease(h));
    a(a.d.MemAddressFree(p, kGranule));
  });
}

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
  ListKind({ask, false});
  ListKind({ask, true});
}

}  // namespace cuaudit::contract::lifetime_questions
