// SPDX-License-Identifier: MIT
// What calls that take a handle answer when no context is current, and when another one than the object's is.
#include <cstring>
#include <string>

#include "suites/contract/context/away.h"

namespace cuaudit::contract::away_questions {
namespace {

// The questions with no context and those with another one.
struct Kind {
  Questions& ask;
  bool elsewhere;
  void Both(const std::string& name, const char* none, const char* other, void (*question)(Away&)) const {
    ask.Risky((elsewhere ? "elsewhere." : "none.") + name, elsewhere ? other : none, [=, there = elsewhere](Asker& asker) {
      Away a(asker, there);
      question(a);
    });
  }
  void Allowed(const std::string& name, void (*question)(Away&)) const { Both(name, "SUCCESS", "SUCCESS", question); }
  void None(const std::string& name, const char* expected, void (*question)(Away&)) const {
    if (!elsewhere) Both(name, expected, "", question);
  }
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
  ask.Allowed("pool_destroy", [](Away& a) { a(a.d.MemPoolDestroy(a.pool)); });
  ask.Allowed("link_destroy", [](Away& a) { a(a.d.LinkDestroy(a.link)); });
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

void Called(CUstream, CUresult, void*) {}

CUresult ContextOf(Held& a) {
#if CUDA_VERSION >= 13000
  return a.d.StreamGetCtx(a.s, kIgnored, kIgnored);
#else
  return a.d.StreamGetCtx(a.s, kIgnored);
#endif
}

constexpr AwayRow<Held> kRows[] = {
    {"fill_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemsetD8Async(a.p, 1, 64, a.s); }},
    {"fill_async_16", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemsetD16Async(a.p, 1, 32, a.s); }},
    {"fill_async_32", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemsetD32Async(a.p, 1, 16, a.s); }},
    {"fill_async_2d", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemsetD2D8Async(a.p, 64, 1, 16, 4, a.s); }},
    {"fill_async_2d_32", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemsetD2D32Async(a.p, 64, 1, 4, 4, a.s); }},
    {"fill_async_default_stream", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemsetD8Async(a.p, 1, 64, nullptr); }},
    {"fill_async_thread_stream", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemsetD8Async(a.p, 1, 64, CU_STREAM_PER_THREAD); }},
    {"copy_to_device_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemcpyHtoDAsync(a.p, a.h, 64, a.s); }},
    {"copy_to_host_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemcpyDtoHAsync(a.h, a.p, 64, a.s); }},
    {"copy_within_device_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemcpyDtoDAsync(a.p + 64, a.p, 64, a.s); }},
    {"copy_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemcpyAsync(a.p + 64, a.p, 64, a.s); }},
    {"copy_async_default_stream", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemcpyAsync(a.p + 64, a.p, 64, nullptr); }},
    {"copy_to_array_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemcpyHtoAAsync(a.array, 0, a.h, 16, a.s); }},
    {"copy_from_array_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemcpyAtoHAsync(a.h, a.array, 0, 16, a.s); }},
    {"copy_2d_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.Memcpy2DAsync(&a.plane, a.s); }},
    {"copy_3d_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.Memcpy3DAsync(&a.volume, a.s); }},
    {"copy_peer_async", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemcpyPeerAsync(a.p + 64, a.context, a.p, a.context, 64, a.s); }},
    {"prefetch", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemPrefetchAsync(a.managed, 64, a.device, 0, a.s); }},
    {"attach", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamAttachMemAsync(a.s, a.managed, 0, CU_MEM_ATTACH_GLOBAL); }},
    {"callback", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamAddCallback(a.s, Called, nullptr, 0); }},
    {"write_value", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamWriteValue32(a.s, a.p, 1, 0); }},
    {"wait_value", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamWaitValue32(a.s, a.p, 0, CU_STREAM_WAIT_VALUE_GEQ); }},
    {"pool_alloc", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MemAllocFromPoolAsync(kIgnored, 64, a.pool, a.s); }},
    {"event_record_with_flags", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.EventRecordWithFlags(a.e, a.s, 0); }},
    {"event_elapsed", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.EventElapsedTime(kIgnored, a.e, a.e); }},
    {"launch", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.LaunchKernel(a.f, 1, 1, 1, 1, 1, 1, 0, a.s, nullptr, nullptr); }},
    {"launch_default_stream", "INVALID_CONTEXT", "INVALID_HANDLE",
     [](Held& a) { return a.d.LaunchKernel(a.f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); }},
    {"launch_cooperative", "SUCCESS", "SUCCESS",
     [](Held& a) { return a.d.LaunchCooperativeKernel(a.f, 1, 1, 1, 1, 1, 1, 0, a.s, nullptr); }},
    {"graph_upload", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.GraphUpload(a.x, a.s); }},
    {"stream_flags", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamGetFlags(a.s, kIgnored); }},
    {"stream_priority", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamGetPriority(a.s, kIgnored); }},
    {"stream_id", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamGetId(a.s, kIgnored); }},
    {"stream_context", "SUCCESS", "SUCCESS", [](Held& a) { return ContextOf(a); }},
    {"stream_capturing", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamIsCapturing(a.s, kIgnored); }},
    {"stream_attributes", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.StreamCopyAttributes(a.s, a.s); }},
    {"fill", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemsetD8(a.p, 1, 64); }},
    {"fill_32", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemsetD32(a.p, 1, 16); }},
    {"fill_2d", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemsetD2D8(a.p, 64, 1, 16, 4); }},
    {"copy_to_host", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemcpyDtoH(a.h, a.p, 64); }},
    {"copy_within_device", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemcpyDtoD(a.p + 64, a.p, 64); }},
    {"copy", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.Memcpy(a.p + 64, a.p, 64); }},
    {"copy_2d", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.Memcpy2D(&a.plane); }},
    {"copy_3d", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.Memcpy3D(&a.volume); }},
    {"copy_peer", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemcpyPeer(a.p + 64, a.context, a.p, a.context, 64); }},
    {"copy_to_array", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemcpyHtoA(a.array, 0, a.h, 16); }},
    {"address_range", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemGetAddressRange(kIgnored, kIgnored, a.p); }},
    {"pointer_set_attribute", "SUCCESS", "SUCCESS",
     [](Held& a) { return a.d.PointerSetAttribute(&a.yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a.p); }},
    {"pinned_device_pointer", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemHostGetDevicePointer(kIgnored, a.h, 0); }},
    {"pinned_flags", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemHostGetFlags(kIgnored, a.h); }},
    {"advise", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.MemAdvise(a.managed, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, a.device); }},
    {"range_attribute", "INVALID_CONTEXT", "SUCCESS",
     [](Held& a) { return a.d.MemRangeGetAttribute(&a.word, sizeof(a.word), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a.managed, 64); }},
    {"ipc_memory", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.IpcGetMemHandle(kIgnored, a.p); }},
    {"ipc_event", "INVALID_CONTEXT", "crash", [](Held& a) { return a.d.IpcGetEventHandle(kIgnored, a.shared); }},
    {"array_descriptor", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.ArrayGetDescriptor(kIgnored, a.array); }},
    {"array_3d_descriptor", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.Array3DGetDescriptor(kIgnored, a.array); }},
    {"array_requirements", "INVALID_VALUE", "INVALID_VALUE", [](Held& a) { return a.d.ArrayGetMemoryRequirements(kIgnored, a.array, 0); }},
    {"mipmap_level", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MipmappedArrayGetLevel(kIgnored, a.mipmap, 0); }},
    {"mipmap_destroy", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.MipmappedArrayDestroy(a.mipmap); }},
    {"texture_create", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED",
     [](Held& a) { return a.d.TexObjectCreate(kIgnored, &a.resource, &a.sampling, nullptr); }},
    {"texture_destroy", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.TexObjectDestroy(a.texture); }},
    {"texture_resource", "INVALID_CONTEXT", "INVALID_VALUE", [](Held& a) { return a.d.TexObjectGetResourceDesc(kIgnored, a.texture); }},
    {"surface_create", "INVALID_CONTEXT", "PEER_ACCESS_NOT_ENABLED", [](Held& a) { return a.d.SurfObjectCreate(kIgnored, &a.resource); }},
    {"surface_destroy", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.SurfObjectDestroy(a.surface); }},
    {"module_function", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.ModuleGetFunction(kIgnored, a.m, "plain"); }},
    {"module_global", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.ModuleGetGlobal(kIgnored, kIgnored, a.m, "table"); }},
    {"function_attribute", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.FuncGetAttribute(kIgnored, CU_FUNC_ATTRIBUTE_NUM_REGS, a.f); }},
    {"function_set_attribute", "SUCCESS", "SUCCESS",
     [](Held& a) { return a.d.FuncSetAttribute(a.f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024); }},
    {"function_cache", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.FuncSetCacheConfig(a.f, CU_FUNC_CACHE_PREFER_L1); }},
    {"function_module", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.FuncGetModule(kIgnored, a.f); }},
    {"function_name", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.FuncGetName(kIgnored, a.f); }},
    {"function_load", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.FuncLoad(a.f); }},
    {"occupancy", "INVALID_CONTEXT", "SUCCESS",
     [](Held& a) { return a.d.OccupancyMaxActiveBlocksPerMultiprocessor(kIgnored, a.f, 64, 0); }},
    {"library_kernel", "SUCCESS", "SUCCESS", [](Held& a) { return a.d.LibraryGetKernel(kIgnored, a.l, "plain"); }},
    {"library_module", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.LibraryGetModule(kIgnored, a.l); }},
    {"library_global", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.LibraryGetGlobal(kIgnored, kIgnored, a.l, "table"); }},
    {"kernel_function", "INVALID_CONTEXT", "SUCCESS", [](Held& a) { return a.d.KernelGetFunction(kIgnored, a.k); }},
    {"kernel_attribute", "SUCCESS", "SUCCESS",
     [](Held& a) { return a.d.KernelGetAttribute(kIgnored, CU_FUNC_ATTRIBUTE_NUM_REGS, a.k, a.device.id); }},
    {"link_add", "SUCCESS", "SUCCESS",
     [](Held& a) {
       return a.d.LinkAddData(a.link, CU_JIT_INPUT_PTX, const_cast<char*>(kPtx), std::strlen(kPtx) + 1, "ptx", 0, nullptr, nullptr);
     }},
};

}  // namespace

void List(Questions& ask) {
  ListKind({ask, false});
  ListKind({ask, true});
  AskAway(ask, kRows);
}

}  // namespace cuaudit::contract::away_questions
