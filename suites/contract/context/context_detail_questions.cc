// SPDX-License-Identifier: MIT
// Details of contexts that the first answers left open: flags after the end, attaching to others, old contexts, work of green streams.
#define __CUDA_API_VERSION_INTERNAL
#include "suites/contract/code/exactly.h"
#include "suites/contract/context/green.h"

namespace cuaudit::contract::context_detail_questions {
namespace {

using driver::CallId;

void Flags(Asker& a) {
  unsigned flags = 99;
  if (a(a.d.CtxGetFlags(&flags)) == CUDA_SUCCESS) a.Value(flags);
}

}  // namespace

void List(Questions& ask) {
  ask.Fresh("context_detail.primary_flags", "SUCCESS 8", [](Ready& a) { Flags(a); });
  ask.Risky("context_detail.flags_of_destroyed", "SUCCESS SUCCESS 0", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a.Prepare(a.d.CtxPushCurrent(c));
    CUcontext other = a.CtxCreate();
    a(a.d.CtxDestroy(c));
    a.Prepare(a.d.CtxPopCurrent(&other));
    Flags(a);
  });
  ask.Risky("context_detail.attach_primary", "SUCCESS x3 1 SUCCESS", [](Ready& a) {
    CUcontext c = nullptr;
    int active = -1;
    a(a.d.CtxAttach(&c, 0));
    a(a.d.CtxDetach(c));
    a(a.d.DevicePrimaryCtxGetState(0, kIgnored, &active), active);
    a(a.d.CtxDetach(c));
  });
  ask.Risky("context_detail.detach_elsewhere", "INVALID_CONTEXT", [](Initialised& a) {
    const CUcontext c = a.CtxCreate();
    a.CtxCreate();
    a(a.d.CtxDetach(c));
  });
  ask.Risky("context_detail.old_memory_in_old_context", "SUCCESS SUCCESS", [](Initialised& a) {
    CUcontext c = nullptr;
    CUdeviceptr_v1 p = 0;
    a(Exactly<CallId::CtxCreate>(a, &c, 0U, 0));
    a(Exactly<CallId::MemAlloc>(a, &p, 4096U));
  });
  ask.Risky("context_detail.new_memory_in_old_context", "SUCCESS INVALID_CONTEXT INVALID_CONTEXT", [](Initialised& a) {
    CUcontext c = nullptr;
    CUdeviceptr p = 0;
    a(Exactly<CallId::CtxCreate>(a, &c, 0U, 0));
    a(a.d.MemAlloc(&p, 4096));
    a(a.d.MemFree(p));
  });
  ask.Risky("context_detail.loaded_by_launch", "SUCCESS 0 SUCCESS SUCCESS 1", [](Ready& a) {
    CUfunction functions[2] = {};
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
    const char* name = nullptr;
    const CUmodule m = a.ModuleLoadData();
    a.Prepare(a.d.ModuleEnumerateFunctions(functions, 2, m));
    a.Prepare(a.d.FuncGetName(&name, functions[0]));
    const CUfunction plain = name[0] == 'p' ? functions[0] : functions[1];
    a(a.d.FuncIsLoaded(&state, plain), state);
    a(a.d.LaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    a(a.d.FuncIsLoaded(&state, plain), state);
  });
  ask.Risky("context_detail.green_synchronize", "SUCCESS 1", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green);
    CUcontext view = nullptr;
    int n = 0;
    a.Prepare(a.d.CtxFromGreenCtx(&view, green));
    a.Prepare(a.d.LaunchHostFunc(s, Bump, &n));
    a(a.d.CtxSynchronize(view));
    a.Value(n);
  });
  ask.Risky("context_detail.green_events", "SUCCESS x3", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    const CUstream s = StreamOf(a, green), plain = a.StreamCreate();
    const CUevent e = a.EventCreate();
    a(a.d.EventRecord(e, s));
    a(a.d.StreamWaitEvent(plain, e, 0));
    a(a.d.StreamSynchronize(plain));
  });
  ask.Risky("context_detail.green_kernel", "SUCCESS SUCCESS", [](Ready& a) {
    const CUstream s = StreamOf(a, Green(a));
    const CUfunction f = a.ModuleGetFunction("plain");
    a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
    a(a.d.StreamSynchronize(s));
  });
  ask.Risky("context_detail.green_after_reset", "NOT_PERMITTED SUCCESS", [](Ready& a) {
    const CUgreenCtx green = Green(a);
    a(a.d.DevicePrimaryCtxReset(0));
    a(a.d.GreenCtxDestroy(green));
  });
  ask.Risky("context_detail.texture_of_destroyed_array", "SUCCESS SUCCESS INVALID_VALUE", [](Ready& a) {
    CUtexref t = nullptr;
    CUDA_ARRAY_DESCRIPTOR desc = {};
    desc.Width = desc.Height = 16;
    desc.Format = CU_AD_FORMAT_FLOAT;
    desc.NumChannels = 1;
    a.Prepare(a.d.TexRefCreate(&t));
    const CUarray array = a.ArrayCreate(desc);
    a(a.d.TexRefSetArray(t, array, CU_TRSA_OVERRIDE_FORMAT));
    a(a.d.ArrayDestroy(array));
    a(a.d.TexRefGetArray(kIgnored, t));
  });
  ask.Risky("context_detail.notification", "SUCCESS SUCCESS", [](Ready& a) {
    CUasyncCallbackHandle handle = nullptr;
    a(a.d.DeviceRegisterAsyncNotification(
        0, [](CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}, nullptr, &handle));
    a(a.d.DeviceUnregisterAsyncNotification(0, handle));
  });
}

}  // namespace cuaudit::contract::context_detail_questions
