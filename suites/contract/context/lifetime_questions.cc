// SPDX-License-Identifier: MIT
// What outlives its context, and what outlives the references to the primary context.
#include <string>

#include "suites/contract/question.h"

namespace cuaudit::contract::lifetime_questions {
namespace {

// The primary context has been retained once and set current, and the question releases it, or nobody does.
struct Retained : Initialised {
  explicit Retained(const Asker& asker) : Initialised(asker), c(DevicePrimaryCtxRetain()) { Prepare(d.CtxSetCurrent(c)); }
  const CUcontext c;
};

// Beside the primary context, another one is current.
struct Other : Ready {
  explicit Other(const Asker& asker) : Ready(asker), c(CtxCreate()) {}
  const CUcontext c;
};

}  // namespace

void List(Questions& ask) {
  ask.Fresh("context.pop_empty", "INVALID_CONTEXT", [](Initialised& a) { a(a.d.CtxPopCurrent(kIgnored)); });
  ask.Fresh("context.destroy_elsewhere", "SUCCESS SUCCESS", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a(a.d.CtxPopCurrent(kIgnored));
    a(a.d.CtxDestroy(c));
  });
  ask.Risky("context.destroy_below_top", "SUCCESS SUCCESS CONTEXT_IS_DESTROYED", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    const CUcontext top = a.CtxCreate();
    a(a.d.CtxDestroy(c));
    a(a.d.CtxDestroy(top));
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Risky("context.destroyed_stream", "crash", [](Other& a) {
    const CUstream s = a.StreamCreate(0);
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("context.destroyed_event", "CONTEXT_IS_DESTROYED", [](Other& a) {
    const CUevent e = a.EventCreate();
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.EventDestroy(e));
  });
  ask.Risky("context.destroyed_module", "INVALID_HANDLE", [](Other& a) {
    const CUmodule m = a.ModuleLoadData();
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.ModuleUnload(m));
  });
  ask.Risky("context.destroyed_pinned", "INVALID_VALUE", [](Other& a) {
    void* const h = a.MemAllocHost(64);
    a.Prepare(a.d.CtxDestroy(a.c));
    a(a.d.MemFreeHost(h));
  });
  ask.Fresh("primary.release_unretained", "INVALID_CONTEXT", [](Initialised& a) { a(a.d.DevicePrimaryCtxRelease(0)); });
  ask.Risky("primary.push_unretained", "SUCCESS", [](Retained& a) {
    a.CtxPopCurrent();
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.CtxPushCurrent(a.c));
  });
  ask.Risky("primary.set_unretained", "SUCCESS", [](Retained& a) {
    a.CtxPopCurrent();
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.CtxSetCurrent(a.c));
  });
  ask.Fresh("primary.held_elsewhere", "SUCCESS x4", [](Retained& a) {
    a.DevicePrimaryCtxRetain();
    const CUstream s = a.StreamCreate(0);
    const CUdeviceptr p = a.MemAlloc(64);
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.StreamDestroy(s));
    a(a.d.MemFree(p));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Fresh("primary.same_handle_again", "1", [](Retained& a) {
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    const CUcontext again = a.DevicePrimaryCtxRetain();
    a.Value(a.c == again);
  });
  ask.Fresh("primary.current_again", "SUCCESS", [](Retained& a) {
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.DevicePrimaryCtxRetain();
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Risky("primary.memory_of_before", "INVALID_VALUE", [](Retained& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(a.c));
    a(a.d.MemFree(p));
  });
  ask.Risky("primary.stream_of_before", "INVALID_CONTEXT", [](Retained& a) {
    const CUstream s = a.StreamCreate(0);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(a.c));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("primary.stream_after_release", "crash", [](Retained& a) {
    const CUstream s = a.StreamCreate(0);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.StreamDestroy(s));
  });
  ask.Risky("primary.memory_after_release", "CONTEXT_IS_DESTROYED", [](Retained& a) {
    const CUdeviceptr p = a.MemAlloc(4096);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.MemFree(p));
  });
  ask.Risky("primary.reset_keeps_references", "SUCCESS 0 SUCCESS INVALID_CONTEXT", [](Retained& a) {
    unsigned flags = 0;
    int active = -1;
    a(a.d.DevicePrimaryCtxReset(0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Risky("primary.use_after_reset", "CONTEXT_IS_DESTROYED", [](Retained& a) {
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Fresh("primary.set_flags_when_active", "SUCCESS 4", [](Retained& a) {
    unsigned flags = 0;
    int active = 0;
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), flags);
  });
  ask.Fresh("context.limits_of_graphics", "SUCCESS", [](Retained& a) { a(a.d.CtxGetLimit(kIgnored, CU_LIMIT_SHMEM_SIZE)); });
}

}  // namespace cuaudit::contract::lifetime_questions
