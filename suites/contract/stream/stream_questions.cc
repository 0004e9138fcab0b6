// SPDX-License-Identifier: MIT
// Streams and events: creation, order of work, misuse.
#include "suites/contract/question.h"

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

}  // namespace

void List(Questions& ask) {
  ask.Plain("stream.create_destroy", "SUCCESS SUCCESS", [](Ready& a) {
    CUstream s = nullptr;
    a(a.d.StreamCreate(&s, 0));
    a(a.d.StreamDestroy(s));
  });
  ask.Plain("stream.create_bad_flags", "INVALID_VALUE", [](Ready& a) { a(a.d.StreamCreate(kIgnored, 0x40)); });
  ask.Risky("stream.create_null", "INVALID_VALUE", [](Ready& a) { a(a.d.StreamCreate(nullptr, 0)); });
  ask.Risky("stream.destroy_twice", "crash", [](Ready& a) {
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
  ask.Risky("event.destroy_twice", "crash", [](Ready& a) {
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
}

}  // namespace cuaudit::contract::stream_questions
