// SPDX-License-Identifier: MIT
// Streams and events: creation, order of work, misuse; which calls wait for busy streams, and which calls a host function may make.
#include "suites/contract/question.h"
#include "suites/contract/stream/stage.h"

namespace cuaudit::contract::stream_questions {
namespace {

void One(void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 1; }
void Two(void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 2; }
void Called(CUstream, CUresult, void* argument) { ++*static_cast<int*>(argument); }
struct Inner {
  Driver d;
  CUresult result;
};
void CallDriver(void* argument) {
  Inner* const inner = static_cast<Inner*>(argument);
  CUdeviceptr p = 0;
  inner->result = inner->d.MemAlloc(&p, 16);
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
    static Busy busy;
    Things things;
    a.Prepare(a.d.StreamCreate(&things.s, flags));
    a.Prepare(prepare(a.d, things));
    a.Prepare(a.d.LaunchHostFunc(things.s, BeSlow, busy.Begin()));
    a(call(a.d, things));
    a.Value(busy.done.load());
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
  ask.Plain("stream.create_destroy", "SUCCESS SUCCESS", [](Ready& a) {
    CUstream s = nullptr;
    a(a.d.StreamCreate(&s, 0));
    a(a.d.StreamDestroy(s));
  });
  ask.Plain("stream.create_bad_flags", "INVALID_VALUE", [](Ready& a) { a(a.d.StreamCreate(kIgnored, 0x40)); });
  ask.Risky("stream.create_null", "INVALID_VALUE", [](Ready& a) { a(a.d.StreamCreate(nullptr, 0)); });
  ask.Risky("stream.destroy_twice", "SUCCESS crash", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.StreamDestroy(s));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("stream.destroy_null", "INVALID_HANDLE", [](Ready& a) { a(a.d.StreamDestroy(nullptr)); });
  ask.Risky("stream.destroy_default", "INVALID_HANDLE INVALID_HANDLE", [](Ready& a) {
    a(a.d.StreamDestroy(CU_STREAM_LEGACY));
    a(a.d.StreamDestroy(CU_STREAM_PER_THREAD));
  });
  ask.Risky("stream.use_after_destroy", "crash", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a.Prepare(a.d.StreamDestroy(s));
    a(a.d.StreamSynchronize(s));
  });
  ask.Risky("stream.garbage", "crash", [](Ready& a) { a(a.d.StreamSynchronize(reinterpret_cast<CUstream>(std::uintptr_t{0x1234560}))); });
  ask.Plain("stream.flags", "SUCCESS 1 SUCCESS 0", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    unsigned flags = 9;
    a(a.d.StreamGetFlags(s, &flags), flags);
    a(a.d.StreamGetFlags(nullptr, &flags), flags);
  });
  ask.Plain("stream.priority_is_clamped", "0 -5 -3", [](Ready& a) {
    for (const int wanted : {5, -50, -3}) {
      CUstream s = nullptr;
      int priority = 9;
      a.Prepare(a.d.StreamCreateWithPriority(&s, 0, wanted));
      a.Values(a.d.StreamGetPriority(s, &priority), priority);
      (void)a.d.StreamDestroy(s);
    }
  });
  ask.Plain("stream.context", "SUCCESS 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUcontext c = nullptr;
    a(a.d.StreamGetCtx(s, &c, kIgnored));
    a.Value(c == a.context);
  });
  ask.Plain("stream.ids_differ", "1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    unsigned long long first = 0, second = 0;
    const CUstream t = a.StreamCreate(0);
    a.Prepare(a.d.StreamGetId(s, &first));
    a.Prepare(a.d.StreamGetId(t, &second));
    a.Value(first != second);
  });
  ask.Plain("stream.idle_query", "SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.StreamQuery(s));
    a(a.d.StreamQuery(nullptr));
  });
  ask.Plain("stream.default_handles", "SUCCESS x3", [](Ready& a) {
    a(a.d.StreamSynchronize(nullptr));
    a(a.d.StreamSynchronize(CU_STREAM_LEGACY));
    a(a.d.StreamSynchronize(CU_STREAM_PER_THREAD));
  });
  ask.Plain("stream.host_function_runs", "SUCCESS SUCCESS 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    int ran = 0;
    a(a.d.LaunchHostFunc(s, Bump, &ran));
    a(a.d.StreamSynchronize(s));
    a.Value(ran);
  });
  ask.Risky("stream.host_function_null", "INVALID_VALUE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.LaunchHostFunc(s, nullptr, nullptr));
  });
  ask.Plain("stream.destroy_finishes_work", "SUCCESS 1", [](Ready& a) {
    CUstream s = nullptr;
    a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    static int ran = 0;
    ran = 0;
    a.Prepare(a.d.LaunchHostFunc(s, Bump, &ran));
    a(a.d.StreamDestroy(s));
    (void)a.d.CtxSynchronize(nullptr);
    a.Value(ran);
  });
  ask.Plain("stream.callback", "SUCCESS SUCCESS 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    int ran = 0;
    a(a.d.StreamAddCallback(s, Called, &ran, 0));
    a(a.d.StreamSynchronize(s));
    a.Value(ran);
  });
  ask.Plain("stream.callback_flags", "INVALID_VALUE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    int ran = 0;
    a(a.d.StreamAddCallback(s, Called, &ran, 1));
  });
  ask.Plain("stream.host_function_may_not_call", "NOT_PERMITTED", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    Inner inner{a.d, CUDA_SUCCESS};
    a.Prepare(a.d.LaunchHostFunc(s, CallDriver, &inner));
    a.Prepare(a.d.StreamSynchronize(s));
    a(inner.result);
  });
  ask.Plain("stream.order", "SUCCESS 12", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    static long long order = 0;
    order = 0;
    a.Prepare(a.d.LaunchHostFunc(s, One, &order));
    a.Prepare(a.d.LaunchHostFunc(s, Two, &order));
    a(a.d.StreamSynchronize(s));
    a.Value(order);
  });
  ask.Plain("event.create_destroy", "SUCCESS SUCCESS", [](Ready& a) {
    CUevent e = nullptr;
    a(a.d.EventCreate(&e, 0));
    a(a.d.EventDestroy(e));
  });
  ask.Plain("event.create_bad_flags", "INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    CUevent e = nullptr;
    a(a.d.EventCreate(&e, 0x100));
    a(a.d.EventCreate(&e, CU_EVENT_INTERPROCESS));
  });
  ask.Risky("event.destroy_twice", "SUCCESS crash", [](Ready& a) {
    const CUevent e = a.EventCreate();
    a(a.d.EventDestroy(e));
    a(a.d.EventDestroy(e));
  });
  ask.Risky("event.destroy_null", "INVALID_HANDLE", [](Ready& a) { a(a.d.EventDestroy(nullptr)); });
  ask.Plain("event.unrecorded", "SUCCESS SUCCESS", [](Ready& a) {
    a.StreamCreate();
    const CUevent e = a.EventCreate();
    a(a.d.EventQuery(e));
    a(a.d.EventSynchronize(e));
  });
  ask.Plain("event.record_and_wait", "SUCCESS x3", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUevent e = a.EventCreate();
    a(a.d.EventRecord(e, s));
    a(a.d.EventSynchronize(e));
    a(a.d.EventQuery(e));
  });
  ask.Plain("event.elapsed", "SUCCESS 1", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUevent e = a.EventCreate();
    float ms = -1;
    const CUevent f = a.EventCreate();
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.EventRecord(f, s));
    a.Prepare(a.d.StreamSynchronize(s));
    a(a.d.EventElapsedTime(&ms, e, f));
    a.Value(ms >= 0);
  });
  ask.Plain("event.elapsed_unrecorded", "INVALID_HANDLE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.StreamSynchronize(s));
    const CUevent f = a.EventCreate();
    a(a.d.EventElapsedTime(kIgnored, e, f));
  });
  ask.Plain("event.elapsed_without_timing", "INVALID_HANDLE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUevent e = a.EventCreate();
    const CUevent f = a.EventCreate(CU_EVENT_DISABLE_TIMING);
    a.Prepare(a.d.EventRecord(e, s));
    a.Prepare(a.d.EventRecord(f, s));
    a.Prepare(a.d.StreamSynchronize(s));
    a(a.d.EventElapsedTime(kIgnored, e, f));
  });
  ask.Plain("event.wait_unrecorded", "SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUevent e = a.EventCreate();
    a(a.d.StreamWaitEvent(s, e, 0));
    a(a.d.StreamSynchronize(s));
  });
  ask.Plain("event.wait_bad_flags", "INVALID_VALUE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    const CUevent e = a.EventCreate();
    a(a.d.StreamWaitEvent(s, e, 0x80));
  });
  ask.Risky("event.wait_null", "INVALID_HANDLE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.StreamWaitEvent(s, nullptr, 0));
  });
  ask.Risky("event.record_null", "INVALID_HANDLE", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    a(a.d.EventRecord(nullptr, s));
  });
  ask.Risky("event.query_destroyed", "crash", [](Ready& a) {
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.EventDestroy(e));
    a(a.d.EventQuery(e));
  });
  ask.Plain("event.destroy_while_pending", "SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = a.StreamCreate();
    CUevent e = nullptr;
    a.Prepare(a.d.EventCreate(&e, 0));
    a.Prepare(a.d.EventRecord(e, s));
    a(a.d.EventDestroy(e));
    a(a.d.StreamSynchronize(s));
  });
  ask.Plain("event.foreign_context", "INVALID_HANDLE", [](Ready& a) {
    a.StreamCreate();
    const CUevent e = a.EventCreate();
    CUstream t = nullptr;
    a.CtxCreate();
    a.Prepare(a.d.StreamCreate(&t, 0));
    a(a.d.EventRecord(e, t));
  });

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

}  // namespace cuaudit::contract::stream_questions
