// SPDX-License-Identifier: MIT
// Which calls wait for busy streams, and which calls a host function may make.
#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::waiting_questions {
namespace {

// Long enough for any call that does not wait to return first; bounded, since a call that waits must come back too.
void BeSlow(void* argument) {
  volatile int turns = 0;
  while (turns < 400000000) turns = turns + 1;
  *static_cast<volatile int*>(argument) = 1;
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
using Call = CUresult (*)(Driver, Things&);

// The call's answer while a stream of `flags` is busy, and whether its work was done when the call came back.
void WhileBusy(Questions& ask, const char* name, const char* expected, unsigned flags, Call prepare, Call call) {
  ask.Fresh(name, expected, [=](Ready& a) {
    static volatile int done = 0;
    done = 0;
    Things things;
    a.Prepare(a.d.StreamCreate(&things.s, flags));
    a.Prepare(prepare(a.d, things));
    a.Prepare(a.d.LaunchHostFunc(things.s, BeSlow, const_cast<int*>(&done)));
    a(call(a.d, things));
    a.Value(done);
    (void)a.d.CtxSynchronize(nullptr);
  });
}
constexpr unsigned kBlocking = CU_STREAM_DEFAULT;
constexpr unsigned kAlone = CU_STREAM_NON_BLOCKING;

CUresult NoThing(Driver, Things&) { return CUDA_SUCCESS; }
CUresult Memory(Driver d, Things& t) { return d.MemAlloc(&t.p, 4096); }
CUresult Pinned(Driver d, Things& t) { return d.MemAllocHost(&t.h, 4096); }
CUresult ModuleOfPtx(Driver d, Things& t) { return d.ModuleLoadData(&t.m, kPtx); }
CUresult AnArray(Driver d, Things& t) {
  const CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  return d.ArrayCreate(&t.array, &shape);
}
CUresult AnExecutable(Driver d, Things& t) {
  CUgraph g = nullptr;
  const CUresult result = d.GraphCreate(&g, 0);
  return result == CUDA_SUCCESS ? d.GraphInstantiateWithFlags(&t.x, g, 0) : result;
}
CUresult Orderly(Driver d, Things& t) { return d.MemAllocAsync(&t.p, 4096, t.s); }

struct Inside {
  Driver d;
  CUstream stream;
  CUevent event;
  CUcontext context;
  CUresult (*call)(const Inside&);
  CUresult result;
};
void CallFromInside(void* argument) {
  Inside* const inside = static_cast<Inside*>(argument);
  inside->result = inside->call(*inside);
}
void CallFromCallback(CUstream, CUresult, void* argument) { CallFromInside(argument); }

// What `call` answers when a host function of a stream makes it, or a callback.
void FromInside(Questions& ask, const char* name, const char* expected, CUresult (*call)(const Inside&), bool callback = false) {
  ask.Fresh(name, expected, [=](Stage& a) {
    static Inside inside;
    inside = {a.d, a.t, a.e, a.context, call, CUDA_SUCCESS};
    a.Prepare(callback ? a.d.StreamAddCallback(a.s, CallFromCallback, &inside, 0) : a.d.LaunchHostFunc(a.s, CallFromInside, &inside));
    a.Prepare(a.d.StreamSynchronize(a.s));
    a(inside.result);
  });
}

CUresult DeviceCount(const Inside& in) {
  int count = 0;
  return in.d.DeviceGetCount(&count);
}
CUresult StreamQuery(const Inside& in) { return in.d.StreamQuery(in.stream); }

}  // namespace

void List(Questions& ask) {
  WhileBusy(ask, "waits.free", "SUCCESS 1", kAlone, Memory, [](Driver d, Things& t) { return d.MemFree(t.p); });
  WhileBusy(ask, "waits.pinned_free", "SUCCESS 1", kAlone, Pinned, [](Driver d, Things& t) { return d.MemFreeHost(t.h); });
  WhileBusy(ask, "waits.alloc", "SUCCESS 0", kAlone, NoThing, [](Driver d, Things& t) { return d.MemAlloc(&t.p, 4096); });
  WhileBusy(ask, "waits.pinned_alloc", "SUCCESS 0", kAlone, NoThing, [](Driver d, Things& t) { return d.MemAllocHost(&t.h, 4096); });
  WhileBusy(ask, "waits.free_of_ordered", "SUCCESS 0", kAlone, Orderly, [](Driver d, Things& t) { return d.MemFree(t.p); });
  WhileBusy(ask, "waits.async_free", "SUCCESS 0", kAlone, Orderly, [](Driver d, Things& t) { return d.MemFreeAsync(t.p, t.s); });
  WhileBusy(ask, "waits.copy_beside", "SUCCESS 0", kAlone, Memory, [](Driver d, Things& t) {
    int in = 1;
    return d.MemcpyHtoD(t.p, &in, sizeof(in));
  });
  WhileBusy(ask, "waits.copy_behind", "SUCCESS 1", kBlocking, Memory, [](Driver d, Things& t) {
    int out = 0;
    return d.MemcpyDtoH(&out, t.p, sizeof(out));
  });
  WhileBusy(ask, "waits.set_behind", "SUCCESS 0", kBlocking, Memory, [](Driver d, Things& t) { return d.MemsetD8(t.p, 1, 64); });
  WhileBusy(ask, "waits.pageable_copy", "SUCCESS 1", kAlone, Memory, [](Driver d, Things& t) {
    static int out = 0;
    return d.MemcpyDtoHAsync(&out, t.p, sizeof(out), t.s);
  });
  WhileBusy(ask, "waits.pageable_upload", "SUCCESS 0", kAlone, Memory, [](Driver d, Things& t) {
    static int in = 1;
    return d.MemcpyHtoDAsync(t.p, &in, sizeof(in), t.s);
  });
  WhileBusy(ask, "waits.pinned_copy", "SUCCESS 0", kAlone, Pinned, [](Driver d, Things& t) {
    const CUresult result = d.MemAlloc(&t.p, 4096);
    return result == CUDA_SUCCESS ? d.MemcpyDtoHAsync(t.h, t.p, 64, t.s) : result;
  });
  WhileBusy(ask, "waits.stream_destroy", "SUCCESS 0", kAlone, NoThing, [](Driver d, Things& t) { return d.StreamDestroy(t.s); });
  WhileBusy(ask, "waits.event_destroy", "SUCCESS 0", kAlone, NoThing, [](Driver d, Things& t) {
    CUresult result = d.EventCreate(&t.e, 0);
    if (result == CUDA_SUCCESS) result = d.EventRecord(t.e, t.s);
    return result == CUDA_SUCCESS ? d.EventDestroy(t.e) : result;
  });
  WhileBusy(ask, "waits.module_load", "SUCCESS 1", kAlone, NoThing, [](Driver d, Things& t) { return d.ModuleLoadData(&t.m, kPtx); });
  WhileBusy(ask, "waits.module_unload", "SUCCESS 1", kAlone, ModuleOfPtx, [](Driver d, Things& t) { return d.ModuleUnload(t.m); });
  WhileBusy(ask, "waits.array_destroy", "SUCCESS 1", kAlone, AnArray, [](Driver d, Things& t) { return d.ArrayDestroy(t.array); });
  WhileBusy(ask, "waits.exec_destroy", "SUCCESS 0", kAlone, AnExecutable, [](Driver d, Things& t) {
    const CUresult result = d.GraphLaunch(t.x, t.s);
    return result == CUDA_SUCCESS ? d.GraphExecDestroy(t.x) : result;
  });
  WhileBusy(ask, "waits.legacy_synchronize_beside", "SUCCESS 0", kAlone, NoThing,
            [](Driver d, Things&) { return d.StreamSynchronize(nullptr); });
  WhileBusy(ask, "waits.legacy_synchronize_behind", "SUCCESS 1", kBlocking, NoThing,
            [](Driver d, Things&) { return d.StreamSynchronize(nullptr); });
  FromInside(ask, "inside.version", "SUCCESS", [](const Inside& in) {
    int version = 0;
    return in.d.DriverGetVersion(&version);
  });
  FromInside(ask, "inside.init", "SUCCESS", [](const Inside& in) { return in.d.Init(0); });
  FromInside(ask, "inside.device_count", "NOT_PERMITTED", DeviceCount);
  FromInside(ask, "inside.get_current", "NOT_PERMITTED", [](const Inside& in) {
    CUcontext current = nullptr;
    return in.d.CtxGetCurrent(&current);
  });
  FromInside(ask, "inside.set_current", "NOT_PERMITTED", [](const Inside& in) { return in.d.CtxSetCurrent(in.context); });
  FromInside(ask, "inside.launch_host_function", "SUCCESS",
             [](const Inside& in) { return in.d.LaunchHostFunc(in.stream, Nothing, nullptr); });
  FromInside(ask, "inside.stream_query", "SUCCESS", StreamQuery);
  FromInside(ask, "inside.event_query", "SUCCESS", [](const Inside& in) { return in.d.EventQuery(in.event); });
  FromInside(ask, "inside.event_record", "SUCCESS", [](const Inside& in) { return in.d.EventRecord(in.event, in.stream); });
  FromInside(ask, "inside.callback_stream_query", "SUCCESS", StreamQuery, true);
  FromInside(ask, "inside.callback_device_count", "NOT_PERMITTED", DeviceCount, true);
}

}  // namespace cuaudit::contract::waiting_questions
