// SPDX-License-Identifier: MIT
#include <cstdlib>

#include "suites/contract/another_process.h"
#include "suites/contract/furniture.h"

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

void BeSlow(void* done) {
  volatile int turns = 0;
  while (turns < 400000000) turns = turns + 1;
  *static_cast<volatile int*>(done) = 1;
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

constexpr const char* kAlive = "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS";
constexpr const char* kClosed =
    "DEINITIALIZED DEINITIALIZED DEINITIALIZED DEINITIALIZED DEINITIALIZED DEINITIALIZED DEINITIALIZED DEINITIALIZED DEINITIALIZED "
    "DEINITIALIZED DEINITIALIZED DEINITIALIZED DEINITIALIZED";

constexpr Question kQuestions[] = {
    {"forked.start", "SUCCESS SUCCESS NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
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
     }},
    {"forked.memory", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       Furnish(a);
       InChild(a, [](Teller& t) {
         CUdeviceptr p = 0;
         std::size_t free = 0;
         std::size_t total = 0;
         int value = 0;
         t(t.d.MemAlloc(&p, 16));
         t(t.d.MemGetInfo(&free, &total));
         t(t.d.MemcpyDtoH(&value, of.p, sizeof(value)));
         t(t.d.MemFreeHost(of.h));
         t(t.d.MemFree(of.p));
       });
     }},
    {"forked.streams", "NOT_INITIALIZED SUCCESS SUCCESS SUCCESS NOT_READY SUCCESS crash", Manner::Fresh,
     [](Asker& a) {
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
     }},
    {"forked.contexts", "NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED NOT_INITIALIZED",
     Manner::Fresh,
     [](Asker& a) {
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
     }},
    {"forked.code", "NOT_INITIALIZED NOT_INITIALIZED SUCCESS NOT_INITIALIZED NOT_INITIALIZED", Manner::Fresh,
     [](Asker& a) {
       Furnish(a);
       InChild(a, [](Teller& t) {
         CUmodule m = nullptr;
         CUlibrary library = nullptr;
         CUgraph g = nullptr;
         t(t.d.ModuleLoadData(&m, kPtx));
         t(t.d.LibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
         t(t.d.LaunchHostFunc(of.s, DoNothing, nullptr));
         t(t.d.GraphCreate(&g, 0));
         t(t.d.GraphDestroy(of.g));
       });
     }},
    {"forked.pinned_bytes", "5", Manner::Fresh,
     [](Asker& a) {
       Furnish(a);
       *static_cast<int*>(of.h) = 5;
       InChild(a, [](Teller& t) { t.Value(*static_cast<volatile int*>(of.h)); });
     }},
    {"forked.before_init", "SUCCESS SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       InChild(a, [](Teller& t) {
         int count = 0;
         CUdeviceptr p = 0;
         t(t.d.Init(0));
         t(t.d.DeviceGetCount(&count));
         t(t.d.DevicePrimaryCtxRetain(&of.c, 0));
         t(t.d.CtxSetCurrent(of.c));
         t(t.d.MemAlloc(&p, 4096));
       });
     }},
    {"forked.after_version", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       int value = 0;
       a(a.d.DriverGetVersion(&value));
       InChild(a, [](Teller& t) {
         int count = 0;
         t(t.d.Init(0));
         t(t.d.DeviceGetCount(&count));
       });
       a(a.d.Init(0));
     }},
    {"forked.parent_goes_on", "NOT_INITIALIZED SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Furnish(a);
       InChild(a, [](Teller& t) { t(t.d.MemFree(of.p)); });
       a(a.d.StreamSynchronize(of.s));
       a(a.d.MemFree(of.p));
       a(a.d.StreamDestroy(of.s));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"forked.exit_harms_nobody", "SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       Furnish(a);
       InChild(
           a, [](Teller&) {}, true);
       a(a.d.StreamSynchronize(of.s));
       a(a.d.MemFree(of.p));
     }},
    {"forked.while_busy", "NOT_READY NOT_INITIALIZED 0 SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       static int done;
       done = 0;
       Furnish(a);
       a.Prepare(a.d.LaunchHostFunc(of.s, BeSlow, &done));
       InChild(a, [](Teller& t) {
         t(t.d.StreamQuery(of.s));
         t(t.d.CtxSynchronize(nullptr));
         t.Value(done);
       });
       a(a.d.StreamSynchronize(of.s));
       a.Value(done);
     }},
    {"exiting.registered_before_init", kClosed, Manner::Exits,
     [](Asker& a) {
       InChild(
           a,
           [](Teller& t) {
             teller = &t;
             std::atexit(TellLateCodes);
             Furnish(t);
           },
           true);
     }},
    {"exiting.registered_after_init", kAlive, Manner::Exits,
     [](Asker& a) {
       InChild(
           a,
           [](Teller& t) {
             teller = &t;
             (void)t.d.Init(0);
             std::atexit(TellLateCodes);
             Furnish(t);
           },
           true);
     }},
    {"exiting.registered_last", kAlive, Manner::Exits,
     [](Asker& a) {
       InChild(
           a,
           [](Teller& t) {
             teller = &t;
             Furnish(t);
             std::atexit(TellLateCodes);
           },
           true);
     }},
    {"exiting.destructor_of_program", kClosed, Manner::Exits,
     [](Asker& a) {
       InChild(
           a,
           [](Teller& t) {
             teller = &t;
             Furnish(t);
             tells_when_unloaded = true;
           },
           true);
     }},
    {"exiting.first_call_in_handler", kAlive, Manner::Exits,
     [](Asker& a) {
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
     }},
    {"exiting.quick", kAlive, Manner::Exits,
     [](Asker& a) {
       InChild(a, [](Teller& t) {
         teller = &t;
         std::at_quick_exit(TellLateCodes);
         Furnish(t);
         std::quick_exit(0);
       });
     }},
};

}  // namespace
}  // namespace cuaudit::contract::process_questions

namespace cuaudit::contract {
std::span<const Question> ProcessQuestions() { return process_questions::kQuestions; }
}  // namespace cuaudit::contract
