// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/device_attributes.h"
#include "faults/sim/executor.h"
#include "faults/sim/module.h"

namespace cuaudit::sim {
namespace {

constexpr int kDynamicSharedLimit = 232448;
constexpr unsigned kThreadsPerMultiprocessor = 2048;
constexpr unsigned kBlocksPerMultiprocessor = 32;
constexpr std::size_t kSharedPerMultiprocessor = 233472;
constexpr std::size_t kSharedPerBlockReserve = 1024;
constexpr int kPtxVersion = 90;

CUresult Attribute(const Symbol* symbol, int dynamic_shared, int carveout, CUfunction_attribute attribute, int* value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(symbol->max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(symbol->shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 16;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = kPtxVersion;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = dynamic_shared != 0 ? dynamic_shared : 49152;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult ParameterInfo(const Symbol* symbol, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (index >= symbol->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = symbol->parameters[index].offset;
  if (size != nullptr) *size = symbol->parameters[index].size;
  return CUDA_SUCCESS;
}

int BlocksPerMultiprocessor(const Symbol* symbol, int block, std::size_t dynamic_shared) {
  const unsigned threads = (static_cast<unsigned>(block) + 31U) / 32U * 32U;
  if (static_cast<unsigned>(block) > symbol->max_threads) return 0;
  const std::size_t by_shared = kSharedPerMultiprocessor / (symbol->shared_bytes + dynamic_shared + kSharedPerBlockReserve);
  std::size_t blocks = kThreadsPerMultiprocessor / threads;
  blocks = blocks > kBlocksPerMultiprocessor ? kBlocksPerMultiprocessor : blocks;
  return static_cast<int>(blocks > by_shared ? by_shared : blocks);
}

}  // namespace

CUresult api::FuncGetAttribute(Call& call, int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  return function == nullptr ? result : Attribute(function->symbol, function->dynamic_shared, function->carveout, attribute, value);
}

CUresult api::FuncSetAttribute(Call& call, CUfunction handle, CUfunction_attribute attribute, int value) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = FindFunction(call, handle, &result);
  if (function == nullptr) return result;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > kDynamicSharedLimit - static_cast<int>(function->symbol->shared_bytes)) return CUDA_ERROR_INVALID_VALUE;
    function->dynamic_shared = value;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    function->carveout = value;
    return CUDA_SUCCESS;
  }
  return attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult api::FuncSetCacheConfig(Call& call, CUfunction handle, CUfunc_cache config) {
  CUresult result = CUDA_SUCCESS;
  if (FindFunction(call, handle, &result) == nullptr) return result;
  return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult api::FuncGetName(Call& call, const char** name, CUfunction handle) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  if (function != nullptr) *name = function->symbol->name;
  return result;
}

CUresult api::FuncGetModule(Call& call, CUmodule* out, CUfunction handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  if (function != nullptr) *out = ToHandle<CUmodule>(function->module);
  return result;
}

CUresult api::FuncGetParamInfo(Call& call, CUfunction handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  return function == nullptr ? result : ParameterInfo(function->symbol, index, offset, size);
}

CUresult api::FuncIsLoaded(Call& call, CUfunctionLoadingState* state, CUfunction handle) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  if (FindFunction(call, handle, &result) != nullptr) *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return result;
}

CUresult api::FuncLoad(Call& call, CUfunction handle) {
  CUresult result = CUDA_SUCCESS;
  (void)FindFunction(call, handle, &result);
  return result;
}

CUresult api::KernelGetFunction(Call& call, CUfunction* out, CUkernel handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.world.Find<Kernel>(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, reinterpret_cast<CUfunction>(handle), &result);
  if (function != nullptr) *out = ToHandle<CUfunction>(function);
  return result;
}

#ifdef CUAUDIT_HAS_KernelGetLibrary
CUresult api::KernelGetLibrary(Call& call, CUlibrary* out, CUkernel handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Kernel* const kernel = call.world.Find<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = ToHandle<CUlibrary>(kernel->library);
  return CUDA_SUCCESS;
}
#endif

CUresult api::KernelGetName(Call& call, const char** name, CUkernel handle) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Kernel* const kernel = call.world.Find<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->symbol->name;
  return CUDA_SUCCESS;
}

CUresult api::KernelGetAttribute(Call& call, int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  const Kernel* const kernel = call.world.Find<Kernel>(handle);
  return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : Attribute(kernel->symbol, 0, -1, attribute, value);
}

CUresult api::KernelGetParamInfo(Call& call, CUkernel handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  const Kernel* const kernel = call.world.Find<Kernel>(handle);
  return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : ParameterInfo(kernel->symbol, index, offset, size);
}

CUresult api::OccupancyMaxActiveBlocksPerMultiprocessor(Call& call, int* blocks, CUfunction handle, int block, std::size_t shared) {
  if (blocks == nullptr || block <= 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  if (function != nullptr) *blocks = BlocksPerMultiprocessor(function->symbol, block, shared);
  return result;
}

CUresult api::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Call& call, int* blocks, CUfunction handle, int block, std::size_t shared,
                                                                 unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return OccupancyMaxActiveBlocksPerMultiprocessor(call, blocks, handle, block, shared);
}

CUresult api::OccupancyMaxPotentialBlockSize(Call& call, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize, std::size_t shared,
                                             int limit) {
  if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  if (function == nullptr) return result;
  const int most = static_cast<int>(function->symbol->max_threads);
  *block = limit != 0 && limit < most ? limit : most;
  *grid = BlocksPerMultiprocessor(function->symbol, *block, shared) * DeviceAttribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return CUDA_SUCCESS;
}

CUresult api::OccupancyMaxPotentialBlockSizeWithFlags(Call& call, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize size,
                                                      std::size_t shared, int limit, unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return OccupancyMaxPotentialBlockSize(call, grid, block, handle, size, shared, limit);
}

}  // namespace cuaudit::sim
