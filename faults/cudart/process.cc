// SPDX-License-Identifier: MIT
#include "faults/cudart/process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

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

namespace {

struct Device {
  CUdevice device;
  std::atomic<CUcontext> primary;  // null: not retained
  std::atomic<unsigned> generation;
};

constinit Device devices[kMaxDevices]{};
constinit std::atomic<int> device_count{0};

unsigned GenerationOf(const Device& device) noexcept { return device.generation.load(std::memory_order_acquire) + 1; }

}  // namespace

cudaError_t FindDevices(DriverRef driver) noexcept {
  int count = 0;
  if (const CUresult result = driver.DeviceGetCount(&count)) return FromDriver(result);
  if (count <= 0) return cudaErrorNoDevice;
  if (count > kMaxDevices) count = kMaxDevices;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (const CUresult result = driver.DeviceGet(&device, i)) return FromDriver(result);
    devices[i].device = device;
  }
  device_count.store(count, std::memory_order_release);
  return cudaSuccess;
}

int DeviceCount() noexcept { return device_count.load(std::memory_order_acquire); }

CUdevice DeviceAt(int ordinal) noexcept { return devices[ordinal].device; }

int OrdinalOf(CUdevice device) noexcept {
  for (int i = 0; i < DeviceCount(); ++i) {
    if (devices[i].device == device) return i;
  }
  return -1;
}

cudaError_t RetainDevice(DriverRef driver, int ordinal, CUcontext* context) noexcept {
  Device* const device = &devices[ordinal];
  *context = device->primary.load(std::memory_order_acquire);
  if (*context != nullptr) return cudaSuccess;
  if (const CUresult result = driver.DevicePrimaryCtxRetain(context, device->device)) return FromDriver(result);
  CUcontext none = nullptr;
  if (!device->primary.compare_exchange_strong(none, *context, std::memory_order_acq_rel)) {
    (void)driver.DevicePrimaryCtxRelease(device->device);  // another thread retained it first; one reference serves both
  }
  return cudaSuccess;
}

bool EverReset(int ordinal) noexcept { return devices[ordinal].generation.load(std::memory_order_acquire) != 0; }

bool Bound(const Thread& thread) noexcept { return thread.generation == GenerationOf(devices[thread.device]); }

cudaError_t BindDevice(DriverRef driver, int ordinal) noexcept {
  Device& device = devices[ordinal];
  const unsigned generation = GenerationOf(device);
  CUcontext context = nullptr;
  if (const cudaError_t error = RetainDevice(driver, ordinal, &context)) return error;
  if (const CUresult result = driver.CtxSetCurrent(context)) return FromDriver(result);
  This().device = ordinal;
  This().generation = generation;
  return cudaSuccess;
}

cudaError_t BindContext(DriverRef driver) noexcept {
  Thread& thread = This();
  if (Bound(thread)) return cudaSuccess;
  // The thread has never bound a context, or the device was reset since. Only then may a context of the driver API be current.
  if (thread.generation == 0) {
    CUcontext current = nullptr;
    if (const CUresult result = driver.CtxGetCurrent(&current)) return FromDriver(result);
    CUdevice device = 0;
    if (current != nullptr && Older<driver::CallId::CtxGetDevice>(driver, &device) == CUDA_SUCCESS) {
      const int ordinal = OrdinalOf(device);
      if (ordinal >= 0) {
        thread.device = ordinal;
        thread.generation = GenerationOf(devices[ordinal]);
        return cudaSuccess;
      }
    }
  }
  return BindDevice(driver, thread.device);
}

cudaError_t ResetDevice(DriverRef driver) noexcept {
  Thread& thread = This();
  Device& device = devices[thread.device];
  const CUcontext retained = device.primary.exchange(nullptr, std::memory_order_acq_rel);
  device.generation.fetch_add(1, std::memory_order_acq_rel);
  CUresult result = driver.DevicePrimaryCtxReset(device.device);
  if (retained != nullptr) {
    const CUresult released = driver.DevicePrimaryCtxRelease(device.device);
    if (result == CUDA_SUCCESS) result = released;
  }
  return FromDriver(result);
}

void ReleaseDevices(DriverRef driver) noexcept {
  for (int i = 0; i < DeviceCount(); ++i) {
    if (devices[i].primary.exchange(nullptr, std::memory_order_acq_rel) == nullptr) continue;
    devices[i].generation.fetch_add(1, std::memory_order_acq_rel);
    (void)driver.DevicePrimaryCtxRelease(devices[i].device);
  }
}

}  // namespace cuaudit::cudart
