// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::waiting_questions {
namespace {

struct Slow {
  volatile int done = 0;
};

// Long enough for any call that does not wait to return first; bounded, since a call that waits must come back too.
void BeSlow(void* argument) {
  volatile int turns = 0;
  while (turns < 400000000) turns = turns + 1;
  static_cast<Slow*>(argument)->done = 1;
}

struct Things {
  CUstream s = nullptr;
  CUevent e = nullptr;
  CUdeviceptr p = 0;
  void* h = nullptr;
  CUgraphExec x = nullptr;
  CUmodule m = nullptr;
  CUarray array = nullptr;
};

// The call's answer while a stream of `flags` is busy, and whether its work was done when the call came back.
void WhileBusy(Asker& a, unsigned flags, CUresult (*prepare)(driver::DriverRef, Things&), CUresult (*call)(driver::DriverRef, Things&)) {
  const Ready ready(a);
  static Slow slow;
  slow.done = 0;
  Things things;
  a.Prepare(a.d.StreamCreate(&things.s, flags));
  a.Prepare(prepare(a.d, things));
  a.Prepare(a.d.LaunchHostFunc(things.s, BeSlow, &slow));
  a(call(a.d, things));
  a.Value(slow.done);
  (void)a.d.CtxSynchronize(nullptr);
}

CUresult NoThing(driver::DriverRef, Things&) { return CUDA_SUCCESS; }
CUresult Memory(driver::DriverRef d, Things& t) { return d.MemAlloc(&t.p, 4096); }
CUresult Pinned(driver::DriverRef d, Things& t) { return d.MemAllocHost(&t.h, 4096); }
CUresult ModuleOfPtx(driver::DriverRef d, Things& t) { return d.ModuleLoadData(&t.m, kPtx); }
CUresult AnArray(driver::DriverRef d, Things& t) {
  const CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  return d.ArrayCreate(&t.array, &shape);
}
CUresult AnExecutable(driver::DriverRef d, Things& t) {
  CUgraph g = nullptr;
  const CUresult result = d.GraphCreate(&g, 0);
  return result == CUDA_SUCCESS ? d.GraphInstantiateWithFlags(&t.x, g, 0) : result;
}
CUresult Orderly(driver::DriverRef d, Things& t) { return d.MemAllocAsync(&t.p, 4096, t.s); }

constexpr Question kQuestions[] = {
    {"waits.free", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) { WhileBusy(a, CU_STREAM_NON_BLOCKING, Memory, [](driver::DriverRef d, Things& t) { return d.MemFree(t.p); }); }},
    {"waits.pinned_free", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) { WhileBusy(a, CU_STREAM_NON_BLOCKING, Pinned, [](driver::DriverRef d, Things& t) { return d.MemFreeHost(t.h); }); }},
    {"waits.alloc", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, NoThing, [](driver::DriverRef d, Things& t) { return d.MemAlloc(&t.p, 4096); });
     }},
    {"waits.pinned_alloc", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, NoThing, [](driver::DriverRef d, Things& t) { return d.MemAllocHost(&t.h, 4096); });
     }},
    {"waits.free_of_ordered", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) { WhileBusy(a, CU_STREAM_NON_BLOCKING, Orderly, [](driver::DriverRef d, Things& t) { return d.MemFree(t.p); }); }},
    {"waits.async_free", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, Orderly, [](driver::DriverRef d, Things& t) { return d.MemFreeAsync(t.p, t.s); });
     }},
    {"waits.copy_beside", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, Memory, [](driver::DriverRef d, Things& t) {
         int in = 1;
         return d.MemcpyHtoD(t.p, &in, sizeof(in));
       });
     }},
    {"waits.copy_behind", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, 0, Memory, [](driver::DriverRef d, Things& t) {
         int out = 0;
         return d.MemcpyDtoH(&out, t.p, sizeof(out));
       });
     }},
    {"waits.set_behind", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) { WhileBusy(a, 0, Memory, [](driver::DriverRef d, Things& t) { return d.MemsetD8(t.p, 1, 64); }); }},
    {"waits.pageable_copy", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, Memory, [](driver::DriverRef d, Things& t) {
         static int out = 0;
         return d.MemcpyDtoHAsync(&out, t.p, sizeof(out), t.s);
       });
     }},
    {"waits.pageable_upload", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, Memory, [](driver::DriverRef d, Things& t) {
         static int in = 1;
         return d.MemcpyHtoDAsync(t.p, &in, sizeof(in), t.s);
       });
     }},
    {"waits.pinned_copy", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, Pinned, [](driver::DriverRef d, Things& t) {
         const CUresult result = d.MemAlloc(&t.p, 4096);
         return result == CUDA_SUCCESS ? d.MemcpyDtoHAsync(t.h, t.p, 64, t.s) : result;
       });
     }},
    {"waits.stream_destroy", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) { WhileBusy(a, CU_STREAM_NON_BLOCKING, NoThing, [](driver::DriverRef d, Things& t) { return d.StreamDestroy(t.s); }); }},
    {"waits.event_destroy", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, NoThing, [](driver::DriverRef d, Things& t) {
         CUresult result = d.EventCreate(&t.e, 0);
         if (result == CUDA_SUCCESS) result = d.EventRecord(t.e, t.s);
         return result == CUDA_SUCCESS ? d.EventDestroy(t.e) : result;
       });
     }},
    {"waits.module_load", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, NoThing, [](driver::DriverRef d, Things& t) { return d.ModuleLoadData(&t.m, kPtx); });
     }},
    {"waits.module_unload", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, ModuleOfPtx, [](driver::DriverRef d, Things& t) { return d.ModuleUnload(t.m); });
     }},
    {"waits.array_destroy", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, AnArray, [](driver::DriverRef d, Things& t) { return d.ArrayDestroy(t.array); });
     }},
    {"waits.exec_destroy", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, AnExecutable, [](driver::DriverRef d, Things& t) {
         const CUresult result = d.GraphLaunch(t.x, t.s);
         return result == CUDA_SUCCESS ? d.GraphExecDestroy(t.x) : result;
       });
     }},
    {"waits.legacy_synchronize_beside", "SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, CU_STREAM_NON_BLOCKING, NoThing, [](driver::DriverRef d, Things& t) {
         (void)t;
         return d.StreamSynchronize(nullptr);
       });
     }},
    {"waits.legacy_synchronize_behind", "SUCCESS 1", Manner::Fresh,
     [](Asker& a) {
       WhileBusy(a, 0, NoThing, [](driver::DriverRef d, Things& t) {
         (void)t;
         return d.StreamSynchronize(nullptr);
       });
     }},
};

}  // namespace
}  // namespace cuaudit::contract::waiting_questions

namespace cuaudit::contract {
std::span<const Question> WaitingQuestions() { return waiting_questions::kQuestions; }
}  // namespace cuaudit::contract
