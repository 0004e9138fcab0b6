// SPDX-License-Identifier: MIT
// Memory and events between two processes. What the second one does: partner_questions.cc.
#include <unistd.h>

#include "suites/contract/partner.h"

namespace cuaudit::contract::ipc_questions {
namespace {

constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

int ByteAt(Asker& a, CUdeviceptr p) {
  unsigned char out = 0;
  a.Prepare(a.d.MemcpyDtoH(&out, p, 1));
  return out;
}

// Memory whose bytes are 42, and its handle.
struct Shared {
  explicit Shared(Asker& a, std::size_t bytes = kBytes) {
    a.Prepare(a.d.MemAlloc(&p, bytes));
    a.Prepare(a.d.MemsetD8(p, 42, bytes));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    a.Prepare(a.d.IpcGetMemHandle(&handle, p));
  }
  CUdeviceptr p = 0;
  CUipcMemHandle handle{};
};

constexpr Question kQuestions[] = {
    {"ipc.handle", "SUCCESS SUCCESS 1 SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUipcMemHandle first{};
       CUipcMemHandle second{};
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, kBytes));
       a(a.d.IpcGetMemHandle(&first, p));
       a(a.d.IpcGetMemHandle(&second, p));
       a.Value(std::string(first.reserved, sizeof(first)) == std::string(second.reserved, sizeof(second)));
       a(a.d.IpcGetMemHandle(&second, p + 4096));
       a(a.d.IpcGetMemHandle(nullptr, p));
       (void)a.d.MemFree(p);
     }},
    {"ipc.handle_of_others", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUipcMemHandle handle{};
       CUdeviceptr managed = 0;
       CUdeviceptr ordered = 0;
       CUdeviceptr freed = 0;
       void* pinned = nullptr;
       a.Prepare(a.d.MemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
       a.Prepare(a.d.MemAllocHost(&pinned, 4096));
       a.Prepare(a.d.MemAllocAsync(&ordered, 4096, nullptr));
       a.Prepare(a.d.MemAlloc(&freed, 4096));
       a.Prepare(a.d.MemFree(freed));
       a(a.d.IpcGetMemHandle(&handle, managed));
       a(a.d.IpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(pinned)));
       a(a.d.IpcGetMemHandle(&handle, ordered));
       a(a.d.IpcGetMemHandle(&handle, freed));
       a(a.d.IpcGetMemHandle(&handle, 0));
       (void)a.d.MemFree(managed);
       (void)a.d.MemFreeHost(pinned);
       (void)a.d.MemFree(ordered);
     }},
    {"ipc.open_here", "INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       CUdeviceptr p = 0;
       a(a.d.IpcOpenMemHandle(&p, shared.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
       (void)a.d.MemFree(shared.p);
     }},
    {"ipc.open_bad", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       Partner partner(a, "bad");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.Finish();
       a(a.d.MemFree(shared.p));
     }},
    {"ipc.close_bad", "INVALID_VALUE INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       a(a.d.IpcCloseMemHandle(shared.p));
       a(a.d.IpcCloseMemHandle(0));
       a(a.d.IpcCloseMemHandle(0x1234567800));
       (void)a.d.MemFree(shared.p);
     }},
    {"ipc.bytes", "SUCCESS 42 SUCCESS SUCCESS INVALID_VALUE 43 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       Partner partner(a, "bytes");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.Finish();
       a.Value(ByteAt(a, shared.p));
       a(a.d.MemFree(shared.p));
     }},
    {"ipc.inside", "SUCCESS 42 SUCCESS SUCCESS INVALID_VALUE 43 7", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       CUipcMemHandle inside{};
       a.Prepare(a.d.MemsetD8(shared.p + 4096, 7, 4096));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       a.Prepare(a.d.IpcGetMemHandle(&inside, shared.p + 4096));
       Partner partner(a, "bytes");
       partner.Give(&inside, sizeof(inside));
       partner.Finish();
       a.Value(ByteAt(a, shared.p));
       a.Value(ByteAt(a, shared.p + 4096));
       (void)a.d.MemFree(shared.p);
     }},
    {"ipc.small_neighbours", "SUCCESS SUCCESS 42 9 SUCCESS 9 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared first(a, 4096);
       const Shared second(a, 4096);
       a.Prepare(a.d.MemsetD8(second.p, 9, 4096));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       Partner partner(a, "two");
       partner.Give(&first.handle, sizeof(first.handle));
       partner.Give(&second.handle, sizeof(second.handle));
       partner.Finish();
       (void)a.d.MemFree(first.p);
       (void)a.d.MemFree(second.p);
     }},
    {"ipc.open_twice", "SUCCESS SUCCESS 1 SUCCESS 42 SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       Partner partner(a, "twice");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.Finish();
       (void)a.d.MemFree(shared.p);
     }},
    {"ipc.foreign", "INVALID_VALUE INVALID_VALUE SUCCESS 1 2097152 SUCCESS 2 0 INVALID_VALUE SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       Partner partner(a, "foreign");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.Finish();
       (void)a.d.MemFree(shared.p);
     }},
    {"ipc.free_while_open", "SUCCESS SUCCESS SUCCESS 42 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       Partner partner(a, "held");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.AwaitNod();
       a(a.d.MemFree(shared.p));
       partner.Nod();
       partner.Finish();
     }},
    {"ipc.open_freed", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       a.Prepare(a.d.MemFree(shared.p));
       Partner partner(a, "careless");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.Finish();
     }},
    {"ipc.never_closed", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       Partner partner(a, "careless");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.Finish();
       a(a.d.MemFree(shared.p));
     }},
    {"ipc.event_rules", "INVALID_VALUE INVALID_HANDLE SUCCESS SUCCESS INVALID_VALUE INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       CUevent opened = nullptr;
       CUipcEventHandle handle{};
       a(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS));
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
       a(a.d.IpcGetEventHandle(&handle, e));
       (void)a.d.EventDestroy(e);
       a(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
       a(a.d.IpcGetEventHandle(&handle, e));
       a(a.d.IpcGetEventHandle(nullptr, e));
       a(a.d.IpcOpenEventHandle(&opened, handle));
       (void)a.d.EventDestroy(e);
     }},
    {"ipc.event_waited_for", "SUCCESS SUCCESS SUCCESS SUCCESS 8 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const Shared shared(a);
       CUevent e = nullptr;
       CUstream s = nullptr;
       CUipcEventHandle handle{};
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.IpcGetEventHandle(&handle, e));
       a.Prepare(a.d.MemsetD8Async(shared.p, 8, 4096, s));
       a.Prepare(a.d.EventRecord(e, s));
       a.Prepare(a.d.StreamSynchronize(s));
       Partner partner(a, "wait_event");
       partner.Give(&shared.handle, sizeof(shared.handle));
       partner.Give(&handle, sizeof(handle));
       partner.Finish();
       (void)a.d.EventDestroy(e);
       (void)a.d.StreamDestroy(s);
       (void)a.d.MemFree(shared.p);
     }},
    {"ipc.event_recorded_there", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       CUipcEventHandle handle{};
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.IpcGetEventHandle(&handle, e));
       Partner partner(a, "record_event");
       partner.Give(&handle, sizeof(handle));
       partner.AwaitNod();
       a(a.d.EventSynchronize(e));
       a(a.d.EventDestroy(e));
       partner.Nod();
       partner.Finish();
     }},
    {"ipc.foreign_event", "SUCCESS SUCCESS 0 INVALID_HANDLE INVALID_HANDLE SUCCESS SUCCESS MAP_FAILED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUevent e = nullptr;
       CUipcEventHandle handle{};
       a.Prepare(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
       a.Prepare(a.d.IpcGetEventHandle(&handle, e));
       Partner partner(a, "foreign_event");
       partner.Give(&handle, sizeof(handle));
       partner.Finish();
       (void)a.d.EventDestroy(e);
     }},
    {"ipc.physical", "SUCCESS 0 SUCCESS SUCCESS 42 SUCCESS SUCCESS 43", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemAllocationProp properties{};
       properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.requestedHandleTypes = kFd;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
       CUmemGenericAllocationHandle h = 0;
       CUdeviceptr p = 0;
       int fd = -1;
       a.Prepare(a.d.MemAddressReserve(&p, kBytes, 0, 0, 0));
       a.Prepare(a.d.MemCreate(&h, kBytes, &properties, 0));
       a.Prepare(a.d.MemMap(p, kBytes, 0, h, 0));
       a.Prepare(a.d.MemSetAccess(p, kBytes, &access, 1));
       a.Prepare(a.d.MemsetD8(p, 42, kBytes));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       a.Prepare(a.d.MemExportToShareableHandle(&fd, h, kFd, 0));
       Partner partner(a, "physical", fd);
       close(fd);
       partner.Finish();
       a.Value(ByteAt(a, p));
       a.Prepare(a.d.MemUnmap(p, kBytes));
       a.Prepare(a.d.MemRelease(h));
       a.Prepare(a.d.MemAddressFree(p, kBytes));
     }},
    {"ipc.pool",
     "prepare:INVALID_VALUE SUCCESS SUCCESS 3 INVALID_VALUE INVALID_VALUE INVALID_VALUE 77 INVALID_VALUE INVALID_VALUE INVALID_VALUE "
     "prepare:INVALID_VALUE 0 INVALID_VALUE 1 SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS 0",
     Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmemPoolProps properties{};
       properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       properties.handleTypes = kFd;
       properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       CUmemoryPool pool = nullptr;
       CUmemPoolPtrExportData data{};
       CUdeviceptr p = 0;
       CUstream s = nullptr;
       cuuint64_t used = 77;
       int fd = -1;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.MemPoolCreate(&pool, &properties));
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
       a.Prepare(a.d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
       a.Value(static_cast<long long>(used));
       a.Prepare(a.d.MemPoolDestroy(pool));
       a.Prepare(a.d.StreamDestroy(s));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::ipc_questions

namespace cuaudit::contract {
std::span<const Question> IpcQuestions() { return ipc_questions::kQuestions; }
}  // namespace cuaudit::contract
