// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::context_questions {
namespace {

constexpr Question kQuestions[] = {
    {"primary.counts", "SUCCESS SUCCESS SUCCESS SUCCESS INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a(a.d.DevicePrimaryCtxRetain(&c, 0));
       a(a.d.DevicePrimaryCtxRetain(&c, 0));
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"primary.same_handle", "1", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       CUcontext again = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&again, 0));
       a.Value(c == again);
     }},
    {"primary.state", "0 1 0", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       unsigned flags = 0;
       int active = -1;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(active);
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(active);
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(active);
     }},
    {"primary.bad_device", "INVALID_DEVICE INVALID_DEVICE", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a(a.d.DevicePrimaryCtxRetain(&c, 99));
       a(a.d.DevicePrimaryCtxRelease(99));
     }},
    {"primary.retain_is_not_current", "1 INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       CUcontext current = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxGetCurrent(&current));
       a.Value(current == nullptr);
       a(a.d.MemAlloc(&p, 16));
     }},
    {"primary.use_after_last_release", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.MemAlloc(&p, 16));
     }},
    {"primary.destroy_as_context", "INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a(a.d.CtxDestroy(c));
     }},
    {"primary.reset_unretained", "SUCCESS", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.DevicePrimaryCtxReset(0));
     }},
    {"primary.bad_flags", "INVALID_VALUE", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.DevicePrimaryCtxSetFlags(0, 0x10000));
     }},
    {"context.create_makes_current", "SUCCESS 1 SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       CUcontext c = nullptr;
       CUcontext current = nullptr;
       a.Prepare(a.d.Init(0));
       a(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.CtxGetCurrent(&current));
       a.Value(c == current);
       a(a.d.CtxDestroy(c));
       a.Prepare(a.d.CtxGetCurrent(&current));
       a.Value(current == nullptr);
     }},
    {"context.create_bad", "INVALID_VALUE INVALID_DEVICE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a(a.d.CtxCreate(&c, nullptr, 0x80000000U, 0));
       a(a.d.CtxCreate(&c, nullptr, 0, 99));
       a(a.d.CtxCreate(nullptr, nullptr, 0, 0));
     }},
    {"context.destroy_twice", "SUCCESS CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a(a.d.CtxDestroy(c));
       a(a.d.CtxDestroy(c));
     }},
    {"context.destroy_null", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.CtxDestroy(nullptr));
     }},
    {"context.stack", "SUCCESS SUCCESS 1 SUCCESS 1 INVALID_CONTEXT", Manner::Plain,
     [](Asker& a) {
       CUcontext c = nullptr;
       CUcontext popped = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a(a.d.CtxPushCurrent(c));
       a.Prepare(a.d.CtxPushCurrent(c));
       a(a.d.CtxPopCurrent(&popped));
       a.Value(popped == c);
       a(a.d.CtxPopCurrent(&popped));
       a.Value(popped == c);
       a(a.d.CtxPopCurrent(&popped));
       (void)a.d.DevicePrimaryCtxRelease(0);
     }},
    {"context.pop_without_output", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxPushCurrent(c));
       a(a.d.CtxPopCurrent(nullptr));
       (void)a.d.DevicePrimaryCtxRelease(0);
     }},
    {"context.push_null", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.CtxPushCurrent(nullptr));
     }},
    {"context.set_null_pops", "SUCCESS 1", Manner::Plain,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       a(a.d.CtxSetCurrent(nullptr));
       a.Prepare(a.d.CtxGetCurrent(&c));
       a.Value(c == nullptr);
       (void)a.d.DevicePrimaryCtxRelease(0);
     }},
    {"context.none", "INVALID_CONTEXT INVALID_CONTEXT INVALID_CONTEXT INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       CUdevice device = 0;
       CUstream s = nullptr;
       CUevent e = nullptr;
       CUmodule m = nullptr;
       a.Prepare(a.d.Init(0));
       a(a.d.CtxGetDevice(&device, nullptr));
       a(a.d.StreamCreate(&s, 0));
       a(a.d.EventCreate(&e, 0));
       a(a.d.ModuleLoadData(&m, kPtx));
     }},
    {"context.api_version", "SUCCESS 3020", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       unsigned version = 0;
       a(a.d.CtxGetApiVersion(ready.context, &version));
       a.Value(version);
     }},
    {"context.priorities", "SUCCESS 0 -5", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       int least = 9;
       int greatest = 9;
       a(a.d.CtxGetStreamPriorityRange(&least, &greatest));
       a.Value(least);
       a.Value(greatest);
     }},
    {"context.limits", "SUCCESS 1024 INVALID_VALUE", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       std::size_t value = 0;
       a(a.d.CtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
       a.Value(static_cast<long long>(value));
       a(a.d.CtxGetLimit(&value, Beyond<CUlimit>(77)));
     }},
    {"context.synchronize_idle", "SUCCESS", Manner::Plain,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.CtxSynchronize(nullptr));
     }},
    {"context.destroy_frees_children", "SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext c = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a(a.d.CtxDestroy(c));
       a(a.d.MemFree(p));
     }},
    {"context.set_destroyed", "crash", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.CtxDestroy(c));
       a(a.d.CtxSetCurrent(c));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::context_questions

namespace cuaudit::contract {
std::span<const Question> ContextQuestions() { return context_questions::kQuestions; }
}  // namespace cuaudit::contract
