// SPDX-License-Identifier: MIT
// Memory and events between two processes. What the second one does: partner_questions.cc.
#include <unistd.h>

#include "suites/contract/partner.h"

namespace cuaudit::contract::ipc_questions {
namespace {

// Memory whose bytes are 42, and its handle.
struct Shared {
  explicit Shared(Asker& a, std::size_t bytes = kGranule) {
    a.Prepare(a.d.MemAlloc(&p, bytes));
    a.Prepare(a.d.MemsetD8(p, 42, bytes));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.IpcGetMemHandle(&handle, p));
  }
  CUdeviceptr p = 0;
  CUipcMemHandle handle{};
};

// The answer of a second process in `role` that is given the handles.
template <typename... Handle>
void Tell(Asker& a, const char* role, const Handle&... handles) {
  Partner partner(a, role);
  (partner.Give(&handles, sizeof(handles)), ...);
  partner.Finish();
}

}  // namespace

void List(Questions& ask) {
  ask.Risky("ipc.handle", "SUCCESS SUCCESS 1 SUCCESS INVALID_VALUE", [](Ready& a) {
    CUipcMemHandle first{}, second{};
    const CUdeviceptr p = a.MemAlloc(kGranule);
    a(a.d.IpcGetMemHandle(&first, p));
    a(a.d.IpcGetMemHandle(&second, p));
    a.Value(std::string(first.reserved, sizeof(first)) == std::string(second.reserved, sizeof(second)));
    a(a.d.IpcGetMemHandle(&second, p + 4096));
    a(a.d.IpcGetMemHandle(nullptr, p));
  });
  ask.Risky("ipc.handle_of_others", "INVALID_VALUE x5", [](Ready& a) {
    CUipcMemHandle handle{};
    const CUdeviceptr managed = a.MemAllocManaged(4096);
    void* const pinned = a.MemAllocHost(4096);
    const CUdeviceptr ordered = a.MemAllocAsync(4096, nullptr), freed = a.MemAlloc(4096);
    a.Prepare(a.d.MemFree(freed));
    a(a.d.IpcGetMemHandle(&handle, managed));
    a(a.d.IpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(pinned)));
    a(a.d.IpcGetMemHandle(&handle, ordered));
    a(a.d.IpcGetMemHandle(&handle, freed));
    a(a.d.IpcGetMemHandle(&handle, 0));
  });
  ask.Risky("ipc.open_here", "INVALID_CONTEXT",
            [](Ready& a, const Shared& shared) { a(a.d.IpcOpenMemHandle(kIgnored, shared.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)); });
  ask.Risky("ipc.open_bad", "INVALID_VALUE x4 SUCCESS", [](Ready& a, const Shared& shared) {
    Tell(a, "bad", shared.handle);
    a(a.d.MemFree(shared.p));
  });
  ask.Risky("ipc.close_bad", "INVALID_VALUE x3", [](Ready& a, const Shared& shared) {
    a(a.d.IpcCloseMemHandle(shared.p));
    a(a.d.IpcCloseMemHandle(0));
    a(a.d.IpcCloseMemHandle(0x1234567800));
  });
  ask.Risky("ipc.bytes", "SUCCESS 42 SUCCESS SUCCESS INVALID_VALUE 43 SUCCESS", [](Ready& a, const Shared& shared) {
    Tell(a, "bytes", shared.handle);
    a.ByteAt(shared.p);
    a(a.d.MemFree(shared.p));
  });
  ask.Risky("ipc.inside", "SUCCESS 42 SUCCESS SUCCESS INVALID_VALUE 43 7", [](Ready& a, const Shared& shared) {
    CUipcMemHandle inside{};
    a.Prepare(a.d.MemsetD8(shared.p + 4096, 7, 4096));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.IpcGetMemHandle(&inside, shared.p + 4096));
    Tell(a, "bytes", inside);
    a.ByteAt(shared.p);
    a.ByteAt(shared.p + 4096);
  });
  ask.Risky("ipc.small_neighbours", "SUCCESS SUCCESS 42 9 SUCCESS 9 SUCCESS", [](Ready& a) {
    const Shared first(a, 4096);
    const Shared second(a, 4096);
    a.Prepare(a.d.MemsetD8(second.p, 9, 4096));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    Tell(a, "two", first.handle, second.handle);
  });
  ask.Risky("ipc.open_twice", "SUCCESS SUCCESS 1 SUCCESS 42 SUCCESS INVALID_VALUE",
            [](Ready& a, const Shared& shared) { Tell(a, "twice", shared.handle); });
  ask.Risky("ipc.foreign", "INVALID_VALUE INVALID_VALUE SUCCESS 1 2097152 SUCCESS 2 0 INVALID_VALUE SUCCESS INVALID_VALUE",
            [](Ready& a, const Shared& shared) { Tell(a, "foreign", shared.handle); });
  ask.Risky("ipc.free_while_open", "SUCCESS x3 42 SUCCESS", [](Ready& a, const Shared& shared) {
    Partner partner(a, "held");
    partner.Give(&shared.handle, sizeof(shared.handle));
    partner.AwaitNod();
    a(a.d.MemFree(shared.p));
    partner.Nod();
    partner.Finish();
  });
  ask.Risky("ipc.open_freed", "INVALID_VALUE", [](Ready& a, const Shared& shared) {
    a.Prepare(a.d.MemFree(shared.p));
    Tell(a, "careless", shared.handle);
  });
  ask.Risky("ipc.never_closed", "SUCCESS SUCCESS", [](Ready& a, const Shared& shared) {
    Tell(a, "careless", shared.handle);
    a(a.d.MemFree(shared.p));
  });
  ask.Risky("ipc.event_rules", "INVALID_VALUE INVALID_HANDLE SUCCESS SUCCESS INVALID_VALUE INVALID_CONTEXT", [](Ready& a) {
    CUevent e = nullptr;
    CUipcEventHandle handle{};
    a(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS));
    a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    a(a.d.IpcGetEventHandle(&handle, e));
    (void)a.d.EventDestroy(e);
    a(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    a(a.d.IpcGetEventHandle(&handle, e));
    a(a.d.IpcGetEventHandle(nullptr, e));
    a(a.d.IpcOpenEventHandle(kIgnored, handle));
  });
  ask.Risky("ipc.event_waited_for", "SUCCESS x4 8 SUCCESS", [](Ready& a, const Shared& shared) {
    CUipcEventHandle handle{};
    const CUstream s = a.StreamCreate();
    const CUevent e = a.EventCreate(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.IpcGetEventHandle(&handle, e));
    a.Prepare(a.d.MemsetD8Async(shared.p, 8, 4096, s));
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.StreamSynchronize(s));
    Tell(a, "wait_event", shared.handle, handle);
  });
  ask.Risky("ipc.event_recorded_there", "SUCCESS x7", [](Ready& a) {
    CUipcEventHandle handle{};
    const CUevent e = a.EventCreate(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.IpcGetEventHandle(&handle, e));
    Partner partner(a, "record_event");
    partner.Give(&handle, sizeof(handle));
    partner.AwaitNod();
    a(a.d.EventSynchronize(e));
    a(a.d.EventDestroy(e));
    partner.Nod();
    partner.Finish();
  });
  ask.Risky("ipc.foreign_event", "SUCCESS SUCCESS 0 INVALID_HANDLE INVALID_HANDLE SUCCESS SUCCESS MAP_FAILED", [](Ready& a) {
    CUipcEventHandle handle{};
    const CUevent e = a.EventCreate(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.IpcGetEventHandle(&handle, e));
    Tell(a, "foreign_event", handle);
  });
  ask.Risky("ipc.physical", "SUCCESS 0 SUCCESS SUCCESS 42 SUCCESS SUCCESS 43", [](Ready& a) {
    CUmemAllocationProp properties = MemoryOfDevice(kFd);
    int fd = -1;
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    const CUmemGenericAllocationHandle h = a.MemCreate(kGranule, properties);
    a.Prepare(a.d.MemMap(p, kGranule, 0, h, 0));
    a.Prepare(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    a.Prepare(a.d.MemsetD8(p, 42, kGranule));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.MemExportToShareableHandle(&fd, h, kFd, 0));
    Partner partner(a, "physical", fd);
    close(fd);
    partner.Finish();
    a.ByteAt(p);
  });
  ask.Risky("ipc.pool",
            "prepare:INVALID_VALUE SUCCESS SUCCESS 3 INVALID_VALUE INVALID_VALUE INVALID_VALUE 77 INVALID_VALUE INVALID_VALUE "
            "INVALID_VALUE prepare:INVALID_VALUE 0 INVALID_VALUE 1 SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS 0",
            [](Ready& a) {
              CUmemPoolProps properties = PoolOfDevice(kFd);
              CUmemPoolPtrExportData data{};
              CUdeviceptr p = 0;
              cuuint64_t used = 77;
              int fd = -1;
              const CUstream s = a.StreamCreate();
              const CUmemoryPool pool = a.MemPoolCreate(properties);
              a.Prepare(a.d.MemAllocFromPoolAsync(&p, 4096, pool, s));
              a.Prepare(a.d.MemsetD8Async(p, 42, 4096, s));
              a.Prepare(a.d.StreamSynchronize(s));
              a.Prepare(a.d.MemPoolExportPointer(&data, p));
              a.Prepare(a.d.MemPoolExportToShareableHandle(&fd, pool, kFd, 0));
              Partner partner(a, "pool", fd);
              close(fd);
              partner.Give(&data, sizeof(data));
              partner.Finish();
              a(a.d.MemFreeAsync(p, s));
              a.Prepare(a.d.StreamSynchronize(s));
              a.Values(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), used);
            });
}

}  // namespace cuaudit::contract::ipc_questions
