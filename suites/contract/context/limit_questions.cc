// SPDX-License-Identifier: MIT
// Limits, flags, cache settings and other things that a context is told.
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

// A context of its own is current.
struct Own : Initialised {
  explicit Own(const Asker& asker, unsigned flags = 0) : Initialised(asker) { Prepare(d.CtxCreate(&context, nullptr, flags, 0)); }
  CUcontext context = nullptr;
};

void Flags(Asker& a) {
  unsigned flags = 0;
  if (a(a.d.CtxGetFlags(&flags)) == CUDA_SUCCESS) a.Value(flags);
}

void PrimaryFlags(Asker& a) {
  unsigned flags = 0;
  int active = -1;
  a.Values(a.d.DevicePrimaryCtxGetState(0, &flags, &active), flags, active);
}

void Heard(void* data, CUlogLevel, char*, std::size_t) { ++*static_cast<int*>(data); }

void Coredump(Asker& a, CUcoredumpSettings setting, bool global) {
  int value = -1;
  std::size_t size = 0;
  a(global ? a.d.CoredumpGetAttributeGlobal(setting, nullptr, &size) : a.d.CoredumpGetAttribute(setting, nullptr, &size));
  a.Value(static_cast<long long>(size));
  size = setting == CU_COREDUMP_GENERATION_FLAGS ? sizeof(int) : sizeof(bool);
  bool flag = false;
  void* const out = setting == CU_COREDUMP_GENERATION_FLAGS ? static_cast<void*>(&value) : static_cast<void*>(&flag);
  if (a(global ? a.d.CoredumpGetAttributeGlobal(setting, out, &size) : a.d.CoredumpGetAttribute(setting, out, &size)) == CUDA_SUCCESS)
    a.Value(setting == CU_COREDUMP_GENERATION_FLAGS ? value : static_cast<int>(flag));
}

}  // namespace

