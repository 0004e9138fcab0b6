// SPDX-License-Identifier: MIT
// What each call that takes a handle answers when no context is current, and when another one than the object's is.
#include <cstring>

#include "suites/contract/context/away.h"

namespace cuaudit::contract::away_questions {
namespace {

void Called(CUstream, CUresult, void*) {}

// More objects of the context that is left.
struct Held : Away {
  Held(const Asker& asker, bool elsewhere) : Away(asker, elsewhere) {
    Prepare(d.CtxPushCurrent(context));
    const CUDA_ARRAY3D_DESCRIPTOR levels{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    managed = MemAllocManaged(4096);
    Prepare(d.EventRecord(e, s));
    Prepare(d.StreamSynchronize(s));
    shared = EventCreate(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    Prepare(d.MemsetD8(p, 0, 4096));
    Prepare(d.MipmappedArrayCreate(&mipmap, &levels, 2));
    const CUDA_ARRAY3D_DESCRIPTOR bound{16, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SURFACE_LDST};
    Prepare(d.Array3DCreate(&surfaced, &bound));
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = surfaced;
    Prepare(d.TexObjectCreate(&texture, &resource, &sampling, nullptr));
    Prepare(d.SurfObjectCreate(&surface, &resource));
    f = ModuleGetFunction(m, "plain");
    Prepare(d.LibraryGetKernel(&k, l, "plain"));
    plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    plane.srcDevice = p;
    plane.dstDevice = p + 2048;
    plane.srcPitch = plane.dstPitch = 64;
    plane.WidthInBytes = 16;
    plane.Height = 4;
    volume.srcMemoryType = volume.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    volume.srcDevice = p;
    volume.dstDevice = p + 2048;
    volume.srcPitch = volume.dstPitch = 64;
    volume.srcHeight = volume.dstHeight = 4;
    volume.WidthInBytes = 16;
    volume.Height = 4;
    volume.Depth = 2;
    CtxPopCurrent();
  }

  CUdeviceptr managed = 0;
  CUevent shared = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUarray surfaced = nullptr;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  CUfunction f = nullptr;
  CUkernel k = nullptr;
  CUDA_MEMCPY2D plane{};
  CUDA_MEMCPY3D volume{};
  CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned yes = 1;
  unsigned word = 0;
};

CUresult ContextOf(Held& a) {
#if CUDA_VERSION >= 13000
  return a.d.StreamGetCtx(a.s, kIgnored, kIgnored);
#else
  return a.d.StreamGetCtx(a.s, kIgnored);
#endif
}

struct Row {
  const char* name;
  const char* none;
  const char* elsewhere;
  CUresult (*call)(Held&);
};

constexpr Row kRows[] = {
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
  for (const Row& row : kRows) {
    for (const bool elsewhere : {false, true}) {
      ask.Risky(std::string(elsewhere ? "elsewhere." : "none.") + row.name, elsewhere ? row.elsewhere : row.none,
                [call = row.call, elsewhere](Asker& asker) {
                  Held a(asker, elsewhere);
                  a(call(a));
                  a.Return();
                  (void)a.d.CtxSynchronize(nullptr);
                });
    }
  }
}

}  // namespace cuaudit::contract::away_questions
