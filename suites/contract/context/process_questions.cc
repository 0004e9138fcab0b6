// SPDX-License-Identifier: MIT
// Calls before cuInit, in a forked child and in exit handlers.
#include <cstdlib>

#include "suites/contract/partner.h"

namespace cuaudit::contract::process_questions {
namespace {

// What the parent made before it forked, or a process before it exits.
struct Inherited {
  CUcontext c = nullptr;
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUdeviceptr p = 0;
  void* h = nullptr;
  CUgraph g = nullptr;
};
Inherited of;

template <typename A>
void Furnish(A& a) {
  (void)a.d.Init(0);
  (void)a.d.DevicePrimaryCtxRetain(&of.c, 0);
  (void)a.d.CtxSetCurrent(of.c);
  (void)a.d.StreamCreate(&of.s, CU_STREAM_NON_BLOCKING);
  (void)a.d.EventCreate(&of.e, 0);
  (void)a.d.MemAlloc(&of.p, 4096);
  (void)a.d.MemAllocHost(&of.h, 4096);
  (void)a.d.GraphCreate(&of.g, 0);
}

// Codes of a process whose driver is closing: everything that an exit handler might call.
Teller* teller = nullptr;
void TellLateCodes() {
  Teller& t = *teller;
  int value = 0;
  const char* text = nullptr;
  CUdeviceptr p = 0;
  CUcontext c = nullptr;
  t(t.d.DriverGetVersion(&value));
  t(t.d.GetErrorName(CUDA_SUCCESS, &text));
  t(t.d.DeviceGetCount(&value));
  t(t.d.CtxGetCurrent(&c));
  t(t.d.MemAlloc(&p, 16));
  t(t.d.MemFree(of.p));
  t(t.d.MemFreeHost(of.h));
  t(t.d.EventDestroy(of.e));
  t(t.d.StreamSynchronize(of.s));
  t(t.d.StreamDestroy(of.s));
  t(t.d.GraphDestroy(of.g));
  t(t.d.DevicePrimaryCtxRelease(0));
  t(t.d.Init(0));
}
bool tells_when_unloaded = false;
__attribute__((destructor)) void OnUnload() {
  if (tells_when_unloaded) TellLateCodes();
}

constexpr const char* kAlive = "SUCCESS x13";
constexpr const char* kClosed = "DEINITIALIZED x13";

}  // namespace

void List(Questions& ask) {
  ask.Fresh("before_init.words", "SUCCESS x3 NOT_INITIALIZED", [](Asker& a) {
    const char* text = nullptr;
    a(a.d.DriverGetVersion(kIgnored));
    a(a.d.GetErrorName(CUDA_SUCCESS, &text));
    a(a.d.GetErrorString(CUDA_SUCCESS, &text));
    a(a.d.ProfilerStop());
  });
  ask.Fresh("before_init.device", "NOT_INITIALIZED x6", [](Asker& a) {
    CUdevice device = 0;
    char name[64];
    int value = 0;
    a(a.d.DeviceGet(&device, 0));
    a(a.d.DeviceGetName(name, 64, 0));
    a(a.d.DeviceTotalMem(kIgnored, 0));
    a(a.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    a(a.d.DeviceGetDefaultMemPool(kIgnored, 0));
    a(a.d.DeviceCanAccessPeer(&value, 0, 0));
  });
  ask.Fresh("before_init.primary", "NOT_INITIALIZED x4", [](Asker& a) {
    a(a.d.DevicePrimaryCtxGetState(0, kIgnored, kIgnored));
    a(a.d.DevicePrimaryCtxSetFlags(0, 0));
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxReset(0));
  });
  ask.Fresh("before_init.context", "NOT_INITIALIZED x7 INVALID_VALUE", [](Asker& a) {
    CUcontext c = nullptr;
    a(a.d.CtxCreate(&c, nullptr, 0, 0));
    a(a.d.CtxSetCurrent(nullptr));
    a(a.d.CtxPushCurrent(nullptr));
    a(a.d.CtxPopCurrent(&c));
    a(a.d.CtxGetDevice(kIgnored, nullptr));
    a(a.d.CtxSynchronize(nullptr));
    a(a.d.CtxGetLimit(kIgnored, CU_LIMIT_STACK_SIZE));
    a(a.d.CtxDestroy(nullptr));
  });
  ask.Fresh("before_init.stream", "NOT_INITIALIZED x3 INVALID_HANDLE NOT_INITIALIZED INVALID_HANDLE NOT_INITIALIZED NOT_INITIALIZED",
            [](Asker& a) {
              CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
              a(a.d.StreamCreate(kIgnored, 0));
              a(a.d.StreamSynchronize(nullptr));
              a(a.d.StreamQuery(nullptr));
              a(a.d.StreamDestroy(nullptr));
              a(a.d.EventCreate(kIgnored, 0));
              a(a.d.EventDestroy(nullptr));
              a(a.d.LaunchHostFunc(nullptr, Nothing, nullptr));
              a(a.d.ThreadExchangeStreamCaptureMode(&mode));
            });
  ask.Fresh("before_init.memory", "NOT_INITIALIZED x9", [](Asker& a) {
    static char page[4096];
    CUdeviceptr p = 0;
    a(a.d.MemGetInfo(kIgnored, kIgnored));
    a(a.d.MemFree(0));
    a(a.d.MemAllocHost(kIgnored, 16));
    a(a.d.MemFreeHost(nullptr));
    a(a.d.MemHostRegister(page, sizeof(page), 0));
    a(a.d.MemAllocAsync(&p, 16, nullptr));
    a(a.d.MemAllocManaged(&p, 16, CU_MEM_ATTACH_GLOBAL));
    a(a.d.MemsetD8(0x1000, 0, 16));
    a(a.d.MemcpyHtoD(0x1000, page, 16));
  });
  ask.Fresh("before_init.pointer", "NOT_INITIALIZED NOT_INITIALIZED", [](Asker& a) {
    unsigned type = 0;
    a(a.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1000));
    a(a.d.MemGetAddressRange(kIgnored, kIgnored, 0x1000));
  });
  ask.Fresh("before_init.virtual_memory", "NOT_INITIALIZED x5", [](Asker& a) {
    CUmemAllocationProp shape = MemoryOfDevice();
    CUmemPoolProps wish{};
    wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location = shape.location;
    a(a.d.MemGetAllocationGranularity(kIgnored, &shape, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    a(a.d.MemAddressReserve(kIgnored, std::size_t{2} << 20, 0, 0, 0));
    a(a.d.MemCreate(kIgnored, std::size_t{2} << 20, &shape, 0));
    a(a.d.MemUnmap(0x200000, std::size_t{2} << 20));
    a(a.d.MemPoolCreate(kIgnored, &wish));
  });
  ask.Fresh("before_init.code", "NOT_INITIALIZED x5", [](Asker& a) {
    a(a.d.ModuleLoadData(kIgnored, kPtx));
    a(a.d.ModuleUnload(nullptr));
    a(a.d.LibraryLoadData(kIgnored, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    a(a.d.LinkCreate(0, nullptr, nullptr, kIgnored));
    a(a.d.LaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  });
  ask.Fresh("before_init.graph", "NOT_INITIALIZED x4 SUCCESS", [](Asker& a) {
    a(a.d.GraphCreate(kIgnored, 0));
    a(a.d.GraphDestroy(nullptr));
    a(a.d.GraphLaunch(nullptr, nullptr));
    a(a.d.GraphExecDestroy(nullptr));
    a(a.d.UserObjectCreate(kIgnored, nullptr, Nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  });
  ask.Risky("before_init.null_outputs", "NOT_INITIALIZED x3 INVALID_VALUE NOT_INITIALIZED", [](Asker& a) {
    a(a.d.DeviceGetCount(nullptr));
    a(a.d.CtxGetCurrent(nullptr));
    a(a.d.MemAlloc(nullptr, 0));
    a(a.d.StreamCreate(nullptr, 0));
    a(a.d.MemGetInfo(nullptr, nullptr));
  });
  ask.Fresh("before_init.stays_after_refusal", "INVALID_VALUE NOT_INITIALIZED SUCCESS SUCCESS", [](Asker& a) {
    int count = 0;
    a(a.d.Init(1));
    a(a.d.DeviceGetCount(&count));
    a(a.d.Init(0));
    a(a.d.DeviceGetCount(&count));
  });
  ask.Fresh("forked.start", "SUCCESS SUCCESS NOT_INITIALIZED x3", [](Asker& a) {
    Furnish(a);
    InChild(a, [](Teller& t) {
      int value = 0;
      const char* text = nullptr;
      CUcontext c = nullptr;
      t(t.d.DriverGetVersion(&value));
      t(t.d.GetErrorName(CUDA_SUCCESS, &text));
      t(t.d.Init(0));
      t(t.d.DeviceGetCount(&value));
      t(t.d.CtxGetCurrent(&c));
    });
  });
  ask.Fresh("forked.memory", "NOT_INITIALIZED x5", [](Asker& a) {
    Furnish(a);
    InChild(a, [](Teller& t) {
      CUdeviceptr p = 0;
      std::size_t free = 0, total = 0;
      int value = 0;
      t(t.d.MemAlloc(&p, 16));
      t(t.d.MemGetInfo(&free, &total));
      t(t.d.MemcpyDtoH(&value, of.p, sizeof(value)));
      t(t.d.MemFreeHost(of.h));
      t(t.d.MemFree(of.p));
    });
  });
  ask.Fresh("forked.streams", "NOT_INITIALIZED SUCCESS x3 NOT_READY SUCCESS crash", [](Asker& a) {
    Furnish(a);
    InChild(a, [](Teller& t) {
      CUstream s = nullptr;
      t(t.d.StreamCreate(&s, 0));
      t(t.d.StreamQuery(of.s));
      t(t.d.StreamSynchronize(of.s));
      t(t.d.EventRecord(of.e, of.s));
      t(t.d.EventQuery(of.e));
      t(t.d.EventDestroy(of.e));
      t(t.d.StreamDestroy(of.s));
    });
  });
  ask.Fresh("forked.contexts", "NOT_INITIALIZED x7", [](Asker& a) {
    Furnish(a);
    InChild(a, [](Teller& t) {
      CUcontext c = nullptr;
      t(t.d.DevicePrimaryCtxRetain(&c, 0));
      t(t.d.CtxCreate(&c, nullptr, 0, 0));
      t(t.d.CtxSetCurrent(of.c));
      t(t.d.CtxSynchronize(nullptr));
      t(t.d.CtxPopCurrent(&c));
      t(t.d.DevicePrimaryCtxRelease(0));
      t(t.d.DevicePrimaryCtxReset(0));
    });
  });
  ask.Fresh("forked.code", "NOT_INITIALIZED NOT_INITIALIZED SUCCESS NOT_INITIALIZED NOT_INITIALIZED", [](Asker& a) {
    Furnish(a);
    InChild(a, [](Teller& t) {
      CUmodule m = nullptr;
      CUlibrary library = nullptr;
      CUgraph g = nullptr;
      t(t.d.ModuleLoadData(&m, kPtx));
      t(t.d.LibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
      t(t.d.LaunchHostFunc(of.s, Nothing, nullptr));
      t(t.d.GraphCreate(&g, 0));
      t(t.d.GraphDestroy(of.g));
    });
  });
  ask.Fresh("forked.pinned_bytes", "5", [](Asker& a) {
    Furnish(a);
    *static_cast<int*>(of.h) = 5;
    InChild(a, [](Teller& t) { t.Value(*static_cast<volatile int*>(of.h)); });
  });
  ask.Fresh("forked.before_init", "SUCCESS x5", [](Asker& a) {
    InChild(a, [](Teller& t) {
      int count = 0;
      CUdeviceptr p = 0;
      t(t.d.Init(0));
      t(t.d.DeviceGetCount(&count));
      t(t.d.DevicePrimaryCtxRetain(&of.c, 0));
      t(t.d.CtxSetCurrent(of.c));
      t(t.d.MemAlloc(&p, 4096));
    });
  });
  ask.Fresh("forked.after_version", "SUCCESS x4", [](Asker& a) {
    a(a.d.DriverGetVersion(kIgnored));
    InChild(a, [](Teller& t) {
      int count = 0;
      t(t.d.Init(0));
      t(t.d.DeviceGetCount(&count));
    });
    a(a.d.Init(0));
  });
  ask.Fresh("forked.parent_goes_on", "NOT_INITIALIZED SUCCESS x4", [](Asker& a) {
    Furnish(a);
    InChild(a, [](Teller& t) { t(t.d.MemFree(of.p)); });
    a(a.d.StreamSynchronize(of.s));
    a(a.d.MemFree(of.p));
    a(a.d.StreamDestroy(of.s));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Fresh("forked.exit_harms_nobody", "SUCCESS SUCCESS", [](Asker& a) {
    Furnish(a);
    InChild(
        a, [](Teller&) {}, true);
    a(a.d.StreamSynchronize(of.s));
    a(a.d.MemFree(of.p));
  });
  ask.Fresh("forked.while_busy", "NOT_READY NOT_INITIALIZED 0 SUCCESS 1", [](Asker& a) {
    static Busy busy;
    Furnish(a);
    a.Prepare(a.d.LaunchHostFunc(of.s, BeSlow, busy.Begin()));
    InChild(a, [](Teller& t) {
      t(t.d.StreamQuery(of.s));
      t(t.d.CtxSynchronize(nullptr));
      t.Value(busy.done.load());
    });
    a(a.d.StreamSynchronize(of.s));
    a.Value(busy.done.load());
  });
  ask.Exits("exiting.registered_before_init", kClosed, [](Asker& a) {
    InChild(
        a,
        [](Teller& t) {
          teller = &t;
          std::atexit(TellLateCodes);
          Furnish(t);
        },
        true);
  });
  ask.Exits("exiting.registered_after_init", kAlive, [](Asker& a) {
    InChild(
        a,
        [](Teller& t) {
          teller = &t;
          (void)t.d.Init(0);
          std::atexit(TellLateCodes);
          Furnish(t);
        },
        true);
  });
  ask.Exits("exiting.registered_last", kAlive, [](Asker& a) {
    InChild(
        a,
        [](Teller& t) {
          teller = &t;
          Furnish(t);
          std::atexit(TellLateCodes);
        },
        true);
  });
  ask.Exits("exiting.destructor_of_program", kClosed, [](Asker& a) {
    InChild(
        a,
        [](Teller& t) {
          teller = &t;
          Furnish(t);
          tells_when_unloaded = true;
        },
        true);
  });
  ask.Exits("exiting.first_call_in_handler", kAlive, [](Asker& a) {
    InChild(
        a,
        [](Teller& t) {
          teller = &t;
          std::atexit([] {
            Furnish(*teller);
            TellLateCodes();
          });
        },
        true);
  });
  ask.Exits("exiting.quick", kAlive, [](Asker& a) {
    InChild(a, [](Teller& t) {
      teller = &t;
      std::at_quick_exit(TellLateCodes);
      Furnish(t);
      std::quick_exit(0);
    });
  });
}

}  // namespace cuaudit::contract::process_questions
