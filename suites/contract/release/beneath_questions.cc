// SPDX-License-Identifier: MIT
// What is destroyed while another object stands on it: what the other one still answers, and how it is released.
#include "suites/contract/context/away.h"
#include "suites/contract/graph/graph_furniture.h"

namespace cuaudit::contract::beneath_questions {
namespace {

constexpr CUDA_ARRAY3D_DESCRIPTOR kSurface{16, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SURFACE_LDST};
constexpr CUDA_ARRAY3D_DESCRIPTOR kLevels{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};

struct Bound {
  explicit Bound(Asker& a) {
    a.Prepare(a.d.Array3DCreate(&array, &kSurface));
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
  }
  CUarray array = nullptr;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC how{};
};

// Physical memory that is mapped and may be written.
struct Mapped {
  explicit Mapped(Asker& a) : p(a.MemAddressReserve(kGranule)), h(a.MemCreate(kGranule)) {
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a.Prepare(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
  }
  const CUdeviceptr p;
  const CUmemGenericAllocationHandle h;
};

// A pool with a block of it, whose bytes are 7.
struct Pooled {
  explicit Pooled(Asker& a) : s(a.StreamCreate()), pool(a.MemPoolCreate()) {
    a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s));
    a.Prepare(a.d.MemsetD8Async(p, 7, 4096, s));
    a.Prepare(a.d.StreamSynchronize(s));
  }
  const CUstream s;
  const CUmemoryPool pool;
  CUdeviceptr p = 0;
};

void SynchronizeContext(Asker& a) { a(a.d.CtxSynchronize(nullptr)); }

}  // namespace

