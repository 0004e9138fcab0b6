// SPDX-License-Identifier: MIT
// What a context is set to: limits, flags, cache and bank preferences, affinity; and the settings of the whole driver.
#include <cstring>

#include "suites/contract/question.h"

namespace cuaudit::contract::limit_questions {
namespace {

void Get(Asker& a, CUlimit limit) {
  std::size_t value = 0;
  if (a(a.d.CtxGetLimit(&value, limit)) == CUDA_SUCCESS) a.Value(static_cast<long long>(value));
}

void SetAndGet(Asker& a, CUlimit limit, std::size_t wanted) {
  if (a(a.d.CtxSetLimit(limit, wanted)) == CUDA_SUCCESS) Get(a, limit);
}

// A context of its own, so that what is set here is gone afterwards.
struct Own {
  explicit Own(Asker& a, unsigned flags = 0) : asker(a) {
    a.Prepare(a.d.Init(0));
    a.Prepare(a.d.CtxCreate(&context, nullptr, flags, 0));
  }
  ~Own() { (void)asker.d.CtxDestroy(context); }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  Asker& asker;
  CUcontext context = nullptr;
};

void Flags(Asker& a) {
  unsigned flags = 0;
  if (a(a.d.CtxGetFlags(&flags)) == CUDA_SUCCESS) a.Value(flags);
}

void PrimaryFlags(Asker& a) {
  unsigned flags = 0;
  int active = -1;
  a.Prepare(a.d.DevicePrimaryCtxGetState(0, &flags, &active));
  a.Value(flags);
  a.Value(active);
}

constexpr Question kQuestions[] = {
    {"limit.defaults",
     "SUCCESS 1024 SUCCESS 8650752 SUCCESS 8388608 UNSUPPORTED_LIMIT SUCCESS 2048 SUCCESS 64 SUCCESS 11796480 SUCCESS 232448 SUCCESS 0 "
     "UNSUPPORTED_LIMIT INVALID_VALUE INVALID_VALUE",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       for (unsigned i = 0; i < 12; ++i) Get(a, Beyond<CUlimit>(i));
     }},
    {"limit.stack",
     "SUCCESS SUCCESS 0 SUCCESS SUCCESS 16 SUCCESS SUCCESS 15 SUCCESS SUCCESS 16 SUCCESS SUCCESS 32 SUCCESS SUCCESS 1008 SUCCESS SUCCESS "
     "4096 SUCCESS SUCCESS 65536 INVALID_VALUE INVALID_VALUE",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       for (const std::size_t bytes : {0U, 1U, 15U, 16U, 17U, 1000U, 4096U, 65536U, 524288U, 524289U})
         SetAndGet(a, CU_LIMIT_STACK_SIZE, bytes);
     }},
    {"limit.printf", "SUCCESS SUCCESS 524288 SUCCESS SUCCESS 524288 SUCCESS SUCCESS 524288 SUCCESS SUCCESS 524288 SUCCESS SUCCESS 1048576",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       for (const std::size_t bytes : {0U, 1U, 4096U, 5000U, 1048576U}) SetAndGet(a, CU_LIMIT_PRINTF_FIFO_SIZE, bytes);
     }},
    {"limit.heap",
     "SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 SUCCESS "
     "SUCCESS 5046272 SUCCESS SUCCESS 16777216",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       for (const std::size_t bytes : {0U, 1U, 4096U, 1048576U, 4194304U, 5000000U, 16777216U})
         SetAndGet(a, CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
     }},
    {"limit.device_runtime",
     "UNSUPPORTED_LIMIT UNSUPPORTED_LIMIT UNSUPPORTED_LIMIT UNSUPPORTED_LIMIT SUCCESS SUCCESS 32 SUCCESS SUCCESS 32 SUCCESS SUCCESS 100 "
     "SUCCESS SUCCESS 4096",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       for (const std::size_t depth : {0U, 2U, 24U, 25U}) SetAndGet(a, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, depth);
       for (const std::size_t count : {0U, 1U, 100U, 4096U}) SetAndGet(a, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, count);
     }},
    {"limit.l2_granularity",
     "SUCCESS SUCCESS 0 SUCCESS SUCCESS 1 SUCCESS SUCCESS 32 SUCCESS SUCCESS 33 SUCCESS SUCCESS 64 SUCCESS SUCCESS 65 SUCCESS SUCCESS 128 "
     "INVALID_VALUE",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       for (const std::size_t bytes : {0U, 1U, 32U, 33U, 64U, 65U, 128U, 129U}) SetAndGet(a, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, bytes);
     }},
    {"limit.l2_persisting",
     "SUCCESS SUCCESS 0 SUCCESS SUCCESS 3932160 SUCCESS SUCCESS 3932160 SUCCESS SUCCESS 39321600 INVALID_VALUE INVALID_VALUE SUCCESS "
     "SUCCESS 39321600",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       for (const std::size_t bytes : {0U, 1U, 1000000U, 39321600U, 39321601U, 100000000U})
         SetAndGet(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, bytes);
       a(a.d.CtxResetPersistingL2Cache());
       Get(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
     }},
    {"limit.query_only", "NOT_PERMITTED NOT_PERMITTED UNSUPPORTED_LIMIT INVALID_VALUE INVALID_VALUE", Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       SetAndGet(a, CU_LIMIT_SHMEM_SIZE, 1024);
       SetAndGet(a, CU_LIMIT_CIG_ENABLED, 1);
       SetAndGet(a, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 1);
       SetAndGet(a, CU_LIMIT_MAX, 1);
       a(a.d.CtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE));
     }},
    {"limit.of_each_context", "SUCCESS SUCCESS 4096 SUCCESS 1024", Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       SetAndGet(a, CU_LIMIT_STACK_SIZE, 4096);
       const Own other(a);
       Get(a, CU_LIMIT_STACK_SIZE);
     }},
    {"limit.heap_after_module", "SUCCESS SUCCESS 16777216 SUCCESS SUCCESS 2097152", Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       CUmodule m = nullptr;
       CUfunction f = nullptr;
       a.Prepare(a.d.ModuleLoadData(&m, kPtx));
       a.Prepare(a.d.ModuleGetFunction(&f, m, "plain"));
       a.Prepare(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
       a.Prepare(a.d.CtxSynchronize(nullptr));
       SetAndGet(a, CU_LIMIT_MALLOC_HEAP_SIZE, 16777216);
       SetAndGet(a, CU_LIMIT_PRINTF_FIFO_SIZE, 2097152);
     }},
    {"context.cache_configs", "SUCCESS 0 SUCCESS 2 SUCCESS 3 INVALID_VALUE INVALID_VALUE", Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       CUfunc_cache cache = CU_FUNC_CACHE_PREFER_EQUAL;
       a(a.d.CtxGetCacheConfig(&cache));
       a.Value(cache);
       for (const CUfunc_cache each : {CU_FUNC_CACHE_PREFER_L1, CU_FUNC_CACHE_PREFER_EQUAL}) {
         a(a.d.CtxSetCacheConfig(each));
         a.Prepare(a.d.CtxGetCacheConfig(&cache));
         a.Value(cache);
       }
       a(a.d.CtxSetCacheConfig(Beyond<CUfunc_cache>(4)));
       a(a.d.CtxGetCacheConfig(nullptr));
     }},
    {"context.bank_configs", "SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 1 INVALID_VALUE 1", Manner::Fresh,
     [](Asker& a) {
       const Own own(a);
       CUsharedconfig banks = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
       a(a.d.CtxGetSharedMemConfig(&banks));
       a.Value(banks);
       for (unsigned each = 0; each < 4; ++each) {
         a(a.d.CtxSetSharedMemConfig(Beyond<CUsharedconfig>(each)));
         a.Prepare(a.d.CtxGetSharedMemConfig(&banks));
         a.Value(banks);
       }
     }},
    {"context.flag_words",
     "SUCCESS SUCCESS 0 SUCCESS SUCCESS 1 SUCCESS SUCCESS 2 INVALID_VALUE SUCCESS SUCCESS 4 INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS 8 "
     "SUCCESS SUCCESS 16 SUCCESS SUCCESS 17 SUCCESS SUCCESS 24 SUCCESS SUCCESS 32 SUCCESS SUCCESS 32 SUCCESS SUCCESS 128 SUCCESS SUCCESS "
     "129 INVALID_VALUE",
     Manner::Fresh,
     [](Asker& a) {
       for (const unsigned flags : {0U, 1U, 2U, 3U, 4U, 5U, 7U, 8U, 16U, 17U, 24U, 32U, 64U, 128U, 129U, 256U}) {
         a.Prepare(a.d.Init(0));
         CUcontext c = nullptr;
         if (a(a.d.CtxCreate(&c, nullptr, flags, 0)) != CUDA_SUCCESS) continue;
         Flags(a);
         (void)a.d.CtxDestroy(c);
       }
     }},
    {"context.set_flags",
     "SUCCESS SUCCESS 0 SUCCESS SUCCESS 2 INVALID_VALUE SUCCESS SUCCESS 4 SUCCESS SUCCESS 0 SUCCESS SUCCESS 16 SUCCESS SUCCESS 128 SUCCESS "
     "SUCCESS 132 INVALID_VALUE",
     Manner::Fresh,
     [](Asker& a) {
       const Own own(a, CU_CTX_SCHED_SPIN);
       for (const unsigned flags : {0U, 2U, 3U, 4U, 8U, 16U, 128U, 132U, 0x10000U}) {
         if (a(a.d.CtxSetFlags(flags)) == CUDA_SUCCESS) Flags(a);
       }
     }},
    {"primary.flag_words",
     "SUCCESS 0 0 SUCCESS 1 0 INVALID_VALUE SUCCESS 4 0 INVALID_VALUE SUCCESS 16 0 SUCCESS 32 0 SUCCESS 128 0 INVALID_DEVICE",
     Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       for (const unsigned flags : {0U, 1U, 3U, 4U, 8U, 16U, 32U, 128U}) {
         if (a(a.d.DevicePrimaryCtxSetFlags(0, flags)) == CUDA_SUCCESS) PrimaryFlags(a);
       }
       a(a.d.DevicePrimaryCtxSetFlags(99, 0));
     }},
    {"primary.flags_while_active", "SUCCESS 1 1 SUCCESS 4 1 SUCCESS 12 SUCCESS SUCCESS 10 4 1 SUCCESS 0 0 SUCCESS 0 SUCCESS 0 1",
     Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       a.Prepare(a.d.Init(0));
       a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       PrimaryFlags(a);
       a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
       PrimaryFlags(a);
       a.Prepare(a.d.CtxPushCurrent(c));
       Flags(a);
       a(a.d.CtxSetFlags(CU_CTX_SCHED_YIELD));
       Flags(a);
       PrimaryFlags(a);
       a(a.d.DevicePrimaryCtxReset(0));
       PrimaryFlags(a);
       Flags(a);
       a(a.d.DevicePrimaryCtxRetain(&c, 0));
       PrimaryFlags(a);
     }},
    {"primary.reset_keeps_count", "SUCCESS 0 0 CONTEXT_IS_DESTROYED SUCCESS INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       CUcontext c = nullptr;
       CUdeviceptr p = 0;
       a.Prepare(a.d.Init(0));
       a.Prepare(a.d.DevicePrimaryCtxRetain(&c, 0));
       a.Prepare(a.d.CtxPushCurrent(c));
       a.Prepare(a.d.MemAlloc(&p, 4096));
       a(a.d.DevicePrimaryCtxReset(0));
       PrimaryFlags(a);
       a(a.d.MemAlloc(&p, 4096));
       a(a.d.DevicePrimaryCtxRelease(0));
       a(a.d.DevicePrimaryCtxRelease(0));
     }},
    {"context.affinity_v3", "UNSUPPORTED_EXEC_AFFINITY SUCCESS INVALID_VALUE UNSUPPORTED_EXEC_AFFINITY", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUcontext c = nullptr;
       CUexecAffinityParam affinity = {};
       affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
       affinity.param.smCount.val = 8;
       CUctxCreateParams parameters = {};
       parameters.execAffinityParams = &affinity;
       parameters.numExecAffinityParams = 1;
       a(a.d.CtxCreate(&c, &parameters, 0, 0));
       CUctxCreateParams empty = {};
       if (a(a.d.CtxCreate(&c, &empty, 0, 0)) == CUDA_SUCCESS) (void)a.d.CtxDestroy(c);
       parameters.execAffinityParams = nullptr;
       a(a.d.CtxCreate(&c, &parameters, 0, 0));
       parameters.execAffinityParams = &affinity;
       affinity.type = Beyond<CUexecAffinityType>(9);
       a(a.d.CtxCreate(&c, &parameters, 0, 0));
     }},
    {"context.get_affinity", "SUCCESS 132 UNSUPPORTED_EXEC_AFFINITY", Manner::Risky,
     [](Asker& a) {
       const Own own(a);
       CUexecAffinityParam affinity = {};
       if (a(a.d.CtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT)) == CUDA_SUCCESS) a.Value(affinity.param.smCount.val);
       a(a.d.CtxGetExecAffinity(&affinity, Beyond<CUexecAffinityType>(9)));
     }},
    {"context.attach_detach", "SUCCESS 1 INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", Manner::Risky,
     [](Asker& a) {
       const Own own(a);
       CUcontext c = nullptr;
       CUcontext current = nullptr;
       a(a.d.CtxAttach(&c, 0));
       a.Value(c == own.context);
       a(a.d.CtxAttach(&c, 1));
       a(a.d.CtxAttach(nullptr, 0));
       a(a.d.CtxDetach(own.context));
       a(a.d.CtxGetCurrent(&current));
       a.Value(current == own.context);
       a(a.d.CtxDetach(own.context));
       a(a.d.CtxGetCurrent(&current));
       a.Value(current == nullptr);
     }},
};

}  // namespace
}  // namespace cuaudit::contract::limit_questions

namespace cuaudit::contract {
std::span<const Question> LimitQuestions() { return limit_questions::kQuestions; }
}  // namespace cuaudit::contract
