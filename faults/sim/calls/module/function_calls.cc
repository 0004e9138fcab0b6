// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/module.h"

namespace cuaudit::sim {
namespace {

CUresult Attribute(const Profile& profile, const Symbol* symbol, const FunctionSettings& settings, CUfunction_attribute attribute,
                   int* value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(symbol->max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(symbol->shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(kRegisters);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = profile.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
               profile.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(DynamicSharedLimit(profile, symbol, settings));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = settings.carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = settings.cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = settings.non_portable_cluster ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = settings.cluster_policy;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult SetAttribute(const Profile& profile, const Symbol* symbol, CUfunction_attribute attribute, int value, FunctionSettings* settings) {
  const int most = profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || value > most - static_cast<int>(symbol->shared_bytes)) return CUDA_ERROR_INVALID_VALUE;
      settings->dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      settings->carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      if (value < 0 || profile.Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return CUDA_ERROR_INVALID_VALUE;
      settings->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      settings->non_portable_cluster = value != 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (value < CU_CLUSTER_SCHEDULING_POLICY_DEFAULT || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
        return CUDA_ERROR_INVALID_VALUE;
      settings->cluster_policy = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool IsDevice(const Call& call, CUdevice device) { return device >= 0 && device < call.world.device_count; }
bool IsCacheConfig(CUfunc_cache config) { return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL; }

CUresult ParameterInfo(const Symbol* symbol, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (index >= symbol->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = symbol->parameters[index].offset;
  if (size != nullptr) *size = symbol->parameters[index].size;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::FuncGetAttribute(Call& call, int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  return function == nullptr ? result : Attribute(*call.world.profile, function->symbol, *function, attribute, value);
}

CUresult api::FuncSetAttribute(Call& call, CUfunction handle, CUfunction_attribute attribute, int value) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = FindFunction(call, handle, &result);
  return function == nullptr ? result : SetAttribute(*call.world.profile, function->symbol, attribute, value, function);
}

CUresult api::FuncSetSharedMemConfig(Call& call, CUfunction handle, CUsharedconfig config) {
  CUresult result = CUDA_SUCCESS;
  if (FindFunction(call, handle, &result) == nullptr) return result;
  const bool known = config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult api::FuncSetCacheConfig(Call& call, CUfunction handle, CUfunc_cache config) {
  CUresult result = CUDA_SUCCESS;
  if (FindFunction(call, handle, &result) == nullptr) return result;
  return IsCacheConfig(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
  const Function* const function = FindFunction(call, handle, &result);
  if (function != nullptr) *state = function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return result;
}

CUresult api::FuncLoad(Call& call, CUfunction handle) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = FindFunction(call, handle, &result);
  if (function != nullptr) function->loaded = true;
  return result;
}

CUresult api::KernelGetFunction(Call& call, CUfunction* out, CUkernel handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.world.Find<Kernel>(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindLaunched(call, reinterpret_cast<CUfunction>(handle), &result);
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
  if (name == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Kernel* const kernel = call.world.Find<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->symbol->name;
  return CUDA_SUCCESS;
}

CUresult api::KernelGetAttribute(Call& call, int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const Kernel* const kernel = call.world.Find<Kernel>(handle);
  return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE
                           : Attribute(*call.world.profile, kernel->symbol, kernel->settings[device], attribute, value);
}

CUresult api::KernelSetAttribute(Call& call, CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  if (!IsDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  Kernel* const kernel = call.world.Find<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Profile& profile = *call.world.profile;
  const CUresult result = SetAttribute(profile, kernel->symbol, attribute, value, &kernel->settings[device]);
  if (result != CUDA_SUCCESS) return result;
  // Functions that are already made from the kernel on that device follow.
  for (const Module* const module : kernel->library->modules) {
    if (module->owner->device != device) continue;
    for (Function* const function : module->functions) {
      if (function->symbol == kernel->symbol) (void)SetAttribute(profile, kernel->symbol, attribute, value, function);
    }
  }
  return CUDA_SUCCESS;
}

CUresult api::KernelSetCacheConfig(Call& call, CUkernel handle, CUfunc_cache config, CUdevice device) {
  if (!IsDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (call.world.Find<Kernel>(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return IsCacheConfig(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult api::KernelGetParamInfo(Call& call, CUkernel handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  const Kernel* const kernel = call.world.Find<Kernel>(handle);
  return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : ParameterInfo(kernel->symbol, index, offset, size);
}

}  // namespace cuaudit::sim
