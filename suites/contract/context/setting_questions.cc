// SPDX-License-Identifier: MIT
// Settings of contexts, threads and primary contexts that outlive the call (faults/driver/settings.def): what is read back after a change,
// after one that is refused and after one that is undone; what a fresh context has, and what becomes of a setting when its context ends.
#include <thread>

#include "suites/contract/question.h"

namespace cuaudit::contract::setting_questions {
namespace {

constexpr std::size_t kHuge = ~std::size_t{0};
constexpr CUlimit kLimits[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE,
                               CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, CU_LIMIT_MAX_L2_FETCH_GRANULARITY};

// A context of its own is current.
struct Own : Initialised {
  explicit Own(const Asker& asker, unsigned flags = 0) : Initialised(asker) { Prepare(d.CtxCreate(&context, nullptr, flags, 0)); }
  CUcontext context = nullptr;
};

std::size_t LimitOf(Asker& a, CUlimit limit) {
  std::size_t value = 0;
  a.Prepare(a.d.CtxGetLimit(&value, limit));
  return value;
}

void Stack(Asker& a) {
  std::size_t value = 0;
  a.Either(a.d.CtxGetLimit(&value, CU_LIMIT_STACK_SIZE), value);
}
void SetStack(Asker& a, std::size_t bytes) { a(a.d.CtxSetLimit(CU_LIMIT_STACK_SIZE, bytes)); }

void Cache(Asker& a) {
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_EQUAL;
  a.Either(a.d.CtxGetCacheConfig(&cache), cache);
}

void Banks(Asker& a) {
  CUsharedconfig banks = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  a.Either(a.d.CtxGetSharedMemConfig(&banks), banks);
}

void Flags(Asker& a) {
  unsigned flags = 99;
  a.Either(a.d.CtxGetFlags(&flags), flags);
}

void PrimaryFlags(Asker& a) {
  unsigned flags = 99;
  int active = -1;
  a.Either(a.d.DevicePrimaryCtxGetState(0, &flags, &active), flags, active);
}

// Gives the calling thread a capture mode and appends the one that it had.
void Mode(Asker& a, CUstreamCaptureMode mode) {
  const CUresult result = a.d.ThreadExchangeStreamCaptureMode(&mode);
  a.Either(result, mode);
}

// The primary context is held once and current.
void HoldPrimary(Asker& a) { a.Prepare(a.d.CtxSetCurrent(a.DevicePrimaryCtxRetain())); }

void ListOfLimits(Questions& ask) {
  ask.Fresh("setting.limits_put_back", "SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 1", [](Own& a) {
    for (const CUlimit limit : kLimits) {
      const std::size_t before = LimitOf(a, limit);
      a.Prepare(a.d.CtxSetLimit(limit, before * 2));
      a(a.d.CtxSetLimit(limit, before));
      a.Value(LimitOf(a, limit) == before);
    }
  });
  ask.Fresh("setting.l2_share_put_back", "SUCCESS SUCCESS 1", [](Own& a) {
    const std::size_t before = LimitOf(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
    a(a.d.CtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
    a(a.d.CtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, before));
    a.Value(LimitOf(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == before);
  });
  ask.Fresh("setting.limit_refused", "SUCCESS INVALID_VALUE 4096", [](Own& a) {
    SetStack(a, 4096);
    SetStack(a, std::size_t{1} << 20);
    Stack(a);
  });
  ask.Fresh("setting.limit_huge_stack", "INVALID_VALUE 1024", [](Own& a) {
    SetStack(a, kHuge);
    Stack(a);
  });
  ask.Fresh("setting.limit_huge_heap", "SUCCESS 0", [](Own& a) {
    const std::size_t before = LimitOf(a, CU_LIMIT_MALLOC_HEAP_SIZE);
    a(a.d.CtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{1} << 50));
    a.Value(LimitOf(a, CU_LIMIT_MALLOC_HEAP_SIZE) == before);
  });
  ask.Fresh("setting.limit_huge_fifo", "SUCCESS 0", [](Own& a) {
    const std::size_t before = LimitOf(a, CU_LIMIT_PRINTF_FIFO_SIZE);
    a(a.d.CtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, std::size_t{1} << 50));
    a.Value(LimitOf(a, CU_LIMIT_PRINTF_FIFO_SIZE) == before);
  });
  ask.Fresh("setting.limit_huge_granularity", "INVALID_VALUE 64", [](Own& a) {
    a(a.d.CtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, kHuge));
    a.Value(static_cast<long long>(LimitOf(a, CU_LIMIT_MAX_L2_FETCH_GRANULARITY)));
  });
  ask.Fresh("setting.limit_huge_share", "INVALID_VALUE 1", [](Own& a) {
    const std::size_t before = LimitOf(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
    a(a.d.CtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, kHuge));
    a.Value(LimitOf(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == before);
  });
  ask.Fresh("setting.limit_unknown", "INVALID_VALUE INVALID_VALUE 1024", [](Own& a) {
    a(a.d.CtxSetLimit(Beyond<CUlimit>(99), 1));
    a(a.d.CtxGetLimit(kIgnored, Beyond<CUlimit>(99)));
    Stack(a);
  });
  ask.Fresh("setting.limit_without_context", "INVALID_CONTEXT INVALID_CONTEXT", [](Initialised& a) {
    SetStack(a, 4096);
    Stack(a);
  });
  ask.Fresh("setting.limit_before_init", "NOT_INITIALIZED NOT_INITIALIZED", [](Asker& a) {
    SetStack(a, 4096);
    Stack(a);
  });
  ask.Fresh("setting.limit_while_another_holds_it", "SUCCESS 4096", [](Initialised& a) {
    HoldPrimary(a);
    HoldPrimary(a);
    SetStack(a, 4096);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    Stack(a);
  });
  ask.Fresh("setting.limit_after_release", "SUCCESS CONTEXT_IS_DESTROYED 1024", [](Initialised& a) {
    HoldPrimary(a);
    SetStack(a, 4096);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    Stack(a);
    HoldPrimary(a);
    Stack(a);
  });
  ask.Fresh("setting.limit_after_reset", "SUCCESS CONTEXT_IS_DESTROYED 1024", [](Initialised& a) {
    HoldPrimary(a);
    SetStack(a, 4096);
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    Stack(a);
    HoldPrimary(a);
    Stack(a);
  });
  ask.Fresh("setting.limit_set_after_reset", "SUCCESS CONTEXT_IS_DESTROYED", [](Initialised& a) {
    HoldPrimary(a);
    a(a.d.DevicePrimaryCtxReset(0));
    SetStack(a, 4096);
  });
  ask.Fresh("setting.limit_after_destroy", "SUCCESS INVALID_CONTEXT 1024", [](Own& a) {
    SetStack(a, 4096);
    a.Prepare(a.d.CtxDestroy(a.context));
    Stack(a);
    a.CtxCreate();
    Stack(a);
  });
  ask.Fresh("setting.limit_of_another_thread", "SUCCESS 1024 4096", [](Own& a) {
    std::thread([&] {
      a.Prepare(a.d.CtxSetCurrent(a.context));
      SetStack(a, 4096);
      a.Prepare(a.d.CtxSetCurrent(nullptr));
      a.CtxCreate();
      Stack(a);
    }).join();
    Stack(a);
  });
  ask.Fresh("setting.limit_in_a_green_context", "SUCCESS 4096 4096", [](Initialised& a) {
    HoldPrimary(a);
    CUdevResource all{};
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    CUcontext view = nullptr;
    a.Prepare(a.d.DeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    a.Prepare(a.d.DevResourceGenerateDesc(&description, &all, 1));
    a.Prepare(a.d.GreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    a.Prepare(a.d.CtxFromGreenCtx(&view, green));
    a.Prepare(a.d.CtxPushCurrent(view));
    SetStack(a, 4096);
    Stack(a);
    (void)a.CtxPopCurrent();
    Stack(a);
  });
}

void ListOfConfigurations(Questions& ask) {
  ask.Fresh("setting.cache_put_back", "0 SUCCESS 1 SUCCESS 0", [](Own& a) {
    Cache(a);
    a(a.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
    Cache(a);
    a(a.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE));
    Cache(a);
  });
  ask.Fresh("setting.cache_refused", "SUCCESS INVALID_VALUE INVALID_VALUE 2", [](Own& a) {
    a(a.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    a(a.d.CtxSetCacheConfig(Beyond<CUfunc_cache>(4)));
    a(a.d.CtxSetCacheConfig(Beyond<CUfunc_cache>(~0U)));
    Cache(a);
  });
  ask.Fresh("setting.cache_without_context", "INVALID_CONTEXT INVALID_CONTEXT", [](Initialised& a) {
    a(a.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    Cache(a);
  });
  ask.Fresh("setting.cache_after_release", "SUCCESS CONTEXT_IS_DESTROYED 0", [](Initialised& a) {
    HoldPrimary(a);
    a(a.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    Cache(a);
    HoldPrimary(a);
    Cache(a);
  });
  ask.Fresh("setting.cache_of_each_context", "SUCCESS 0 2", [](Own& a) {
    a(a.d.CtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    a.CtxCreate();
    Cache(a);
    (void)a.CtxPopCurrent();
    Cache(a);
  });
  ask.Fresh("setting.banks_put_back", "1 SUCCESS 1 SUCCESS 1", [](Own& a) {
    Banks(a);
    a(a.d.CtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    Banks(a);
    a(a.d.CtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    Banks(a);
  });
  ask.Fresh("setting.banks_refused", "INVALID_VALUE INVALID_VALUE 1", [](Own& a) {
    a(a.d.CtxSetSharedMemConfig(Beyond<CUsharedconfig>(3)));
    a(a.d.CtxSetSharedMemConfig(Beyond<CUsharedconfig>(~0U)));
    Banks(a);
  });
  ask.Fresh("setting.banks_without_context", "INVALID_CONTEXT INVALID_CONTEXT", [](Initialised& a) {
    a(a.d.CtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    Banks(a);
  });
}

void ListOfFlags(Questions& ask) {
  ask.Fresh("setting.flags_put_back", "0 SUCCESS 4 SUCCESS 0", [](Own& a) {
    Flags(a);
    a(a.d.CtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    Flags(a);
    a(a.d.CtxSetFlags(CU_CTX_SCHED_AUTO));
    Flags(a);
  });
  // A primary context has a flag of its own: CU_CTX_MAP_HOST.
  ask.Fresh("setting.flags_of_primary_put_back", "8 SUCCESS 12 SUCCESS 8 0 1", [](Initialised& a) {
    HoldPrimary(a);
    Flags(a);
    a(a.d.CtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    Flags(a);
    a(a.d.CtxSetFlags(CU_CTX_MAP_HOST));
    Flags(a);
    PrimaryFlags(a);
  });
  ask.Fresh("setting.flags_refused", "SUCCESS INVALID_VALUE INVALID_VALUE 4", [](Own& a) {
    a(a.d.CtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    a(a.d.CtxSetFlags(CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
    a(a.d.CtxSetFlags(~0U));
    Flags(a);
  });
  ask.Fresh("setting.flags_without_context", "INVALID_CONTEXT INVALID_CONTEXT", [](Initialised& a) {
    a(a.d.CtxSetFlags(CU_CTX_SCHED_SPIN));
    Flags(a);
  });
  ask.Fresh("setting.flags_after_release", "SUCCESS 0 crash", [](Initialised& a) {
    HoldPrimary(a);
    a(a.d.CtxSetFlags(CU_CTX_SCHED_SPIN));
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    Flags(a);
    a(a.d.CtxSetFlags(CU_CTX_SCHED_SPIN));
    HoldPrimary(a);
    Flags(a);
  });
  ask.Fresh("setting.primary_flags_put_back", "0 0 SUCCESS 4 0 SUCCESS 0 0", [](Initialised& a) {
    PrimaryFlags(a);
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    PrimaryFlags(a);
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_AUTO));
    PrimaryFlags(a);
  });
  ask.Fresh("setting.primary_flags_refused", "SUCCESS INVALID_VALUE INVALID_VALUE INVALID_DEVICE 4 0", [](Initialised& a) {
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
    a(a.d.DevicePrimaryCtxSetFlags(0, ~0U));
    a(a.d.DevicePrimaryCtxSetFlags(-1, 0));
    PrimaryFlags(a);
  });
  ask.Fresh("setting.primary_flags_before_init", "NOT_INITIALIZED NOT_INITIALIZED", [](Asker& a) {
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
    PrimaryFlags(a);
  });
  ask.Fresh("setting.primary_flags_after_release", "SUCCESS 0 0 0 1 8", [](Initialised& a) {
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    HoldPrimary(a);
    a.Prepare(a.d.DevicePrimaryCtxRelease(0));
    PrimaryFlags(a);
    HoldPrimary(a);
    PrimaryFlags(a);
    Flags(a);
  });
  ask.Fresh("setting.primary_flags_put_back_while_active", "SUCCESS 4 1 SUCCESS 0 1 8", [](Initialised& a) {
    HoldPrimary(a);
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    PrimaryFlags(a);
    a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_AUTO));
    PrimaryFlags(a);
    Flags(a);
  });
}

}  // namespace

void List(Questions& ask) {
  ListOfLimits(ask);
  ListOfConfigurations(ask);
  ListOfFlags(ask);
  ask.Risky("setting.mode_put_back", "0 2 0", [](Initialised& a) {
    Mode(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    Mode(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
    Mode(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
  ask.Risky("setting.mode_refused", "0 crash", [](Initialised& a) {
    Mode(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    a(a.d.ThreadExchangeStreamCaptureMode(nullptr));
    Mode(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
  ask.Risky("setting.mode_huge", "SUCCESS 4294967295", [](Initialised& a) {
    CUstreamCaptureMode mode = Beyond<CUstreamCaptureMode>(~0U);
    a(a.d.ThreadExchangeStreamCaptureMode(&mode));
    Mode(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
  ask.Risky("setting.mode_before_init", "NOT_INITIALIZED", [](Asker& a) { Mode(a, CU_STREAM_CAPTURE_MODE_RELAXED); });
  ask.Risky("setting.mode_of_another_thread", "0 0 2", [](Initialised& a) {
    Mode(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    std::thread([&] { Mode(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }).join();
    Mode(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
  ask.Fresh("setting.mode_after_destroy", "0 2", [](Own& a) {
    Mode(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    a.Prepare(a.d.CtxDestroy(a.context));
    Mode(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
  ask.Fresh("setting.mode_after_reset", "0 2", [](Initialised& a) {
    HoldPrimary(a);
    Mode(a, CU_STREAM_CAPTURE_MODE_RELAXED);
    a.Prepare(a.d.DevicePrimaryCtxReset(0));
    Mode(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
}

}  // namespace cuaudit::contract::setting_questions
