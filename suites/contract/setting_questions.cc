// SPDX-License-Identifier: MIT
// Settings and services of the whole driver: coredumps, logs, checkpoints, flushes, capture mode of a thread, error texts.
#include <cstring>

#include "suites/contract/question.h"

namespace cuaudit::contract::setting_questions {
namespace {

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

constexpr Question kQuestions[] = {
    {"setting.coredump_global_defaults",
     "SUCCESS 1 SUCCESS 0 SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 0 SUCCESS 1 SUCCESS 0 SUCCESS 4 SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       for (const CUcoredumpSettings each : {CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_TRIGGER_HOST, CU_COREDUMP_LIGHTWEIGHT,
                                             CU_COREDUMP_ENABLE_USER_TRIGGER, CU_COREDUMP_GENERATION_FLAGS}) {
         Coredump(a, each, true);
       }
     }},
    {"setting.coredump_context_defaults",
     "SUCCESS 1 SUCCESS 0 SUCCESS 1 SUCCESS 1 SUCCESS 1 SUCCESS 0 INVALID_VALUE 0 INVALID_VALUE SUCCESS 4 SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       for (const CUcoredumpSettings each : {CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_TRIGGER_HOST, CU_COREDUMP_LIGHTWEIGHT,
                                             CU_COREDUMP_ENABLE_USER_TRIGGER, CU_COREDUMP_GENERATION_FLAGS}) {
         Coredump(a, each, false);
       }
     }},
    {"setting.coredump_no_context", "INVALID_CONTEXT 0 INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       Coredump(a, CU_COREDUMP_TRIGGER_HOST, false);
     }},
    {"setting.coredump_file", "SUCCESS 1024 SUCCESS SUCCESS dump 1024 INVALID_VALUE", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       std::size_t size = 0;
       a(a.d.CoredumpGetAttributeGlobal(CU_COREDUMP_FILE, nullptr, &size));
       a.Value(static_cast<long long>(size));
       char name[1024] = "dump";
       size = 5;
       a(a.d.CoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
       std::memset(name, 0, sizeof(name));
       size = sizeof(name);
       a(a.d.CoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
       a.Text(name);
       a.Value(static_cast<long long>(size));
       size = 2;
       a(a.d.CoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
     }},
    {"setting.coredump_arguments", "INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE INVALID_VALUE SUCCESS 1",
     Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
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
       a(a.d.CoredumpSetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, nullptr, &size));
       a.Value(static_cast<long long>(size));
     }},
    {"setting.coredump_round_trip", "SUCCESS SUCCESS 1 SUCCESS 1 SUCCESS 4 SUCCESS 47 SUCCESS 1 SUCCESS 0", Manner::Fresh,
     [](Asker& a) {
       const Ready ready(a);
       bool on = true;
       std::size_t size = sizeof(on);
       a(a.d.CoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &size));
       Coredump(a, CU_COREDUMP_LIGHTWEIGHT, false);
       Coredump(a, CU_COREDUMP_GENERATION_FLAGS, false);
       Coredump(a, CU_COREDUMP_LIGHTWEIGHT, true);
     }},
    {"setting.log_callback", "SUCCESS SUCCESS SUCCESS 0 SUCCESS", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUlogsCallbackHandle handle = nullptr;
       int heard = 0;
       CUlogIterator at = 0;
       char text[256] = "";
       std::size_t size = sizeof(text);
       a(a.d.LogsRegisterCallback(Heard, &heard, &handle));
       a(a.d.LogsCurrent(&at, 0));
       a(a.d.LogsDumpToMemory(&at, text, &size, 0));
       a.Value(static_cast<long long>(size));
       a(a.d.LogsUnregisterCallback(handle));
     }},
    {"setting.log_words", "SUCCESS SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUlogsCallbackHandle handle = nullptr;
       CUlogIterator at = 0;
       char text[64] = "";
       std::size_t size = sizeof(text);
       a(a.d.LogsRegisterCallback(Heard, nullptr, &handle));
       a(a.d.LogsCurrent(&at, 1));
       size = sizeof(text);
       a(a.d.LogsDumpToMemory(&at, text, &size, 1));
     }},
    {"setting.logs_of_errors", "INVALID_VALUE INVALID_IMAGE 1 1", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       CUlogsCallbackHandle handle = nullptr;
       int heard = 0;
       CUlogIterator at = 0;
       char text[4096] = "";
       std::size_t size = sizeof(text);
       a.Prepare(a.d.LogsRegisterCallback(Heard, &heard, &handle));
       a.Prepare(a.d.LogsCurrent(&at, 0));
       CUmodule m = nullptr;
       CUdeviceptr p = 0;
       a(a.d.MemAlloc(&p, 0));
       a(a.d.ModuleLoadData(&m, "no image"));
       a.Prepare(a.d.LogsDumpToMemory(&at, text, &size, 0));
       a.Value(size > 0);
       a.Value(heard > 0);
     }},
    {"setting.logs_before_init", "SUCCESS SUCCESS", Manner::Risky,
     [](Asker& a) {
       CUlogIterator at = 0;
       CUlogsCallbackHandle handle = nullptr;
       int heard = 0;
       a(a.d.LogsCurrent(&at, 0));
       a(a.d.LogsRegisterCallback(Heard, &heard, &handle));
     }},
    {"setting.checkpoint_arguments",
     "OPERATING_SYSTEM INVALID_VALUE OPERATING_SYSTEM OPERATING_SYSTEM OPERATING_SYSTEM OPERATING_SYSTEM OPERATING_SYSTEM", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUprocessState state = CU_PROCESS_STATE_FAILED;
       int thread = 0;
       a(a.d.CheckpointProcessGetState(-1, &state));
       a(a.d.CheckpointProcessGetState(1, nullptr));
       a(a.d.CheckpointProcessGetRestoreThreadId(-1, &thread));
       a(a.d.CheckpointProcessUnlock(-1, nullptr));
       a(a.d.CheckpointProcessCheckpoint(-1, nullptr));
       a(a.d.CheckpointProcessRestore(-1, nullptr));
       a(a.d.CheckpointProcessLock(-1, nullptr));
     }},
    {"setting.flush_writes", "SUCCESS SUCCESS INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       const Ready ready(a);
       a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
       a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
       a(a.d.FlushGPUDirectRDMAWrites(Beyond<CUflushGPUDirectRDMAWritesTarget>(9), CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
       a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, Beyond<CUflushGPUDirectRDMAWritesScope>(9)));
     }},
    {"setting.flush_without_context", "INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.FlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
     }},
    {"setting.profiler_without_context", "INVALID_CONTEXT INVALID_CONTEXT", Manner::Fresh,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       a(a.d.ProfilerStart());
       a(a.d.ProfilerStop());
     }},
    {"setting.capture_modes", "SUCCESS 0 SUCCESS 2 SUCCESS SUCCESS 9", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
       a(a.d.ThreadExchangeStreamCaptureMode(&mode));
       a.Value(mode);
       mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
       a(a.d.ThreadExchangeStreamCaptureMode(&mode));
       a.Value(mode);
       mode = Beyond<CUstreamCaptureMode>(9);
       a(a.d.ThreadExchangeStreamCaptureMode(&mode));
       mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
       a(a.d.ThreadExchangeStreamCaptureMode(&mode));
       a.Value(mode);
     }},
    {"setting.lazy_loading", "SUCCESS 2", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
       a(a.d.ModuleGetLoadingMode(&mode));
       a.Value(mode);
     }},
    {"setting.export_table", "INVALID_VALUE INVALID_VALUE", Manner::Risky,
     [](Asker& a) {
       a.Prepare(a.d.Init(0));
       const void* table = nullptr;
       const CUuuid nobody = {};
       a(a.d.GetExportTable(&table, &nobody));
       a(a.d.GetExportTable(nullptr, &nobody));
     }},
};

}  // namespace
}  // namespace cuaudit::contract::setting_questions

namespace cuaudit::contract {
std::span<const Question> SettingQuestions() { return setting_questions::kQuestions; }
}  // namespace cuaudit::contract
