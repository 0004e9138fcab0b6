// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/calls/module/launch.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/module.h"

namespace cuaudit::sim {
namespace {

constexpr int kParameterBytes = kLegacyParameterBytes;

Function* Find(Call& call, CUfunction handle, CUresult* result) { return FindFunction(call, handle, result); }

CUresult SetBytes(Call& call, CUfunction handle, int offset, const void* value, unsigned bytes) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (value == nullptr || offset < 0 || offset > kParameterBytes || bytes > static_cast<unsigned>(kParameterBytes - offset)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (function->parameters == nullptr) function->parameters = static_cast<char*>(call.world.arena.Allocate(kParameterBytes));
  if (function->parameters == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(function->parameters + offset, value, bytes);
  return CUDA_SUCCESS;
}

CUresult Start(Call& call, CUfunction handle, int width, int height, CUstream stream) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::size_t bytes = function->parameter_bytes;
  const char nothing = 0;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, function->parameters == nullptr ? const_cast<char*>(&nothing) : function->parameters,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  if (function->parameters == nullptr) bytes = 0;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = handle;
  kernel.gridDimX = static_cast<unsigned>(width);
  kernel.gridDimY = static_cast<unsigned>(height);
  kernel.gridDimZ = 1;
  kernel.blockDimX = static_cast<unsigned>(function->block[0]);
  kernel.blockDimY = static_cast<unsigned>(function->block[1]);
  kernel.blockDimZ = static_cast<unsigned>(function->block[2]);
  kernel.sharedMemBytes = function->launch_shared;
  kernel.extra = extra;
  return LaunchOn(call, kernel, stream, false);
}

}  // namespace

CUresult api::ParamSetSize(Call& call, CUfunction handle, unsigned int bytes) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (bytes > kParameterBytes) return CUDA_ERROR_INVALID_VALUE;
  function->parameter_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult api::ParamSeti(Call& call, CUfunction handle, int offset, unsigned int value) {
  return SetBytes(call, handle, offset, &value, sizeof(value));
}

CUresult api::ParamSetf(Call& call, CUfunction handle, int offset, float value) {
  return SetBytes(call, handle, offset, &value, sizeof(value));
}

CUresult api::ParamSetv(Call& call, CUfunction handle, int offset, void* value, unsigned int bytes) {
  return SetBytes(call, handle, offset, value, bytes);
}

CUresult api::Launch(Call& call, CUfunction function) { return Start(call, function, 1, 1, nullptr); }
CUresult api::LaunchGrid(Call& call, CUfunction function, int width, int height) { return Start(call, function, width, height, nullptr); }
CUresult api::LaunchGridAsync(Call& call, CUfunction function, int width, int height, CUstream stream) {
  return Start(call, function, width, height, stream);
}

}  // namespace cuaudit::sim