void List(Questions& ask) {
  ask.Fresh("limit.defaults",
            "SUCCESS 1024 SUCCESS 8650752 SUCCESS 8388608 UNSUPPORTED_LIMIT SUCCESS 2048 SUCCESS 64 SUCCESS 11796480 SUCCESS 232448 "
            "SUCCESS 0 UNSUPPORTED_LIMIT INVALID_VALUE INVALID_VALUE",
            [](Own& a) {
              for (unsigned i = 0; i < 12; ++i) Get(a, Beyond<CUlimit>(i));
            });
  ask.Fresh("limit.stack",
            "SUCCESS SUCCESS 0 SUCCESS SUCCESS 16 SUCCESS SUCCESS 15 SUCCESS SUCCESS 16 SUCCESS SUCCESS 32 SUCCESS SUCCESS 1008 SUCCESS "
            "SUCCESS 4096 SUCCESS SUCCESS 65536 INVALID_VALUE INVALID_VALUE",
            [](Own& a) {
              for (const std::size_t bytes : {0U, 1U, 15U, 16U, 17U, 1000U, 4096U, 65536U, 524288U, 524289U})
                SetAndGet(a, CU_LIMIT_STACK_SIZE, bytes);
            });
  ask.Fresh("limit.printf",
            "SUCCESS SUCCESS 524288 SUCCESS SUCCESS 524288 SUCCESS SUCCESS 524288 SUCCESS SUCCESS 524288 SUCCESS SUCCESS 1048576",
            [](Own& a) {
              for (const std::size_t bytes : {0U, 1U, 4096U, 5000U, 1048576U}) SetAndGet(a, CU_LIMIT_PRINTF_FIFO_SIZE, bytes);
            });
  ask.Fresh("limit.heap",
            "SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 SUCCESS SUCCESS 4194304 "
            "SUCCESS SUCCESS 5046272 SUCCESS SUCCESS 16777216",
            [](Own& a) {
              for (const std::size_t bytes : {0U, 1U, 4096U, 1048576U, 4194304U, 5000000U, 16777216U})
                SetAndGet(a, CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
            });
  ask.Fresh("limit.device_runtime", "UNSUPPORTED_LIMIT x4 SUCCESS SUCCESS 32 SUCCESS SUCCESS 32 SUCCESS SUCCESS 100 SUCCESS SUCCESS 4096",
            [](Own& a) {
              for (const std::size_t depth : {0U, 2U, 24U, 25U}) SetAndGet(a, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, depth);
              for (const std::size_t count : {0U, 1U, 100U, 4096U}) SetAndGet(a, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, count);
            });
  ask.Fresh("limit.l2_granularity",
            "SUCCESS SUCCESS 0 SUCCESS SUCCESS 1 SUCCESS SUCCESS 32 SUCCESS SUCCESS 33 SUCCESS SUCCESS 64 SUCCESS SUCCESS 65 SUCCESS "
            "SUCCESS 128 INVALID_VALUE",
            [](Own& a) {
              for (const std::size_t bytes : {0U, 1U, 32U, 33U, 64U, 65U, 128U, 129U})
                SetAndGet(a, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, bytes);
            });
  ask.Fresh("limit.l2_persisting",
            "SUCCESS SUCCESS 0 SUCCESS SUCCESS 3932160 SUCCESS SUCCESS 3932160 SUCCESS SUCCESS 39321600 INVALID_VALUE INVALID_VALUE "
            "SUCCESS SUCCESS 39321600",
            [](Own& a) {
              for (const std::size_t bytes : {0U, 1U, 1000000U, 39321600U, 39321601U, 100000000U})
                SetAndGet(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, bytes);
              a(a.d.CtxResetPersistingL2Cache());
              Get(a, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
            });
  ask.Fresh("limit.query_only", "NOT_PERMITTED NOT_PERMITTED UNSUPPORTED_LIMIT INVALID_VALUE INVALID_VALUE", [](Own& a) {
    SetAndGet(a, CU_LIMIT_SHMEM_SIZE, 1024);
    SetAndGet(a, CU_LIMIT_CIG_ENABLED, 1);
    SetAndGet(a, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 1);
    SetAndGet(a, CU_LIMIT_MAX, 1);
    a(a.d.CtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE));
  });
  ask.Fresh("limit.of_each_context", "SUCCESS SUCCESS 4096 SUCCESS 1024", [](Own& a) {
    SetAndGet(a, CU_LIMIT_STACK_SIZE, 4096);
    a.CtxCreate();
    Get(a, CU_LIMIT_STACK_SIZE);
  });
  ask.Fresh("limit.heap_after_module", "SUCCESS SUCCESS 16777216 SUCCESS SUCCESS 2097152", [](Own& a) {
    const CUfunction f = a.ModuleGetFunction("plain");
    a.Prepare(a.d.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    a.Prepare(a.d.CtxSynchronize(nullptr));
    SetAndGet(a, CU_LIMIT_MALLOC_HEAP_SIZE, 16777216);
    SetAndGet(a, CU_LIMIT_PRINTF_FIFO_SIZE, 2097152);
  });
  ask.Fresh("context.cache_configs", "SUCCESS 0 SUCCESS 2 SUCCESS 3 INVALID_VALUE INVALID_VALUE", [](Own& a) {
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_EQUAL;
    a(a.d.CtxGetCacheConfig(&cache), cache);
    for (const CUfunc_cache each : {CU_FUNC_CACHE_PREFER_L1, CU_FUNC_CACHE_PREFER_EQUAL}) {
      a(a.d.CtxSetCacheConfig(each));
      a.Values(a.d.CtxGetCacheConfig(&cache), cache);
    }
    a(a.d.CtxSetCacheConfig(Beyond<CUfunc_cache>(4)));
    a(a.d.CtxGetCacheConfig(nullptr));
  });
  ask.Fresh("context.bank_configs", "SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 1 INVALID_VALUE 1", [](Own& a) {
    CUsharedconfig banks = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    a(a.d.CtxGetSharedMemConfig(&banks), banks);
    for (unsigned each = 0; each < 4; ++each) {
      a(a.d.CtxSetSharedMemConfig(Beyond<CUsharedconfig>(each)));
      a.Values(a.d.CtxGetSharedMemConfig(&banks), banks);
    }
  });
  ask.Fresh(
      "context.flag_words",
      "SUCCESS SUCCESS 0 SUCCESS SUCCESS 1 SUCCESS SUCCESS 2 INVALID_VALUE SUCCESS SUCCESS 4 INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS 8 "
      "SUCCESS SUCCESS 16 SUCCESS SUCCESS 17 SUCCESS SUCCESS 24 SUCCESS SUCCESS 32 SUCCESS SUCCESS 32 SUCCESS SUCCESS 128 SUCCESS SUCCESS "
      "129 INVALID_VALUE",
      [](Asker& a) {
        for (const unsigned flags : {0U, 1U, 2U, 3U, 4U, 5U, 7U, 8U, 16U, 17U, 24U, 32U, 64U, 128U, 129U, 256U}) {
          a.Prepare(a.d.Init(0));
          CUcontext c = nullptr;
          if (a(a.d.CtxCreate(&c, nullptr, flags, 0)) != CUDA_SUCCESS) continue;
          Flags(a);
          (void)a.d.CtxDestroy(c);
        }
      });
  ask.Fresh("context.set_flags",
            "SUCCESS SUCCESS 0 SUCCESS SUCCESS 2 INVALID_VALUE SUCCESS SUCCESS 4 SUCCESS SUCCESS 0 SUCCESS SUCCESS 16 SUCCESS SUCCESS 128 "
            "SUCCESS SUCCESS 132 INVALID_VALUE",
            [](Asker& a) {
              const Own own(a, CU_CTX_SCHED_SPIN);
              for (const unsigned flags : {0U, 2U, 3U, 4U, 8U, 16U, 128U, 132U, 0x10000U}) {
                if (a(a.d.CtxSetFlags(flags)) == CUDA_SUCCESS) Flags(a);
              }
            });
  ask.Fresh("primary.flag_words",
            "SUCCESS 0 0 SUCCESS 1 0 INVALID_VALUE SUCCESS 4 0 INVALID_VALUE SUCCESS 16 0 SUCCESS 32 0 SUCCESS 128 0 INVALID_DEVICE",
            [](Initialised& a) {
              for (const unsigned flags : {0U, 1U, 3U, 4U, 8U, 16U, 32U, 128U}) {
                if (a(a.d.DevicePrimaryCtxSetFlags(0, flags)) == CUDA_SUCCESS) PrimaryFlags(a);
              }
              a(a.d.DevicePrimaryCtxSetFlags(99, 0));
            });
  ask.Fresh("primary.flags_while_active", "SUCCESS 1 1 SUCCESS 4 1 SUCCESS 12 SUCCESS SUCCESS 10 4 1 SUCCESS 0 0 SUCCESS 0 SUCCESS 0 1",
            [](Initialised& a) {
              a(a.d.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
              CUcontext c = a.DevicePrimaryCtxRetain();
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
            });
  ask.Fresh("primary.reset_keeps_count", "SUCCESS 0 0 CONTEXT_IS_DESTROYED SUCCESS INVALID_CONTEXT", [](Asker& a) {
    a.Prepare(a.d.Init(0));
    const CUcontext c = a.DevicePrimaryCtxRetain();
    a.Prepare(a.d.CtxPushCurrent(c));
    CUdeviceptr p = a.MemAlloc(4096);
    a(a.d.DevicePrimaryCtxReset(0));
    PrimaryFlags(a);
    a(a.d.MemAlloc(&p, 4096));
    a(a.d.DevicePrimaryCtxRelease(0));
    a(a.d.DevicePrimaryCtxRelease(0));
  });
  ask.Risky("context.affinity_v3", "UNSUPPORTED_EXEC_AFFINITY SUCCESS INVALID_VALUE UNSUPPORTED_EXEC_AFFINITY", [](Initialised& a) {
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
  });
  ask.Risky("context.get_affinity", "SUCCESS 132 UNSUPPORTED_EXEC_AFFINITY", [](Own& a) {
    CUexecAffinityParam affinity = {};
    if (a(a.d.CtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT)) == CUDA_SUCCESS) a.Value(affinity.param.smCount.val);
    a(a.d.CtxGetExecAffinity(&affinity, Beyond<CUexecAffinityType>(9)));
  });
  ask.Risky("context.attach_detach", "SUCCESS 1 INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS 1 SUCCESS SUCCESS 1", [](Own& a) {
    CUcontext c = nullptr, current = nullptr;
    a(a.d.CtxAttach(&c, 0));
    a.Value(c == a.context);
    a(a.d.CtxAttach(&c, 1));
    a(a.d.CtxAttach(nullptr, 0));
    a(a.d.CtxDetach(a.context));
    a(a.d.CtxGetCurrent(&current));
    a.Value(current == a.context);
    a(a.d.CtxDetach(a.context));
    a(a.d.CtxGetCurrent(&current));
    a.Value(current == nullptr);
  });
  ask.Fresh("setting.coredump_global_defaults",
            "SUCCESS 1 SUCCESS 0 SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 0 SUCCESS 1 SUCCESS 0 SUCCESS 4 SUCCESS 0", [](Initialised& a) {
              for (const CUcoredumpSettings each : {CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_TRIGGER_HOST, CU_COREDUMP_LIGHTWEIGHT,
                                                    CU_COREDUMP_ENABLE_USER_TRIGGER, CU_COREDUMP_GENERATION_FLAGS}) {
                Coredump(a, each, true);
              }
            });
  ask.Fresh("setting.coredump_context_defaults",
            "SUCCESS 1 SUCCESS 0 SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 0 INVALID_VALUE 0 INVALID_VALUE SUCCESS 4 SUCCESS 0", [](Ready& a) {
              for (const CUcoredumpSettings each : {CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_TRIGGER_HOST, CU_COREDUMP_LIGHTWEIGHT,
                                                    CU_COREDUMP_ENABLE_USER_TRIGGER, CU_COREDUMP_GENERATION_FLAGS}) {
                Coredump(a, each, false);
              }
            });
  ask.Fresh("setting.coredump_no_context", "INVALID_CONTEXT 0 INVALID_CONTEXT",
            [](Initialised& a) { Coredump(a, CU_COREDUMP_TRIGGER_HOST, false); });
  ask.Fresh("setting.coredump_file", "SUCCESS 1024 SUCCESS SUCCESS dump 1024 INVALID_VALUE", [](Initialised& a) {
    std::size_t size = 0;
    a(a.d.CoredumpGetAttributeGlobal(CU_COREDUMP_FILE, nullptr, &size), size);
    char name[1024] = "dump";
    size = 5;
    a(a.d.CoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
    std::memset(name, 0, sizeof(name));
    size = sizeof(name);
    a(a.d.CoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size), name, size);
    size = 2;
    a(a.d.CoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
  });
  ask.Risky("setting.coredump_arguments", "INVALID_VALUE x6 SUCCESS 1", [](Ready& a) {
    bool on = false;
    std::size_t size = sizeof(on);
    a(a.d.CoredumpGetAttribute(Beyond<CUcoredumpSettings>(77), &on, &size));
    a(a.d.CoredumpGetAttribute(CU_COREDUMP_TRIGGER_HOST, &on, nullptr));
    size = 0;
    a(a.d.CoredumpGetAttribute(CU_COREDUMP_TRIGGER_HOST, &on, &size));
    size = 8;
    a(a.d.CoredumpGetAttribute(CU_COREDUMP_TRIGGER_HOST, &on, &size));
    size = sizeof(on);
    a(a.d.CoredumpSetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, &on, &size));
    char pipe[] = "pipe";
    size = sizeof(pipe);
    a(a.d.CoredumpSetAttribute(CU_COREDUMP_PIPE, pipe, &size));
    size = 0;
    a(a.d.CoredumpSetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, nullptr, &size), size);
  });
  ask.Fresh("setting.coredump_round_trip", "SUCCESS SUCCESS 1 SUCCESS 1 SUCCESS 4 SUCCESS 47 SUCCESS 1 SUCCESS 0", [](Ready& a) {
    bool on = true;
    std::size_t size = sizeof(on);
    a(a.d.CoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
    Coredump(a, CU_COREDUMP_LIGHTWEIGHT, false);
    Coredump(a, CU_COREDUMP_GENERATION_FLAGS, false);
    Coredump(a, CU_COREDUMP_LIGHTWEIGHT, true);
  });
  ask.Risky("setting.log_callback", "SUCCESS x3 0 SUCCESS", [](Ready& a) {
    CUlogsCallbackHandle handle = nullptr;
    int heard = 0;
    CUlogIterator at = 0;
    char text[256] = "";
    std::size_t size = sizeof(text);
    a(a.d.LogsRegisterCallback(Heard, &heard, &handle));
    a(a.d.LogsCurrent(&at, 0));
    a(a.d.LogsDumpToMemory(&at, text, &size, 0), size);
    a(a.d.LogsUnregisterCallback(handle));
  });
  ask.Risky("setting.log_words", "SUCCESS x3", [](Initialised& a) {
    CUlogsCallbackHandle handle = nullptr;
    CUlogIterator at = 0;
    char text[64] = "";
    std::size_t size = sizeof(text);
    a(a.d.LogsRegisterCallback(Heard, nullptr, &handle));
    a(a.d.LogsCurrent(&at, 1));
    size = sizeof(text);
    a(a.d.LogsDumpToMemory(&at, text, &size, 1));
  });
  ask.Risky("setting.logs_of_errors", "INVALID_VALUE INVALID_IMAGE 1 1", [](Ready& a) {
    CUlogsCallbackHandle handle = nullptr;
    int heard = 0;
    CUlogIterator at = 0;
    char text[4096] = "";
    std::size_t size = sizeof(text);
    a.Prepare(a.d.LogsRegisterCallback(Heard, &heard, &handle));
    a.Prepare(a.d.LogsCurrent(&at, 0));
    a(a.d.MemAlloc(kIgnored, 0));
    a(a.d.ModuleLoadData(kIgnored, "no image"));
    a.Prepare(a.d.LogsDumpToMemory(&at, text, &size, 0));
    a.Value(size > 0);
    a.Value(heard > 0);
  });
  ask.Risky("setting.logs_before_init", "SUCCESS SUCCESS", [](Asker& a) {
    CUlogsCallbackHandle handle = nullptr;
    int heard = 0;
    a(a.d.LogsCurrent(kIgnored, 0));
    a(a.d.LogsRegisterCallback(Heard, &heard, &handle));
  });
  ask.Risky("setting.checkpoint_arguments", "OPERATING_SYSTEM INVALID_VALUE OPERATING_SYSTEM x5", [](Initialised& a) {
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    a(a.d.CheckpointProcessGetState(-1, &state));
    a(a.d.CheckpointProcessGetState(1, nullptr));
    a(a.d.CheckpointProcessGetRestoreThreadId(-1, kIgnored));
    a(a.d.CheckpointProcessUnlock(-1, nullptr));
    a(a.d.CheckpointProcessCheckpoint(-1, nullptr));
    a(a.d.CheckpointProcessRestore(-1, nullptr));
    a(a.d.CheckpointProcessLock(-1, nullptr));
  });
  ask.Risky("setting.flush_writes", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE", [](Ready& a) {
    a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
    a(a.d.FlushGPUDirectRDMAWrites(Beyond<CUflushGPUDirectRDMAWritesTarget>(9), CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, Beyond<CUflushGPUDirectRDMAWritesScope>(9)));
  });
  ask.Fresh("setting.flush_without_context", "INVALID_CONTEXT", [](Initialised& a) {
    a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
  });
  ask.Fresh("setting.profiler_without_context", "INVALID_CONTEXT INVALID_CONTEXT", [](Initialised& a) {
    a(a.d.ProfilerStart());
    a(a.d.ProfilerStop());
  });
  ask.Risky("setting.capture_modes", "SUCCESS 0 SUCCESS 2 SUCCESS SUCCESS 9", [](Initialised& a) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    a(a.d.ThreadExchangeStreamCaptureMode(&mode), mode);
    mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    a(a.d.ThreadExchangeStreamCaptureMode(&mode), mode);
    mode = Beyond<CUstreamCaptureMode>(9);
    a(a.d.ThreadExchangeStreamCaptureMode(&mode));
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    a(a.d.ThreadExchangeStreamCaptureMode(&mode), mode);
  });
  ask.Risky("setting.lazy_loading", "SUCCESS 2", [](Initialised& a) {
    CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
    a(a.d.ModuleGetLoadingMode(&mode), mode);
  });
  ask.Risky("setting.export_table", "INVALID_VALUE INVALID_VALUE", [](Initialised& a) {
    const void* table = nullptr;
    const CUuuid nobody = {};
    a(a.d.GetExportTable(&table, &nobody));
    a(a.d.GetExportTable(nullptr, &nobody));
  });
}

}  // namespace cuaudit::contract::limit_questions
