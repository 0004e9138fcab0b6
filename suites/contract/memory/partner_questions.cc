// SPDX-License-Identifier: MIT
// The part of each question that runs in a second process. The first process sends handles and bytes over a socket, in the order in which
// this part receives them.
#include <unistd.h>

#include "suites/contract/partner.h"

namespace cuaudit::contract::partner_questions {
namespace {

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

}  // namespace cuaudit::contract::partner_questions
