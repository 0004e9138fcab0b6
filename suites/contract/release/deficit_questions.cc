// SPDX-License-Identifier: MIT
// What is given back that nobody holds: null, what was given back already, and what is somebody else's.
#include <string>

#include "suites/contract/context/away.h"
#include "suites/contract/graph/graph_furniture.h"
#include "suites/contract/question.h"

// Releases of null: what they answer, with a context and without one, and whether they make a primary context.
namespace cuaudit::contract::deficit_questions {
namespace {

struct Row {
  const char* name;
  const char* with;     // the primary context is current
  const char* without;  // no context ever was; then whether there is a primary one
  CUresult (*call)(const Driver& d);
};

constexpr Row kRows[] = {
    {"texture_destroy", "SUCCESS", "INVALID_CONTEXT 0", [](const Driver& d) { return d.TexObjectDestroy(0); }},
    {"surface_destroy", "SUCCESS", "INVALID_CONTEXT 0", [](const Driver& d) { return d.SurfObjectDestroy(0); }},
    {"texture_reference_destroy", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.TexRefDestroy(nullptr); }},
    {"graph_destroy", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.GraphDestroy(nullptr); }},
    {"exec_destroy", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.GraphExecDestroy(nullptr); }},
    {"node_destroy", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.GraphDestroyNode(nullptr); }},
    {"user_object_release", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.UserObjectRelease(nullptr, 1); }},
    {"graph_release_object", "INVALID_VALUE", "INVALID_VALUE 0",
     [](const Driver& d) { return d.GraphReleaseUserObject(nullptr, nullptr, 1); }},
    {"stream_destroy", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.StreamDestroy(nullptr); }},
    {"legacy_stream_destroy", "INVALID_HANDLE", "INVALID_CONTEXT 0", [](const Driver& d) { return d.StreamDestroy(CU_STREAM_LEGACY); }},
    {"thread_stream_destroy", "INVALID_HANDLE", "INVALID_CONTEXT 0", [](const Driver& d) { return d.StreamDestroy(CU_STREAM_PER_THREAD); }},
    {"event_destroy", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.EventDestroy(nullptr); }},
    {"array_destroy", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.ArrayDestroy(nullptr); }},
    {"mipmap_destroy", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.MipmappedArrayDestroy(nullptr); }},
    {"module_unload", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.ModuleUnload(nullptr); }},
    {"library_unload", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.LibraryUnload(nullptr); }},
    {"link_destroy", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.LinkDestroy(nullptr); }},
    {"pool_destroy", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.MemPoolDestroy(nullptr); }},
    {"memory_free", "SUCCESS", "SUCCESS 0", [](const Driver& d) { return d.MemFree(0); }},
    {"memory_free_async", "SUCCESS", "INVALID_CONTEXT 0", [](const Driver& d) { return d.MemFreeAsync(0, nullptr); }},
    {"pinned_free", "SUCCESS", "SUCCESS 0", [](const Driver& d) { return d.MemFreeHost(nullptr); }},
    {"unregister", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.MemHostUnregister(nullptr); }},
    {"physical_release", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.MemRelease(0); }},
    {"address_free", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.MemAddressFree(0, 0); }},
    {"address_free_of_bytes", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.MemAddressFree(0, kGranule); }},
    {"unmap", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.MemUnmap(0, 0); }},
    {"unmap_bytes", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.MemUnmap(0, kGranule); }},
    {"ipc_close", "INVALID_VALUE", "INVALID_CONTEXT 0", [](const Driver& d) { return d.IpcCloseMemHandle(0); }},
    {"external_memory_destroy", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.DestroyExternalMemory(nullptr); }},
    {"external_semaphore_destroy", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.DestroyExternalSemaphore(nullptr); }},
    {"graphics_unregister", "INVALID_HANDLE", "INVALID_HANDLE 0", [](const Driver& d) { return d.GraphicsUnregisterResource(nullptr); }},
    {"context_destroy", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.CtxDestroy(nullptr); }},
    {"context_detach", "INVALID_CONTEXT", "INVALID_CONTEXT 0", [](const Driver& d) { return d.CtxDetach(nullptr); }},
    {"green_destroy", "INVALID_CONTEXT", "INVALID_CONTEXT 0", [](const Driver& d) { return d.GreenCtxDestroy(nullptr); }},
    {"notification_end", "INVALID_VALUE", "INVALID_VALUE 0",
     [](const Driver& d) { return d.DeviceUnregisterAsyncNotification(0, nullptr); }},
    {"log_end", "INVALID_VALUE", "INVALID_VALUE 0", [](const Driver& d) { return d.LogsUnregisterCallback(nullptr); }},
};

