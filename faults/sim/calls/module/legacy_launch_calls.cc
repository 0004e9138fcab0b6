// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/calls/module/launch.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/module.h"

namespace cuaudit::sim {
namespace {

constexpr int kParameterBytes = kLegacyParameterBytes;

// The function, which must be one of the current context.
Function* Find(Call& call, CUfunction handle, CUresult* result) {
  Function* const function = FindFunction(call, handle, result);
  if (function == nullptr || function->module->owner == call.context) return function;
  *result = CUDA_ERROR_INVALID_HANDLE;
  return nullptr;
}

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

CUresult api::FuncSetBlockShape(Call& call, CUfunction handle, int x, int y, int z) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  const Profile& profile = *call.world.profile;
  const int shape[3] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    if (shape[i] <= 0 || shape[i] > profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (std::int64_t{x} * y * z > std::int64_t{function->symbol->max_threads}) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 3; ++i) function->block[i] = shape[i];
  return CUDA_SUCCESS;
}

CUresult api::FuncSetSharedSize(Call& call, CUfunction handle, unsigned int bytes) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (bytes > DynamicSharedLimit(*call.world.profile, function->symbol, *function)) return CUDA_ERROR_INVALID_VALUE;
  function->launch_shared = bytes;
  return CUDA_SUCCESS;
}

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

// Kernels read no textures here, so nothing depends on which reference they were given.
CUresult api::ParamSetTexRef(Call& call, CUfunction handle, int unit, CUtexref reference) {
  CUresult result = CUDA_SUCCESS;
  if (Find(call, handle, &result) == nullptr) return result;
  if (unit != CU_PARAM_TR_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  return call.world.Find<TextureReference>(reference) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult api::Launch(Call& call, CUfunction function) { return Start(call, function, 1, 1, nullptr); }
CUresult api::LaunchGrid(Call& call, CUfunction function, int width, int height) { return Start(call, function, width, height, nullptr); }
CUresult api::LaunchGridAsync(Call& call, CUfunction function, int width, int height, CUstream stream) {
  return Start(call, function, width, height, stream);
}

}  // namespace cuaudit::sim
