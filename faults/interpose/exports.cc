// SPDX-License-Identifier: MIT
// exports.cc: defines every entry point of libcuda.so.1; each one calls the gate.
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaEGL.h>
#include <cudaGL.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

#include <tuple>

#include "faults/interpose/process.h"
#include "faults/interpose/resolving_driver.h"

namespace cuaudit::faults {
namespace {

using driver::CallId;

template <CallId id, typename... P>
CUresult Answer(P... arguments) noexcept {
  // cuGetProcAddress is not diverted: it must return this library's own addresses, so that calls made through them are diverted too.
  if constexpr (driver::BaseOf(id) != driver::BaseId::GetProcAddress) {
    if (const driver::DriverRef* const to = diversion.load(std::memory_order_acquire)) [[unlikely]]
      return reinterpret_cast<CUresult (*)(void*, P...)>(to->table->entry[driver::Index(id)])(to->self, arguments...);
  }
  return ProcessGate().Run<id, P...>(arguments...);
}

template <CallId id, typename... P>
CUresult Export(P... arguments) noexcept {
  const CUresult result = Answer<id, P...>(arguments...);
  if constexpr (id == CallId::GetExportTable) NoteExportTable(std::get<1>(std::tuple<P...>(arguments...)));
  if constexpr (driver::BaseOf(id) == driver::BaseId::Init) {
    if (result == CUDA_SUCCESS) NoteInit();
  }
  if (result != CUDA_SUCCESS) [[unlikely]]
    NoteFailure();
  return result;
}

}  // namespace
}  // namespace cuaudit::faults

#define CUAUDIT_PARAMS(id, parameters, arguments)                                        \
  extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI cu##id parameters { \
    return cuaudit::faults::Export<cuaudit::driver::CallId::id> arguments;               \
  }
#include "driver_params.inc"
#undef CUAUDIT_PARAMS

namespace cuaudit::faults {
namespace {

void* const kExports[driver::kCallCount] = {
#define CUAUDIT_CALL(id, base, version, per_thread) reinterpret_cast<void*>(&::cu##id),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
};

}  // namespace

void* ExportOf(driver::CallId id) noexcept { return kExports[driver::Index(id)]; }

}  // namespace cuaudit::faults

// Returns the process's own gate, to which calls go without a diversion. Opens the driver. Returns as cuaudit_divert.
extern "C" __attribute__((visibility("default"))) int cuaudit_undiverted(const void** table, void** self, std::uint64_t digest) {
  using namespace cuaudit::faults;
  if (digest != cuaudit::driver::TableDigest()) return 0;
  const cuaudit::driver::DriverRef own = Driver(&ProcessGate());
  *table = own.table;
  *self = own.self;
  return 1;
}
