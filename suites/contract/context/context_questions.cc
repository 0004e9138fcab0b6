// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::context_questions {

void List(Questions& ask) {
  ask.Fresh("primary.counts", "SUCCESS x4 INVALID_CONTEXT", [](Initialised& a) {
    CUcontext c = nullptr;
    a(a.d.DevicePrimaryCtxRetain(&c, 0));
    a(a.d.DevicePrimaryCtxRetain(&c, 0));
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Fresh("primary.same_handle", "1", [](Asker& a) {
    a.Prepare(a.d.Init(0));
    const CUcontext c = a.DevicePrimaryCtxRetain(), again = a.DevicePrimaryCtxRetain();
    a.Value(c == again);
  });
  ask.Fresh("primary.state", "0 1 0", [](Asker& a) {
    unsigned flags = 0;
    int active = -1;
    a.Prepare(a.d.Init(0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
    a.DevicePrimaryCtxRetain();
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), active);
  });
  ask.Fresh("primary.bad_device", "INVALID_DEVICE INVALID_DEVICE", [](Initialised& a) {
    a(a.d.DevicePrimaryCtxRetain(kIgnored, 99));
    a(a.d.DevicePrimaryCtxRelease(99));
  });
  ask.Fresh("primary.retain_is_not_current", "1 INVALID_CONTEXT", [](Asker& a) {
    CUcontext current = nullptr;
    a.Prepare(a.d.Init(0));
    a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxGetCurrent(&current));
    a.Value(current == nullptr);
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Risky("primary.use_after_last_release", "CONTEXT_IS_DESTROYED", [](Asker& a) {
    a.Prepare(a.d.Init(0));
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(c));
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.MemAlloc(kIgnored, 16));
  });
  ask.Fresh("primary.destroy_as_context", "INVALID_CONTEXT", [](Initialised& a) {
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a(a.d.CtxDestroy(c));
  });
  ask.Fresh("primary.reset_unretained", "SUCCESS", [](Initialised& a) { a(a.d.DevicePrimaryCtxReset(0)); });
  ask.Fresh("primary.bad_flags", "INVALID_VALUE", [](Initialised& a) { a(a.d.DevicePrimaryCtxSetFlags(0, 0x10000)); });
  ask.Plain("context.create_makes_current", "SUCCESS 1 SUCCESS 1", [](Asker& a) {
    CUcontext c = nullptr, current = nullptr;
    a.Prepare(a.d.Init(0));
    a(a.d.CtxCreate(&c, nullptr, 0, 0));
    a.Prepare(a.d.CtxGetCurrent(&current));
    a.Value(c == current);
    a(a.d.CtxDestroy(c));
    a.Prepare(a.d.CtxGetCurrent(&current));
    a.Value(current == nullptr);
  });
  ask.Risky("context.create_bad", "INVALID_VALUE INVALID_DEVICE INVALID_VALUE", [](Initialised& a) {
    CUcontext c = nullptr;
    a(a.d.CtxCreate(&c, nullptr, 0x80000000U, 0));
    a(a.d.CtxCreate(&c, nullptr, 0, 99));
    a(a.d.CtxCreate(nullptr, nullptr, 0, 0));
  });
  ask.Risky("context.destroy_twice", "SUCCESS CONTEXT_IS_DESTROYED", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a(a.d.CtxDestroy(c));
    a(a.d.CtxDestroy(c));
  });
  ask.Risky("context.destroy_null", "INVALID_VALUE", [](Initialised& a) { a(a.d.CtxDestroy(nullptr)); });
  ask.Plain("context.stack", "SUCCESS SUCCESS 1 SUCCESS 1 INVALID_CONTEXT", [](Asker& a) {
    CUcontext popped = nullptr;
    a.Prepare(a.d.Init(0));
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a(a.d.CtxPushCurrent(c));
    a.Prepare(a.d.CtxPushCurrent(c));
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == c);
    a(a.d.CtxPopCurrent(&popped));
    a.Value(popped == c);
    a(a.d.CtxPopCurrent(&popped));
    (void)a.d.DevicePrimaryCtxRelease(0);
  });
  ask.Plain("context.pop_without_output", "SUCCESS", [](Initialised& a) {
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxPushCurrent(c));
    a(a.d.CtxPopCurrent(nullptr));
    (void)a.d.DevicePrimaryCtxRelease(0);
  });
  ask.Risky("context.push_null", "INVALID_VALUE", [](Initialised& a) { a(a.d.CtxPushCurrent(nullptr)); });
  ask.Plain("context.set_null_pops", "SUCCESS 1", [](Initialised& a) {
    CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxSetCurrent(c));
    a(a.d.CtxSetCurrent(nullptr));
    a.Prepare(a.d.CtxGetCurrent(&c));
    a.Value(c == nullptr);
    (void)a.d.DevicePrimaryCtxRelease(0);
  });
  ask.Fresh("context.none", "INVALID_CONTEXT x4", [](Asker& a) {
    a.Prepare(a.d.Init(0));
    a(a.d.CtxGetDevice(kIgnored, nullptr));
    a(a.d.StreamCreate(kIgnored, 0));
    a(a.d.EventCreate(kIgnored, 0));
    a(a.d.ModuleLoadData(kIgnored, kPtx));
  });
  ask.Plain("context.api_version", "SUCCESS 3020", [](Ready& a) {
    unsigned version = 0;
    a(a.d.CtxGetApiVersion(a.context, &version), version);
  });
  ask.Plain("context.priorities", "SUCCESS 0 -5", [](Ready& a) {
    int least = 9, greatest = 9;
    a(a.d.CtxGetStreamPriorityRange(&least, &greatest), least, greatest);
  });
  ask.Plain("context.limits", "SUCCESS 1024 INVALID_VALUE", [](Ready& a) {
    std::size_t value = 0;
    a(a.d.CtxGetLimit(&value, CU_LIMIT_STACK_SIZE), value);
    a(a.d.CtxGetLimit(&value, Beyond<CUlimit>(77)));
  });
  ask.Plain("context.synchronize_idle", "SUCCESS", [](Ready& a) { a(a.d.CtxSynchronize(nullptr)); });
  ask.Risky("context.destroy_frees_children", "SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUcontext c = a.CtxCreate();
    const CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.CtxDestroy(c));
    a(a.d.MemFree(p));
  });
  ask.Risky("context.set_destroyed", "crash", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a.Prepare(a.d.CtxDestroy(c));
    a(a.d.CtxSetCurrent(c));
  });
}

}  // namespace cuaudit::contract::context_questions
