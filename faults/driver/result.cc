// SPDX-License-Identifier: MIT
#include "faults/driver/result.h"

namespace cuaudit::driver {
namespace {

struct ResultRow {
  std::string_view name;
  CUresult value;
};
constexpr ResultRow kResults[] = {
#define CUAUDIT_RESULT(name, value) {#name, static_cast<CUresult>(value)},
#include "driver_results.inc"
#undef CUAUDIT_RESULT
};
constexpr std::string_view kErrorPrefix = "CUDA_ERROR_";
constexpr std::string_view kPrefix = "CUDA_";

// Used instead of string_view::starts_with, which would call into the C++ runtime when it is not inlined.
constexpr bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && std::string_view(text.data(), prefix.size()) == prefix;
}

constexpr std::string_view Short(std::string_view name) {
  if (StartsWith(name, kErrorPrefix)) name.remove_prefix(kErrorPrefix.size());
  if (StartsWith(name, kPrefix)) name.remove_prefix(kPrefix.size());
  return name;
}

}  // namespace

std::string_view ResultName(CUresult result) noexcept {
  for (const ResultRow& row : kResults) {
    if (row.value == result) return row.name;
  }
  return {};
}

std::string_view ShortResultName(CUresult result) noexcept { return Short(ResultName(result)); }

bool ResultFromName(std::string_view name, CUresult* result) noexcept {
  for (const ResultRow& row : kResults) {
    if (row.name == name || Short(row.name) == name) {
      *result = row.value;
      return true;
    }
  }
  return false;
}

bool SaysUnknown(CUresult result) noexcept {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
    case CUDA_ERROR_NOT_FOUND:
      return true;
    default:
      return false;
  }
}

bool IsCaptureOver(CUresult result) noexcept {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED || result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ||
         result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

bool IsSticky(CUresult result) noexcept {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

}  // namespace cuaudit::driver
