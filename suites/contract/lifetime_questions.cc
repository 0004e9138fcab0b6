// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::lifetime_questions {
namespace {

constexpr Question kQuestions[] = {
    {"context.pop_empty", "INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a(a.d.CtxPopCurrent(&c));
     }},
    {"context.destroy_elsewhere", "SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       CUcontext popped = nullptr;
       a(a.d.CtxPopCurrent(&popped));
       a(a.d.CtxDestroy(c));
     }},
    {"context.destroy_below_top", "SUCCESS SUCCESS CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       CUcontext top = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.CtxCreate(&top, nullptr, 0, 0));
       a(a.d.CtxDestroy(c));
       a(a.d.CtxDestroy(top));
       a(a.d.MemAlloc(&p, 16));
     }},
    {"context.destroyed_stream", "crash", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, 0));
       a.Prepare(a.d.CtxDestroy(c));
       a(a.d.StreamDestroy(s));
     }},
    {"context.destroyed_event", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       CUevent e = nullptr;
       a.Prepare(a.d.EventCreate(&e, 0));
       a.Prepare(a.d.CtxDestroy(c));
       a(a.d.EventDestroy(e));
     }},
    {"context.destroyed_module", "INVALID_HANDLE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       CUmodule m = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.CtxDestroy(c));
       a(a.d.ModuleUnload(m));
     }},
    {"context.destroyed_pinned", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       void* h = nullptr;
       a.Prepare(a.d.MemAllocHost(&h, 64));
       a.Prepare(a.d.CtxDestroy(c));
       a(a.d.MemFreeHost(h));
     }},
    {"primary.release_unretained", "INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"primary.push_unretained", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUcontext popped = nullptr;
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.CtxPushCurrent(c));
     }},
    {"primary.set_unretained", "SUCCESS", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUcontext popped = nullptr;
       a.Prepare(a.d.CtxPopCurrent(&popped));
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.CtxSetCurrent(c));
     }},
    {"primary.held_elsewhere", "SUCCESS SUCCESS SUCCESS SUCCESS", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUstream s = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.StreamCreate(&s, 0));
       a.Prepare(a.d.MemAlloc(&p, 64));
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.StreamDestroy(s));
       a(a.d.MemFree(p));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"primary.same_handle_again", "1", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUcontext again = nullptr;
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&again, 0));
       a.Value(c == again);
     }},
    {"primary.current_again", "SUCCESS", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUdeviceptr p = 0;
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a(a.d.MemAlloc(&p, 16));
     }},
    {"primary.memory_of_before", "INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       a(a.d.MemFree(p));
     }},
    {"primary.stream_of_before", "INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, 0));
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       a(a.d.StreamDestroy(s));
     }},
    {"primary.stream_after_release", "crash", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUstream s = nullptr;
       a.Prepare(a.d.StreamCreate(&s, 0));
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.StreamDestroy(s));
     }},
    {"primary.memory_after_release", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUdeviceptr p = 0;
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a.Prepare(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.MemFree(p));
     }},
    {"primary.reset_keeps_references", "SUCCESS 0 SUCCESS INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       unsigned flags = 0;
       int active = -1;
       a(a.d.DevicePrimaryCtxReset(0));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(active);
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"primary.use_after_reset", "CONTEXT_IS_DESTROYED", Manner::Risky,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       CUdeviceptr p = 0;
       a.Prepare(a.d.DevicePrimaryCtxReset(0));
       a(a.d.MemAlloc(&p, 16));
     }},
    {"primary.set_flags_when_active", "SUCCESS 4", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       unsigned flags = 0;
       int active = 0;
       a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
       a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(flags);
     }},
    {"context.limits_of_graphics", "SUCCESS", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxSetCurrent(c));
       std::size_t value = 0;
       a(a.d.CtxGetLimit(&value, CU_LIMIT_SHMEM_SIZE));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::lifetime_questions

namespace cuaudit::contract {
std::span<const Question> LifetimeQuestions() { return lifetime_questions::kQuestions; }
}  // namespace cuaudit::contract
