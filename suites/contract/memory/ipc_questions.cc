// SPDX-License-Identifier: MIT
// Memory and events between two processes: what the first one asks, and what the second one does.
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

template <typename T>
T Taken() {
  T value{};
  (void)PartnerTake(&value, sizeof(value));
  return value;
}

void Nod() { PartnerGive("!", 1); }
void AwaitNod() { (void)Taken<char>(); }

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

// The part of each question that runs in a second process. The first process sends handles and bytes over a socket, in the order in which
// this part receives them.
void ListPartners(Questions& ask) {
  // Reads the first byte, writes 43 over sixteen, closes, closes again.
  ask.Fresh("bytes", "", [](Ready& a) {
    const CUipcMemHandle handle = Taken<CUipcMemHandle>();
    CUdeviceptr p = 0;
    if (a(a.d.IpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) != CUDA_SUCCESS) return;
    a.ByteAt(p);
    a(a.d.MemsetD8(p, 43, 16));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a(a.d.IpcCloseMemHandle(p));
    a(a.d.IpcCloseMemHandle(p));
  });
  ask.Fresh("twice", "", [](Ready& a) {
    const CUipcMemHandle handle = Taken<CUipcMemHandle>();
    CUdeviceptr p = 0, q = 0;
    a(a.d.IpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    a(a.d.IpcOpenMemHandle(&q, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    a.Value(p == q);
    a(a.d.IpcCloseMemHandle(p));
    a.ByteAt(q);
    a(a.d.IpcCloseMemHandle(q));
    a(a.d.IpcCloseMemHandle(q));
  });
  ask.Fresh("two", "", [](Ready& a) {
    const CUipcMemHandle first = Taken<CUipcMemHandle>(), second = Taken<CUipcMemHandle>();
    CUdeviceptr p = 0, q = 0;
    a(a.d.IpcOpenMemHandle(&p, first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    a(a.d.IpcOpenMemHandle(&q, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    a.ByteAt(p);
    a.ByteAt(q);
    a(a.d.IpcCloseMemHandle(p));
    a.ByteAt(q);
    a(a.d.IpcCloseMemHandle(q));
  });
  ask.Fresh("bad", "", [](Ready& a) {
    CUipcMemHandle handle = Taken<CUipcMemHandle>();
    CUdeviceptr p = 0;
    a(a.d.IpcOpenMemHandle(&p, handle, 0));
    a(a.d.IpcOpenMemHandle(&p, handle, 2));
    a(a.d.IpcOpenMemHandle(nullptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    handle = {};
    a(a.d.IpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  });
  // What may be done with memory of another process.
  ask.Fresh("foreign", "", [](Ready& a) {
    const CUipcMemHandle handle = Taken<CUipcMemHandle>();
    CUdeviceptr p = 0, base = 0;
    std::size_t size = 0;
    unsigned value = 77;
    a.Prepare(a.d.IpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    a(a.d.MemFree(p));
    a(a.d.IpcGetMemHandle(kIgnored, p));
    a(a.d.MemGetAddressRange(&base, &size, p + 9));
    a.Value(base == p);
    a.Value(static_cast<long long>(size));
    a(a.d.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), value);
    a.Values(a.d.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), value);
    a(a.d.IpcCloseMemHandle(p + 256));
    a(a.d.IpcCloseMemHandle(p));
    a(a.d.IpcCloseMemHandle(0));
  });
  // The owner frees between the two nods.
  ask.Fresh("held", "", [](Ready& a) {
    const CUipcMemHandle handle = Taken<CUipcMemHandle>();
    CUdeviceptr p = 0;
    a(a.d.IpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    Nod();
    AwaitNod();
    unsigned char out = 0;
    a(a.d.MemcpyDtoH(&out, p, 1), out);
    a(a.d.IpcCloseMemHandle(p));
  });
  // Ends without closing.
  ask.Fresh("careless", "", [](Ready& a) {
    const CUipcMemHandle handle = Taken<CUipcMemHandle>();
    a(a.d.IpcOpenMemHandle(kIgnored, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  });
  ask.Fresh("wait_event", "", [](Ready& a) {
    const CUipcMemHandle memory = Taken<CUipcMemHandle>();
    const CUipcEventHandle handle = Taken<CUipcEventHandle>();
    CUdeviceptr p = 0;
    CUevent e = nullptr;
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.IpcOpenMemHandle(&p, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    a(a.d.IpcOpenEventHandle(&e, handle));
    a(a.d.StreamWaitEvent(s, e, 0));
    a(a.d.EventSynchronize(e));
    a(a.d.EventQuery(e));
    a.ByteAt(p);
    a(a.d.EventDestroy(e));
    a.Prepare(a.d.StreamSynchronize(s));
  });
  ask.Fresh("record_event", "", [](Ready& a) {
    const CUipcEventHandle handle = Taken<CUipcEventHandle>();
    CUevent e = nullptr;
    const CUstream s = a.StreamCreate();
    a(a.d.IpcOpenEventHandle(&e, handle));
    a(a.d.EventQuery(e));
    a(a.d.EventRecord(e, s));
    a.Prepare(a.d.StreamSynchronize(s));
    Nod();
    AwaitNod();
    a(a.d.EventQuery(e));
    a(a.d.EventDestroy(e));
  });
  ask.Fresh("foreign_event", "", [](Ready& a) {
    CUipcEventHandle handle = Taken<CUipcEventHandle>(), again{};
    CUevent e = nullptr, other = nullptr;
    a(a.d.IpcOpenEventHandle(&e, handle));
    a(a.d.IpcOpenEventHandle(&other, handle));
    a.Value(e == other);
    a(a.d.IpcGetEventHandle(&again, e));
    a(a.d.EventElapsedTime(kIgnored, e, e));
    a(a.d.EventDestroy(e));
    a(a.d.EventDestroy(other));
    handle = {};
    a(a.d.IpcOpenEventHandle(&e, handle));
  });
  // Physical memory by file descriptor.
  ask.Fresh("physical", "", [](Ready& a) {
    CUmemGenericAllocationHandle h = 0;
    CUmemAllocationProp properties{};
    a(a.d.MemImportFromShareableHandle(&h, reinterpret_cast<void*>(std::intptr_t{kInherited}), kFd));
    close(kInherited);
    a.Values(a.d.MemGetAllocationPropertiesFromHandle(&properties, h), properties.requestedHandleTypes);
    const CUdeviceptr p = a.MemAddressReserve(kGranule);
    a(a.d.MemMap(p, kGranule, 0, h, 0));
    a(a.d.MemSetAccess(p, kGranule, &kReadWrite, 1));
    a.ByteAt(p);
    a(a.d.MemsetD8(p, 43, 16));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.MemUnmap(p, kGranule));
    a(a.d.MemRelease(h));
  });
  ask.Fresh("pool", "", [](Ready& a) {
    CUmemPoolPtrExportData data = Taken<CUmemPoolPtrExportData>();
    CUmemoryPool pool = nullptr;
    CUdeviceptr p = 0, q = 0;
    CUmemAccess_flags flags{};
    CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    cuuint64_t value = 77;
    int fd = -1;
    const CUstream s = a.StreamCreate();
    a(a.d.MemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(std::intptr_t{kInherited}), kFd, 0));
    close(kInherited);
    a(a.d.MemPoolGetAccess(&flags, pool, &here), flags);
    a(a.d.MemAllocFromPoolAsync(&q, 4096, pool, s));
    a(a.d.DeviceSetMemPool(0, pool));
    a(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), value);
    a(a.d.MemPoolExportToShareableHandle(&fd, pool, kFd, 0));
    a(a.d.MemPoolTrimTo(pool, 0));
    a(a.d.MemPoolImportPointer(&p, pool, &data));
    a.ByteAt(p);
    a(a.d.MemPoolImportPointer(&q, pool, &data));
    a.Value(p == q);
    a(a.d.MemFreeAsync(p, s));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.StreamSynchronize(s));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Fresh("pool_pointer", "", [](Ready& a) {
    CUmemPoolPtrExportData data = Taken<CUmemPoolPtrExportData>();
    CUmemoryPool pool = nullptr;
    a(a.d.MemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(std::intptr_t{kInherited}), kFd, 0));
    a(a.d.MemPoolImportPointer(kIgnored, pool, &data));
  });
  ask.Fresh("pool_memory", "", [](Ready& a) {
    CUmemPoolPtrExportData data = Taken<CUmemPoolPtrExportData>();
    CUmemoryPool pool = nullptr;
    CUdeviceptr p = 0, q = 0;
    const CUstream s = a.StreamCreate();
    a(a.d.MemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(std::intptr_t{kInherited}), kFd, 0));
    if (a(a.d.MemPoolImportPointer(&p, pool, &data)) != CUDA_SUCCESS) return;
    a.ByteAt(p);
    a(a.d.MemPoolImportPointer(&q, pool, &data));
    a.Value(q == p);
    a(a.d.MemFreeAsync(p, s));
    a(a.d.MemFreeAsync(p, s));
    a(a.d.StreamSynchronize(s));
    a(a.d.MemPoolDestroy(pool));
  });
  ask.Fresh("two_contexts", "", [](Ready& a) {
    const CUipcMemHandle handle = Taken<CUipcMemHandle>();
    a(a.d.IpcOpenMemHandle(kIgnored, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    a.CtxCreate();
    a(a.d.IpcOpenMemHandle(kIgnored, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  });
}

}  // namespace cuaudit::contract::ipc_questions
