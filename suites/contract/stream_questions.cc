// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::stream_questions {
namespace {

void Bump(void* argument) { ++*static_cast<int*>(argument); }
void One(void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 1; }
void Two(void* argument) { *static_cast<long long*>(argument) = *static_cast<long long*>(argument) * 10 + 2; }
void Called(CUstream, CUresult, void* argument) { ++*static_cast<int*>(argument); }
struct Inner {
  driver::DriverRef d;
  CUresult result;
};
void CallDriver(void* argument) {
  Inner* const inner = static_cast<Inner*>(argument);
  CUdeviceptr p = 0;
  inner->result = inner->d.MemAlloc(&p, 16);
}

constexpr Question kQuestions[] = {
    {"stream.create_destroy", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a(a.d.StreamCreate(&s, 0));
       a(a.d.StreamDestroy(s));
     }},
    {"stream.create_bad_flags", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a(a.d.StreamCreate(&s, 0x40));
     }},
    {"stream.create_null", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.StreamCreate(nullptr, 0));
     }},
    {"stream.destroy_twice", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamDestroy(s));
       a(a.d.StreamDestroy(s));
     }},
    {"stream.destroy_null", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.StreamDestroy(nullptr));
     }},
    {"stream.destroy_default", "INVALID_HANDLE INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.StreamDestroy(CU_STREAM_LEGACY));
       a(a.d.StreamDestroy(CU_STREAM_PER_THREAD));
     }},
    {"stream.use_after_destroy", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.StreamDestroy(s));
       a(a.d.StreamSynchronize(s));
     }},
    {"stream.garbage", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.StreamSynchronize(reinterpret_cast<CUstream>(std::uintptr_t{0x1234560})));
     }},
    {"stream.flags", "SUCCESS 1 SUCCESS 0", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       unsigned flags = 9;
       a(a.d.StreamGetFlags(s, &flags));
       a.Value(flags);
       a(a.d.StreamGetFlags(nullptr, &flags));
       a.Value(flags);
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.priority_is_clamped", "0 -5 -3", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       for (const int wanted : {5, -50, -3}) {
         CUstream s = nullptr;
         int priority = 9;
         a.Prepare(a.d.StreamCreateWithPriority(&s, 0, wanted));
         a.Prepare(a.d.StreamGetPriority(s, &priority));
         a.Value(priority);
         (void)a.d.StreamDestroy(s);
       }
     }},
    {"stream.context", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUcontext c = nullptr;
       CUgreenCtx green = nullptr;
       a(a.d.StreamGetCtx(s, &c, &green));
       a.Value(c == ready.context);
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.ids_differ", "1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       CUstream t = nullptr;
       unsigned long long first = 0;
       unsigned long long second = 0;
       a.Prepare(a.d.StreamCreate(&t, 0));
       a.Prepare(a.d.StreamGetId(s, &first));
       a.Prepare(a.d.StreamGetId(t, &second));
       a.Value(first != second);
       (void)a.d.StreamDestroy(t);
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.idle_query", "SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.StreamQuery(s));
       a(a.d.StreamQuery(nullptr));
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.default_handles", "SUCCESS SUCCESS SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.StreamSynchronize(nullptr));
       a(a.d.StreamSynchronize(CU_STREAM_LEGACY));
       a(a.d.StreamSynchronize(CU_STREAM_PER_THREAD));
     }},
    {"stream.host_function_runs", "SUCCESS SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       int ran = 0;
       a(a.d.LaunchHostFunc(s, Bump, &ran));
       a(a.d.StreamSynchronize(s));
       a.Value(ran);
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.host_function_null", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       a(a.d.LaunchHostFunc(s, nullptr, nullptr));
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.destroy_finishes_work", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       static int ran = 0;
       ran = 0;
       a.Prepare(a.d.LaunchHostFunc(s, Bump, &ran));
       a(a.d.StreamDestroy(s));
       (void)a.d.CtxSynchronize(nullptr);
       a.Value(ran);
     }},
    {"stream.callback", "SUCCESS SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       int ran = 0;
       a(a.d.StreamAddCallback(s, Called, &ran, 0));
       a(a.d.StreamSynchronize(s));
       a.Value(ran);
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.callback_flags", "INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       int ran = 0;
       a(a.d.StreamAddCallback(s, Called, &ran, 1));
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.host_function_may_not_call", "NOT_PERMITTED", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       Inner inner{a.d, CUDA_SUCCESS};
       a.Prepare(a.d.LaunchHostFunc(s, CallDriver, &inner));
       a.Prepare(a.d.StreamSynchronize(s));
       a(inner.result);
       (void)a.d.StreamDestroy(s);
     }},
    {"stream.order", "SUCCESS 12", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
       static long long order = 0;
       order = 0;
       a.Prepare(a.d.LaunchHostFunc(s, One, &order));
       a.Prepare(a.d.LaunchHostFunc(s, Two, &order));
       a(a.d.StreamSynchronize(s));
       a.Value(order);
       (void)a.d.StreamDestroy(s);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::stream_questions

namespace cuaudit::contract {
std::span<const Question> StreamQuestions() { return stream_questions::kQuestions; }
}  // namespace cuaudit::contract
