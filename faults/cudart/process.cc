// SPDX-License-Identifier: MIT
#include "faults/cudart/process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

#include "faults/cudart/devices.h"
#include "faults/driver/genuine_driver.h"

namespace cuaudit::cudart {
namespace {

constinit driver::GenuineDriver genuine;
constinit driver::DriverTable per_thread_table{};
constinit DriverRef legacy{};
constinit DriverRef per_thread{};
constinit std::atomic<bool> initialised{false};
using ExitNote = void (*)();
constinit ExitNote exit_note = nullptr;
pthread_once_t load_once = PTHREAD_ONCE_INIT;

constinit thread_local Thread this_thread{};

// cuMemcpy_ptds is cuMemcpy for the thread's own default stream.
bool IsTwin(std::string_view symbol, std::string_view of) noexcept {
  return symbol.size() == of.size() + 5 && memcmp(symbol.data(), of.data(), of.size()) == 0 &&
         memcmp(symbol.data() + of.size(), "_pt", 3) == 0;
}

// Opens the loader's libcuda.so.1: the drop-in under cuaudit, else the genuine driver.
void Load() noexcept {
  void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return;
  for (std::size_t i = 0; i < driver::kCallCount; ++i) genuine.symbol[i] = dlsym(handle, driver::kCalls[i].symbol.data());
  genuine.handle = handle;
  // Tells cuaudit which runtime the program uses, for the report.
  if (void* const note = dlsym(handle, "cuaudit_runtime")) reinterpret_cast<void (*)(int)>(note)(kRuntimeVersion);
  exit_note = reinterpret_cast<ExitNote>(dlsym(handle, "cuaudit_runtime_exit"));
  legacy = driver::Driver(&genuine);
  per_thread_table = *legacy.table;
  for (std::size_t i = 0; i < driver::kCallCount; ++i) {
    if (!driver::kCalls[i].per_thread) continue;
    const driver::CallId current = driver::kBases[Index(driver::kCalls[i].base)].current;
    if (IsTwin(driver::kCalls[i].symbol, Name(current))) per_thread_table.entry[Index(current)] = legacy.table->entry[i];
  }
  per_thread = {&per_thread_table, legacy.self};
}

cudaError_t Initialise(DriverRef driver) noexcept {
  if (initialised.load(std::memory_order_acquire)) return cudaSuccess;
  int version = 0;
  if (driver.DriverGetVersion(&version) != CUDA_SUCCESS || version < kRuntimeVersion / 1000 * 1000) return cudaErrorInsufficientDriver;
  if (const CUresult result = driver.Init(0)) return FromDriver(result);
  if (const cudaError_t error = FindDevices(driver)) return error;
  initialised.store(true, std::memory_order_release);
  return cudaSuccess;
}

}  // namespace

Thread& This() noexcept { return this_thread; }

DriverRef LoadedDriver(bool for_thread) noexcept {
  pthread_once(&load_once, &Load);
  return for_thread ? per_thread : legacy;
}

DriverRef RunningDriver() noexcept { return initialised.load(std::memory_order_acquire) ? legacy : DriverRef{}; }

void NoteExit() noexcept {
  if (exit_note != nullptr) exit_note();
}

Access Enter(Need need, bool for_thread) noexcept {
  const DriverRef driver = LoadedDriver(for_thread);
  if (driver.table == nullptr) return {cudaErrorInsufficientDriver, driver};
  if (const cudaError_t error = Initialise(legacy)) return {error, driver};
  return {need == Need::context ? BindContext(legacy) : cudaSuccess, driver};
}

bool Rebind() noexcept {
  CUcontext current = nullptr;
  if (legacy.CtxGetCurrent(&current) != CUDA_SUCCESS || current != nullptr) return false;
  this_thread.generation = 0;
  return BindContext(legacy) == cudaSuccess;
}

cudaError_t Record(cudaError_t error) noexcept {
  if (error != cudaSuccess && error != cudaErrorNotReady) [[unlikely]]
    this_thread.last_error = error;
  return error;
}

void Say(const char* text) noexcept {
  char line[512];
  const int length = snprintf(line, sizeof(line), "cuaudit: libcudart: %s\n", text);
  if (length > 0) (void)!write(STDERR_FILENO, line, strnlen(line, sizeof(line)));
}

cudaError_t NotSupported(const char* function, std::atomic<bool>* said) noexcept {
  if (!said->exchange(true, std::memory_order_relaxed)) {
    char text[256];
    snprintf(text, sizeof(text), "%s is not supported by cuaudit's runtime and answers cudaErrorNotSupported", function);
    Say(text);
  }
  return Record(cudaErrorNotSupported);
}

}  // namespace cuaudit::cudart
