// SPDX-License-Identifier: MIT
// Releases of null: what they answer, with a context and without one, and whether they make a primary context.
#include <string>

#include "suites/contract/question.h"

namespace cuaudit::contract::null_questions {
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

}  // namespace

void List(Questions& ask) {
  for (const Row& row : kRows) {
    ask.Risky(std::string("null.") + row.name, row.with, [call = row.call](Ready& a) { a(call(a.d)); });
    ask.Risky(std::string("null_without.") + row.name, row.without, [call = row.call](Initialised& a) {
      a(call(a.d));
      Active(a);
    });
  }
}

}  // namespace cuaudit::contract::null_questions
