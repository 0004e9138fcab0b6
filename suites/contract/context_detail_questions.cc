// SPDX-License-Identifier: MIT
// Details of contexts that the first answers left open: flags after the end, attaching to others, old contexts, work of green streams.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/driver/call_shape.h"
#include "suites/contract/question.h"

namespace cuaudit::contract::context_detail_questions {
namespace {

using driver::CallId;

// Calls exactly this version of an entry point.
template <CallId id, typename... A>
CUresult Exactly(const Asker& a, A... arguments) {
  using Entry = typename driver::CallType<id>::Entry;
  return reinterpret_cast<Entry*>(a.d.table->entry[driver::Index(id)])(a.d.self, arguments...);
}

CUgreenCtx Green(Asker& a) {
  CUdevResource all = {};
  CUdevResource part = {};
  unsigned groups = 1;
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  a.Prepare(a.d.DevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16));
  a.Prepare(a.d.DevResourceGenerateDesc(&desc, &part, 1));
  a.Prepare(a.d.GreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

CUstream StreamOf(Asker& a, CUgreenCtx green) {
  CUstream s = nullptr;
  a.Prepare(a.d.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
  return s;
}

void Bump(void* argument) { ++*static_cast<int*>(argument); }

void Flags(Asker& a) {
  unsigned flags = 99;
  if (a(a.d.CtxGetFlags(&flags)) == CUDA_SUCCESS) a.Value(flags);
}

constexpr Question kQuestions[] = {
    {"context_detail.primary_flags", "SUCCESS 8", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       Flags(a);
     }},
    {"context_detail.flags_of_destroyed", "SUCCESS SUCCESS 0", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUcontext c = nullptr;
       CUcontext other = nullptr;
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.CtxPushCurrent(c));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a(a.d.CtxDestroy(c));
       a.Prepare(a.d.CtxPopCurrent(&other));
       Flags(a);
     }},
    {"context_detail.attach_primary", "SUCCESS SUCCESS SUCCESS 1 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUcontext c = nullptr;
       unsigned flags = 0;
       int active = -1;
       a(a.d.CtxAttach(&c, 0));
       a(a.d.CtxDetach(c));
       a(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
       a.Value(active);
       a(a.d.CtxDetach(c));
     }},
    {"context_detail.detach_elsewhere", "INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUcontext c = nullptr;
       CUcontext other = nullptr;
       a.Prepare(a.d.CtxCreate(&c, nullptr, 0, 0));
       a.Prepare(a.d.CtxCreate(&other, nullptr, 0, 0));
       a(a.d.CtxDetach(c));
     }},
    {"context_detail.old_memory_in_old_context", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUcontext c = nullptr;
       CUdeviceptr_v1 p = 0;
       a(Exactly<CallId::CtxCreate>(a, &c, 0U, 0));
       a(Exactly<CallId::MemAlloc>(a, &p, 4096U));
     }},
    {"context_detail.new_memory_in_old_context", "SUCCESS INVALID_CONTEXT INVALID_CONTEXT", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUcontext c = nullptr;
       CUdeviceptr p = 0;
       a(Exactly<CallId::CtxCreate>(a, &c, 0U, 0));
       a(a.d.MemAlloc(&p, 4096));
       a(a.d.MemFree(p));
     }},
    {"context_detail.loaded_by_launch", "SUCCESS 0 SUCCESS SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUmodule m = nullptr;
       CUfunction functions[2] = {};
       CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
       const char* name = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.ModuleEnumerateFunctions(functions, 2, m));
       a.Prepare(a.d.FuncGetName(&name, functions[0]));
       const CUfunction plain = name[0] == 'p' ? functions[0] : functions[1];
       a(a.d.FuncIsLoaded(&state, plain));
       a.Value(state);
       a(a.d.LaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
       a(a.d.FuncIsLoaded(&state, plain));
       a.Value(state);
     }},
    {"context_detail.green_synchronize", "SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       CUcontext view = nullptr;
       int n = 0;
       a.Prepare(a.d.CtxFromGreenCtx(&view, green));
       a.Prepare(a.d.LaunchHostFunc(s, Bump, &n));
       a(a.d.CtxSynchronize(view));
       a.Value(n);
     }},
    {"context_detail.green_events", "SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       const CUstream s = StreamOf(a, green);
       CUstream plain = nullptr;
       CUevent e = nullptr;
       a.Prepare(a.d.StreamCreate(&plain, CU_STREAM_NON_BLOCKING));
       a.Prepare(a.d.EventCreate(&e, 0));
       a(a.d.EventRecord(e, s));
       a(a.d.StreamWaitEvent(plain, e, 0));
       a(a.d.StreamSynchronize(plain));
     }},
    {"context_detail.green_kernel", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUstream s = StreamOf(a, Green(a));
       CUmodule m = nullptr;
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
       a(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
       a(a.d.StreamSynchronize(s));
     }},
    {"context_detail.green_after_reset", "NOT_PERMITTED SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       const CUgreenCtx green = Green(a);
       a(a.d.DevicePrimaryCtxReset(0));
       a(a.d.GreenCtxDestroy(green));
     }},
    {"context_detail.texture_of_destroyed_array", "SUCCESS SUCCESS INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUtexref t = nullptr;
       CUarray array = nullptr;
       CUarray back = nullptr;
       CUDA_ARRAY_DESCRIPTOR desc = {};
       desc.Width = desc.Height = 16;
       desc.Format = CU_AD_FORMAT_FLOAT;
       desc.NumChannels = 1;
       a.Prepare(a.d.TexRefCreate(&t));
       a.Prepare(a.d.ArrayCreate(&array, &desc));
       a(a.d.TexRefSetArray(t, array, CU_TRSA_OVERRIDE_FORMAT));
       a(a.d.ArrayDestroy(array));
       a(a.d.TexRefGetArray(&back, t));
     }},
    {"context_detail.notification", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUasyncCallbackHandle handle = nullptr;
       a(a.d.DeviceRegisterAsyncNotification(
           0, [](CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}, nullptr, &handle));
       a(a.d.DeviceUnregisterAsyncNotification(0, handle));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::context_detail_questions

namespace cuaudit::contract {
std::span<const Question> ContextDetailQuestions() { return context_detail_questions::kQuestions; }
}  // namespace cuaudit::contract