void List(Questions& ask) {
  ask.Risky("beneath.array_of_a_surface", "SUCCESS x4", [](Ready& a, Bound& bound) {
    CUsurfObject surface = 0;
    a.Prepare(a.d.SurfObjectCreate(&surface, &bound.resource));
    a(a.d.ArrayDestroy(bound.array));
    a(a.d.SurfObjectGetResourceDesc(&bound.resource, surface));
    a(a.d.SurfObjectDestroy(surface));
    SynchronizeContext(a);
  });
  ask.Risky("beneath.array_of_two_textures", "SUCCESS x5", [](Ready& a, Bound& bound) {
    CUtexObject one = 0, two = 0;
    a.Prepare(a.d.TexObjectCreate(&one, &bound.resource, &bound.how, nullptr));
    a.Prepare(a.d.TexObjectCreate(&two, &bound.resource, &bound.how, nullptr));
    a(a.d.ArrayDestroy(bound.array));
    a(a.d.TexObjectGetTextureDesc(&bound.how, two));
    a(a.d.TexObjectDestroy(two));
    a(a.d.TexObjectDestroy(one));
    SynchronizeContext(a);
  });
  ask.Risky("beneath.mipmap_of_a_texture", "SUCCESS x3", [](Ready& a) {
    CUmipmappedArray mipmap = nullptr;
    CUtexObject texture = 0;
    CUDA_RESOURCE_DESC resource{};
    const CUDA_TEXTURE_DESC how{};
    a.Prepare(a.d.MipmappedArrayCreate(&mipmap, &kLevels, 2));
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmap;
    a.Prepare(a.d.TexObjectCreate(&texture, &resource, &how, nullptr));
    a(a.d.MipmappedArrayDestroy(mipmap));
    a(a.d.TexObjectGetResourceDesc(&resource, texture));
    a(a.d.TexObjectDestroy(texture));
  });
  ask.Risky("beneath.memory_of_a_texture", "SUCCESS x3", [](Ready& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    CUtexObject texture = 0;
    CUDA_RESOURCE_DESC resource{};
    const CUDA_TEXTURE_DESC how{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = p;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 4096;
    a.Prepare(a.d.TexObjectCreate(&texture, &resource, &how, nullptr));
    a(a.d.MemFree(p));
    a(a.d.TexObjectGetResourceDesc(&resource, texture));
    a(a.d.TexObjectDestroy(texture));
  });
  ask.Risky("beneath.array_of_a_graph", "SUCCESS crash", [](Ready& a, const Bound& bound, Sketch& sketch) {
    const CUdeviceptr p = Cleared(a, 64);
    CUDA_MEMCPY3D copy = Sketch::CopyOf(p, 0, 16);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = bound.array;
    a.Prepare(a.d.GraphAddMemcpyNode(kIgnored, sketch.g, nullptr, 0, &copy, a.context));
    a(a.d.ArrayDestroy(bound.array));
    a(a.d.GraphInstantiateWithFlags(&sketch.x, sketch.g, 0));
  });
  ask.Risky("beneath.module_of_a_graph", "SUCCESS crash", [](Ready& a, Sketch& sketch) {
    const CUmodule m = a.ModuleLoadData();
    (void)sketch.Kernel(a.ModuleGetFunction(m, "plain"));
    a(a.d.ModuleUnload(m));
    a(a.d.GraphInstantiateWithFlags(&sketch.x, sketch.g, 0));
  });
  ask.Risky("beneath.module_of_an_executable", "SUCCESS x3", [](Ready& a, Sketch& sketch) {
    const CUmodule m = a.ModuleLoadData();
    (void)sketch.Kernel(a.ModuleGetFunction(m, "plain"));
    sketch.Instantiate();
    a(a.d.ModuleUnload(m));
    a(a.d.GraphLaunch(sketch.x, nullptr));
    SynchronizeContext(a);
  });
  ask.Risky("beneath.module_of_a_function", "SUCCESS INVALID_HANDLE", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    const CUfunction f = a.ModuleGetFunction(m, "plain");
    a(a.d.ModuleUnload(m));
    a(a.d.FuncGetAttribute(kIgnored, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
  });
  ask.Risky("beneath.module_of_a_global", "SUCCESS INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    const CUmodule m = a.ModuleLoadData();
    CUdeviceptr p = 0, found = 0;
    a.Prepare(a.d.ModuleGetGlobal(&p, nullptr, m, "table"));
    a(a.d.ModuleUnload(m));
    a(a.d.PointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
    unsigned char byte = 0;
    a(a.d.MemcpyHtoD(p, &byte, 1));
  });
  ask.Risky("beneath.library_of_a_kernel", "SUCCESS INVALID_HANDLE", [](Ready& a) {
    const CUlibrary l = a.LibraryLoadData();
    CUkernel k = nullptr;
    a.Prepare(a.d.LibraryGetKernel(&k, l, "plain"));
    a(a.d.LibraryUnload(l));
    a(a.d.KernelGetAttribute(kIgnored, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0));
  });
  ask.Risky("beneath.library_of_a_launched_kernel", "SUCCESS x3 INVALID_HANDLE", [](Ready& a) {
    const CUlibrary l = a.LibraryLoadData();
    CUkernel k = nullptr;
    a.Prepare(a.d.LibraryGetKernel(&k, l, "plain"));
    a(a.d.LaunchKernel(reinterpret_cast<CUfunction>(k), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    SynchronizeContext(a);
    a(a.d.LibraryUnload(l));
    a(a.d.LaunchKernel(reinterpret_cast<CUfunction>(k), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  });
  ask.Risky("beneath.library_of_a_function", "SUCCESS INVALID_HANDLE", [](Ready& a) {
    const CUlibrary l = a.LibraryLoadData();
    CUkernel k = nullptr;
    CUfunction f = nullptr;
    a.Prepare(a.d.LibraryGetKernel(&k, l, "plain"));
    a.Prepare(a.d.KernelGetFunction(&f, k));
    a(a.d.LibraryUnload(l));
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  });
  ask.Risky("beneath.library_of_a_module", "SUCCESS INVALID_HANDLE", [](Ready& a) {
    const CUlibrary l = a.LibraryLoadData();
    CUmodule m = nullptr;
    a.Prepare(a.d.LibraryGetModule(&m, l));
    a(a.d.LibraryUnload(l));
    a(a.d.ModuleGetFunction(kIgnored, m, "plain"));
  });
  ask.Risky("beneath.handle_of_a_mapping", "SUCCESS SUCCESS 9 SUCCESS SUCCESS", [](Ready& a, const Mapped& mapped) {
    a(a.d.MemRelease(mapped.h));
    a(a.d.MemsetD8(mapped.p, 9, 64));
    a.ByteAt(mapped.p);
    a(a.d.MemUnmap(mapped.p, kGranule));
    a(a.d.MemAddressFree(mapped.p, kGranule));
  });
  ask.Risky("beneath.reservation_of_a_mapping", "INVALID_VALUE SUCCESS 9 SUCCESS SUCCESS", [](Ready& a, const Mapped& mapped) {
    a(a.d.MemAddressFree(mapped.p, kGranule));
    a(a.d.MemsetD8(mapped.p, 9, 64));
    a.ByteAt(mapped.p);
    a(a.d.MemUnmap(mapped.p, kGranule));
    a(a.d.MemAddressFree(mapped.p, kGranule));
  });
  ask.Risky("beneath.mapping_of_a_pointer", "SUCCESS INVALID_VALUE x3", [](Ready& a, const Mapped& mapped) {
    CUdeviceptr found = 0;
    a(a.d.MemUnmap(mapped.p, kGranule));
    a(a.d.MemsetD8(mapped.p, 9, 64));
    a(a.d.MemcpyDtoDAsync(mapped.p, mapped.p + 64, 64, nullptr));
    a(a.d.PointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, mapped.p));
  });
  ask.Risky("beneath.pool_of_a_block", "SUCCESS 7 SUCCESS x3", [](Ready& a, const Pooled& pooled) {
    a(a.d.MemPoolDestroy(pooled.pool));
    a.ByteAt(pooled.p);
    a(a.d.MemsetD8(pooled.p, 8, 64));
    a(a.d.MemFreeAsync(pooled.p, pooled.s));
    a(a.d.StreamSynchronize(pooled.s));
  });
  ask.Risky("beneath.pool_of_a_block_freed_plainly", "SUCCESS SUCCESS INVALID_VALUE", [](Ready& a, const Pooled& pooled) {
    a(a.d.MemPoolDestroy(pooled.pool));
    a(a.d.MemFree(pooled.p));
    a(a.d.MemFree(pooled.p));
  });
  ask.Risky("beneath.pool_with_a_block", "SUCCESS INVALID_VALUE x3", [](Ready& a, const Pooled& pooled) {
    a(a.d.MemPoolDestroy(pooled.pool));
    a(a.d.MemPoolTrimTo(pooled.pool, 0));
    a(a.d.MemAllocFromPoolAsync(kIgnored, 64, pooled.pool, pooled.s));
    a(a.d.MemPoolDestroy(pooled.pool));
  });
  ask.Risky("beneath.pool_of_a_device", "SUCCESS x3", [](Ready& a, const Pooled& pooled) {
    CUdeviceptr p = 0;
    a.Prepare(a.d.DeviceSetMemPool(0, pooled.pool));
    a(a.d.MemPoolDestroy(pooled.pool));
    a(a.d.MemAllocAsync(&p, 64, pooled.s));
    a(a.d.MemFreeAsync(p, pooled.s));
  });
  ask.Risky("beneath.stream_of_pool_memory", "SUCCESS 7 SUCCESS", [](Ready& a, const Pooled& pooled) {
    a(a.d.StreamDestroy(pooled.s));
    a.ByteAt(pooled.p);
    a(a.d.MemFree(pooled.p));
  });
  ask.Risky("beneath.event_of_a_graph", "SUCCESS crash", [](Ready& a, Sketch& sketch) {
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.GraphAddEventRecordNode(kIgnored, sketch.g, nullptr, 0, e));
    a(a.d.EventDestroy(e));
    a(a.d.GraphInstantiateWithFlags(&sketch.x, sketch.g, 0));
  });
  ask.Risky("beneath.stream_of_a_capture", "SUCCESS crash", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUgraph g = nullptr;
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a.Prepare(a.d.LaunchHostFunc(s, Nothing, nullptr));
    a(a.d.StreamDestroy(s));
    a(a.d.StreamEndCapture(s, &g));
  });
  ask.Risky("beneath.stream_of_a_capture_of_this_thread", "SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    a(a.d.StreamDestroy(s));
    a(a.d.MemAlloc(kIgnored, 64));
  });
  ask.Risky("beneath.forked_stream_of_a_capture", "SUCCESS STREAM_CAPTURE_UNJOINED 0", [](Ready& a) {
    const CUstream s = a.StreamCreate(), t = a.StreamCreate();
    const CUevent e = a.EventCreate();
    CUgraph g = nullptr;
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.StreamWaitEvent(t, e, 0));
    a.Prepare(a.d.LaunchHostFunc(t, Nothing, nullptr));
    a(a.d.StreamDestroy(t));
    a(a.d.StreamEndCapture(s, &g));
    a.Value(g != nullptr);
  });
  ask.Risky("beneath.event_of_a_capture", "SUCCESS SUCCESS 1", [](Ready& a) {
    const CUstream s = a.StreamCreate(), t = a.StreamCreate();
    const CUevent e = a.EventCreate(), back = a.EventCreate();
    CUgraph g = nullptr;
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.StreamWaitEvent(t, e, 0));
    a(a.d.EventDestroy(e));
    a.Prepare(a.d.EventRecord(back, t));
    a.Prepare(a.d.StreamWaitEvent(s, back, 0));
    a(a.d.StreamEndCapture(s, &g));
    a.Value(g != nullptr);
  });
  ask.Risky("beneath.graph_of_a_capture", "ILLEGAL_STATE SUCCESS", [](Ready& a, Sketch& sketch) {
    const CUstream s = a.StreamCreate();
    CUgraph g = nullptr;
    a.Prepare(a.d.StreamBeginCaptureToGraph(s, sketch.g, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    a(a.d.GraphDestroy(sketch.g));
    sketch.g = nullptr;
    a(a.d.StreamEndCapture(s, &g));
  });
  ask.Risky("beneath.graph_of_an_executable", "SUCCESS x3", [](Ready& a, Sketch& sketch) {
    (void)sketch.Host();
    sketch.Instantiate();
    a(a.d.GraphDestroy(sketch.g));
    sketch.g = nullptr;
    a(a.d.GraphLaunch(sketch.x, nullptr));
    SynchronizeContext(a);
  });
  ask.Risky("beneath.graph_inside_a_graph", "SUCCESS x4", [](Ready& a, Sketch& inner, Sketch& outer) {
    (void)inner.Host();
    a.Prepare(a.d.GraphAddChildGraphNode(kIgnored, outer.g, nullptr, 0, inner.g));
    a(a.d.GraphDestroy(inner.g));
    inner.g = nullptr;
    a(a.d.GraphInstantiateWithFlags(&outer.x, outer.g, 0));
    a(a.d.GraphLaunch(outer.x, nullptr));
    SynchronizeContext(a);
  });
  ask.Risky("beneath.context_of_an_executable", "SUCCESS crash", [](Ready& a, Sketch& sketch) {
    const CUcontext c = a.CtxCreate();
    (void)sketch.Kernel(a.ModuleGetFunction("plain"));
    sketch.Instantiate();
    a(a.d.CtxDestroy(c));
    a.Prepare(a.d.CtxSetCurrent(a.context));
    a(a.d.GraphExecDestroy(sketch.x));
    sketch.x = nullptr;
    a(a.d.GraphDestroy(sketch.g));
    sketch.g = nullptr;
  });
  ask.Risky("beneath.context_of_a_link", "SUCCESS SUCCESS", [](Ready& a) {
    const CUcontext c = a.CtxCreate();
    CUlinkState link = nullptr;
    a.Prepare(a.d.LinkCreate(0, nullptr, nullptr, &link));
    a(a.d.CtxDestroy(c));
    a.Prepare(a.d.CtxSetCurrent(a.context));
    a(a.d.LinkDestroy(link));
  });
  ask.Risky("beneath.primary_of_a_green_context", "SUCCESS x4", [](Initialised& a) {
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(c));
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.StreamSynchronize(s));
    a(a.d.StreamDestroy(s));
    a(a.d.GreenCtxDestroy(green));
  });
  ask.Risky("beneath.green_context_of_an_event", "SUCCESS x3", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.GreenCtxRecordEvent(green, e));
    a(a.d.GreenCtxDestroy(green));
    a(a.d.EventSynchronize(e));
    a(a.d.EventDestroy(e));
  });
  ask.Risky("beneath.link_of_a_module", "SUCCESS x5", [](Ready& a) {
    CUlinkState link = nullptr;
    CUmodule m = nullptr;
    void* image = nullptr;
    std::size_t bytes = 0;
    a.Prepare(a.d.LinkCreate(0, nullptr, nullptr, &link));
    std::string ptx = kPtx;
    a.Prepare(a.d.LinkAddData(link, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, "ptx", 0, nullptr, nullptr));
    a(a.d.LinkComplete(link, &image, &bytes));
    a(a.d.ModuleLoadData(&m, image));
    a(a.d.LinkDestroy(link));
    a(a.d.ModuleGetFunction(kIgnored, m, "plain"));
    a(a.d.ModuleUnload(m));
  });
  ask.Risky("beneath.user_object_of_a_graph", "SUCCESS 0 SUCCESS", [](Ready& a, Sketch& sketch) {
    static int died;
    died = 0;
    CUuserObject u = nullptr;
    a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    a.Prepare(a.d.GraphRetainUserObject(sketch.g, u, 1, 0));
    a(a.d.UserObjectRelease(u, 1));
    a.Value(died);
    a(a.d.GraphReleaseUserObject(sketch.g, u, 1));
  });
}

}  // namespace cuaudit::contract::beneath_questions
