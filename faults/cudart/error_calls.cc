// SPDX-License-Identifier: MIT
#include "faults/cudart/calls.h"

namespace cuaudit::cudart {
namespace {

struct ErrorText {
  int number;
  const char* name;
  const char* text;
};

constexpr ErrorText kTexts[] = {
#define CUDART_ERROR(number, name, text) {number, #name, text},
#include "faults/cudart/error_texts.def"
#undef CUDART_ERROR
};

constexpr const char* kUnrecognized = "unrecognized error code";

const ErrorText* Find(cudaError_t error) noexcept {
  for (const ErrorText& row : kTexts) {
    if (row.number == static_cast<int>(error)) return &row;
  }
  return nullptr;
}

}  // namespace

// CUresult and cudaError_t have equal numbers wherever the runtime has a name. A code that only the driver has becomes cudaErrorUnknown.
cudaError_t FromDriver(CUresult result) noexcept {
  const cudaError_t error = static_cast<cudaError_t>(result);
  return error == cudaSuccess || Find(error) != nullptr ? error : cudaErrorUnknown;
}

const char* GetErrorName(cudaError_t error) noexcept {
  const ErrorText* const row = Find(error);
  return row == nullptr ? kUnrecognized : row->name;
}

const char* GetErrorString(cudaError_t error) noexcept {
  const ErrorText* const row = Find(error);
  return row == nullptr ? kUnrecognized : row->text;
}

cudaError_t GetLastError() noexcept {
  const cudaError_t error = This().last_error;
  This().last_error = cudaSuccess;
  return error;
}

cudaError_t PeekAtLastError() noexcept { return This().last_error; }

cudaError_t RuntimeGetVersion(int* runtimeVersion) noexcept {
  if (runtimeVersion == nullptr) return cudaErrorInvalidValue;
  *runtimeVersion = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t DriverGetVersion(int* driverVersion) noexcept {
  if (driverVersion == nullptr) return cudaErrorInvalidValue;
  const DriverRef driver = LoadedDriver(false);
  *driverVersion = 0;
  return driver.table == nullptr ? cudaSuccess : From(driver.DriverGetVersion(driverVersion));
}

struct cudaChannelFormatDesc CreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) noexcept {
  return {x, y, z, w, f};
}

}  // namespace cuaudit::cudart