void Active(Asker& a) {
  unsigned flags = 0;
  int active = -1;
  a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
}

void IsCurrent(Asker& a, CUcontext context) {
  CUcontext current = nullptr;
  a.Prepare(a.d.CtxGetCurrent(&current));
  a.Value(current == context);
}

// The primary context is held twice, as by a program and by a library in it, and current.
struct Twice : Initialised {
  explicit Twice(const Asker& asker) : Initialised(asker), c(DevicePrimaryCtxRetain()) {
    DevicePrimaryCtxRetain();
    Prepare(d.CtxSetCurrent(c));
  }
  const CUcontext c;
};

struct Mapped {
  explicit Mapped(Asker& a) : p(a.MemAddressReserve(kGranule)), h(a.MemCreate(kGranule)) { a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0)); }
  const CUdeviceptr p;
  const CUmemGenericAllocationHandle h;
};

}  // namespace

void List(Questions& ask) {
  for (const Row& row : kRows) {
    ask.Risky(std::string("null.") + row.name, row.with, [call = row.call](Ready& a) { a(call(a.d)); });
    ask.Risky(std::string("null_without.") + row.name, row.without, [call = row.call](Initialised& a) {
      a(call(a.d));
      Active(a);
    });
  }

  // What is given back once too often, or by someone who does not hold it.
  ask.Risky("deficit.pop_empty", "INVALID_CONTEXT 1 0", [](Initialised& a) {
    CUcontext popped = reinterpret_cast<CUcontext>(8);
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == reinterpret_cast<CUcontext>(8));
    Active(a);
  });
  ask.Risky("deficit.pop_twice", "SUCCESS 1 INVALID_CONTEXT", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    CUcontext popped = nullptr;
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == c);
    a(a.d.CtxPopCurrent(&popped));
  });
  ask.Risky("deficit.pop_after_refused_push", "INVALID_VALUE SUCCESS 1 1 INVALID_CONTEXT", [](Ready& a) {
    CUcontext popped = nullptr;
    a(a.d.CtxPushCurrent(nullptr));
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == a.context);
    IsCurrent(a, nullptr);
    a(a.d.MemAlloc(kIgnored, 64));
  });
  ask.Risky("deficit.pop_after_refused_create", "INVALID_DEVICE SUCCESS 1 1", [](Ready& a) {
    CUcontext popped = nullptr;
    a(a.d.CtxCreate(kIgnored, nullptr, 0, 99));
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == a.context);
    IsCurrent(a, nullptr);
  });
  ask.Risky("deficit.pop_of_a_set_context", "SUCCESS SUCCESS 1 INVALID_CONTEXT", [](Initialised& a) {
    const CUcontext c = a.DevicePrimaryCtxRetain();
    CUcontext popped = nullptr;
    a(a.d.CtxSetCurrent(c));
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == c);
    a(a.d.CtxPopCurrent(&popped));
  });
  ask.Risky("deficit.primary_once_too_often", "SUCCESS 1 SUCCESS 0 INVALID_CONTEXT 0", [](Twice& a) {
    a(a.d.DevicePrimaryCtxRelease(0));
    Active(a);
    a(a.d.DevicePrimaryCtxRelease(0));
    Active(a);
    a(a.d.DevicePrimaryCtxRelease(0));
    Active(a);
  });
  ask.Risky("deficit.primary_of_another_holder", "CONTEXT_IS_DESTROYED x3 INVALID_CONTEXT", [](Twice& a) {
    const CUdeviceptr p = a.MemAlloc(64);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.MemAlloc(kIgnored, 64));
    a(a.d.MemFree(p));
    a(a.d.StreamCreate(kIgnored, 0));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Risky("deficit.primary_of_another_device", "INVALID_DEVICE", [](Ready& a) { a(a.d.DevicePrimaryCtxRelease(99)); });
  ask.Risky("deficit.unregister_twice", "SUCCESS HOST_MEMORY_NOT_REGISTERED", [](Ready& a) {
    alignas(4096) static char page[4096];
    a.Prepare(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemHostUnregister(page));
    a(a.d.MemHostUnregister(page));
  });
  ask.Risky("deficit.register_twice", "SUCCESS HOST_MEMORY_ALREADY_REGISTERED SUCCESS HOST_MEMORY_NOT_REGISTERED", [](Ready& a) {
    alignas(4096) static char page[4096];
    a(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemHostUnregister(page));
    a(a.d.MemHostUnregister(page));
  });
  ask.Risky("deficit.unmap_twice", "SUCCESS x3 INVALID_VALUE", [](Ready& a, const Mapped& mapped) {
    a(a.d.MemUnmap(mapped.p, kGranule));
    a(a.d.MemUnmap(mapped.p, kGranule));
    a(a.d.MemAddressFree(mapped.p, kGranule));
    a(a.d.MemUnmap(mapped.p, kGranule));
  });
  ask.Risky("deficit.release_once_too_often_while_mapped", "SUCCESS INVALID_VALUE SUCCESS SUCCESS 3 SUCCESS",
            [](Ready& a, const Mapped& mapped) {
              a(a.d.MemRelease(mapped.h));
              a(a.d.MemRelease(mapped.h));
              a(a.d.MemSetAccess(mapped.p, kGranule, &kReadWrite, 1));
              a(a.d.MemsetD8(mapped.p, 3, 64));
              a.ByteAt(mapped.p);
              a(a.d.MemUnmap(mapped.p, kGranule));
            });
  ask.Risky("deficit.address_free_twice", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    a(a.d.MemAddressFree(p, kGranule));
    a(a.d.MemAddressFree(p, kGranule));
  });
  ask.Risky("deficit.texture_reference_destroy_twice", "SUCCESS crash", [](Ready& a) {
    CUtexref t = nullptr;
    a.Prepare(a.d.TexRefCreate(&t));
    a(a.d.TexRefDestroy(t));
    a(a.d.TexRefDestroy(t));
  });
  ask.Risky("deficit.mipmap_destroy_twice", "SUCCESS crash", [](Ready& a) {
    CUmipmappedArray mipmap = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    a.Prepare(a.d.MipmappedArrayCreate(&mipmap, &shape, 2));
    a(a.d.MipmappedArrayDestroy(mipmap));
    a(a.d.MipmappedArrayDestroy(mipmap));
  });
  ask.Risky("deficit.link_destroy_twice", "SUCCESS crash", [](Ready& a) {
    CUlinkState link = nullptr;
    a.Prepare(a.d.LinkCreate(0, nullptr, nullptr, &link));
    a(a.d.LinkDestroy(link));
    a(a.d.LinkDestroy(link));
  });
  ask.Risky("deficit.graph_object_released_for_another", "SUCCESS SUCCESS crash", [](Ready& a, Sketch& one, Sketch& two) {
    static int died;
    died = 0;
    CUuserObject u = nullptr;
    a.Prepare(a.d.UserObjectCreate(&u, &died, Bump, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    a.Prepare(a.d.GraphRetainUserObject(one.g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
    a(a.d.GraphReleaseUserObject(two.g, u, 1));
    a(a.d.UserObjectRelease(u, 1));
  });
  ask.Risky("deficit.notification_end_twice", "SUCCESS crash", [](Ready& a) {
    CUasyncCallbackHandle handle = nullptr;
    a.Prepare(a.d.DeviceRegisterAsyncNotification(
        0, [](CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}, nullptr, &handle));
    a(a.d.DeviceUnregisterAsyncNotification(0, handle));
    a(a.d.DeviceUnregisterAsyncNotification(0, handle));
  });
  ask.Risky("deficit.end_capture_twice", "SUCCESS ILLEGAL_STATE 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUgraph g = nullptr;
    a.Prepare(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    a(a.d.StreamEndCapture(s, &g));
    a(a.d.StreamEndCapture(s, &g));
    a.Value(g == nullptr);
  });
  ask.Risky("deficit.peer_disabled_twice", "PEER_ACCESS_NOT_ENABLED PEER_ACCESS_NOT_ENABLED", [](Ready& a) {
    a(a.d.CtxDisablePeerAccess(a.CtxCreate()));
    a(a.d.CtxDisablePeerAccess(a.context));
  });
  ask.Risky("deficit.green_context_by_its_view", "INVALID_CONTEXT SUCCESS", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    CUcontext view = nullptr;
    a.Prepare(a.d.CtxFromGreenCtx(&view, green));
    a(a.d.CtxDetach(view));
    a(a.d.GreenCtxDestroy(green));
  });
}

}  // namespace cuaudit::contract::deficit_questions
