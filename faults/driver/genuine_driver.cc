// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/driver/genuine_driver.h"

#include <dlfcn.h>

#include "faults/driver/call_shape.h"

namespace cuaudit::driver {
namespace {

template <CallId id, typename Function>
struct Forward;

template <CallId id, typename... P>
struct Forward<id, CUresult(P...)> {
  static CUresult Call(void* self, P... arguments) {
    void* symbol = static_cast<GenuineDriver*>(self)->symbol[Index(id)];
    if (symbol == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return reinterpret_cast<CUresult (*)(P...)>(symbol)(arguments...);
  }
};

// The addresses of functions are link-time constants, so the table needs no constructor.
const DriverTable kTable = {{
#define CUAUDIT_CALL(id, base, version, per_thread) reinterpret_cast<Entry>(&Forward<CallId::id, CallType<CallId::id>::Function>::Call),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                            },
                            {
#define CUAUDIT_CALL(id, base, version, per_thread) true,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                            }};

}  // namespace

const char* OpenGenuineDriver(const char* path, GenuineDriver* driver) noexcept {
  if (path == nullptr || path[0] != '/') return "the genuine driver is opened by absolute path";
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "the dynamic loader refused the genuine driver";
  for (std::size_t i = 0; i < kCallCount; ++i) driver->symbol[i] = dlsym(handle, kCalls[i].symbol.data());
  if (driver->symbol[Index(CallId::Init)] == nullptr) {
    dlclose(handle);
    return "the file has no cuInit: not a CUDA driver";
  }
  driver->handle = handle;
  return nullptr;
}

DriverRef Driver(GenuineDriver* driver) noexcept { return {&kTable, driver}; }

std::size_t FindSymbol(const GenuineDriver& driver, const void* address) noexcept {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    if (driver.symbol[i] == address && address != nullptr) return i;
  }
  return kCallCount;
}

}  // namespace cuaudit::driver
