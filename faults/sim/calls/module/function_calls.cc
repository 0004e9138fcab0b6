// SPDX-License-Identifier: MIT
// What functions and kernels are, and how many blocks of them a device holds.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/device/profile.h"
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

namespace {

constexpr int kClusteredBlocks = 8;  // of one multiprocessor, as an H200 counts them

KernelNeeds NeedsOf(const Function* function) { return {kRegisters, function->symbol->shared_bytes}; }

int Blocks(const Call& call, const Function* function, unsigned threads, std::size_t dynamic_shared) {
  if (dynamic_shared > DynamicSharedLimit(*call.world.profile, function->symbol, *function)) return 0;
  return BlocksPerMultiprocessor(*call.world.profile, NeedsOf(function), threads, dynamic_shared);
}

int Multiprocessors(const Call& call) { return call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }

constexpr int kWarp = 32;
constexpr std::size_t kSizes = 33;  // of blocks that are tried: the limit, and the multiples of a warp below
int Smaller(int threads) { return (threads - 1) / kWarp * kWarp; }

CUresult Potential(Call& call, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize size, std::size_t shared, int limit) {
  if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* function = FindLaunched(call, handle, &result);
  if (function == nullptr) return result;
  const int most = static_cast<int>(function->symbol->max_threads);
  const int largest = limit != 0 && limit < most ? limit : most;
  // The largest block of those that keep the most threads resident; the sizes between are multiples of a warp.
  std::size_t wanted[kSizes];
  for (std::size_t& each : wanted) each = shared;
  if (size != nullptr) {
    // The program's function may call the driver, so the lock is free meanwhile.
    pthread_mutex_unlock(&call.world.lock);
    for (int threads = largest, i = 0; threads > 0; threads = Smaller(threads)) wanted[i++] = size(threads);
    pthread_mutex_lock(&call.world.lock);
    function = FindLaunched(call, handle, &result);
    if (function == nullptr) return result;
  }
  int best = 0;
  for (int threads = largest, i = 0; threads > 0; threads = Smaller(threads), ++i) {
    const int blocks = Blocks(call, function, static_cast<unsigned>(threads), wanted[i]);
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * Multiprocessors(call);
  }
  if (best == 0) *grid = *block = 0;
  return CUDA_SUCCESS;
}

// The blocks of a cluster that a launch asks for; 0: it asks for none.
unsigned ClusterOf(const CUlaunchConfig* config) {
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    return attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z;
  }
  return 0;
}

CUresult ConfigBlocks(Call& call, CUfunction handle, const CUlaunchConfig* config, Function** function, int* blocks) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  *function = FindLaunched(call, handle, &result);
  if (*function == nullptr) return result;
  const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
  if (threads == 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = Blocks(call, *function, threads, config->sharedMemBytes);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::OccupancyMaxActiveBlocksPerMultiprocessor(Call& call, int* blocks, CUfunction handle, int block, std::size_t shared) {
  if (blocks == nullptr || block <= 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindLaunched(call, handle, &result);
  if (function != nullptr) *blocks = Blocks(call, function, static_cast<unsigned>(block), shared);
  return result;
}

CUresult api::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Call& call, int* blocks, CUfunction handle, int block, std::size_t shared,
                                                                 unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return OccupancyMaxActiveBlocksPerMultiprocessor(call, blocks, handle, block, shared);
}

CUresult api::OccupancyMaxPotentialBlockSize(Call& call, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize size,
                                             std::size_t shared, int limit) {
  return Potential(call, grid, block, handle, size, shared, limit);
}

CUresult api::OccupancyMaxPotentialBlockSizeWithFlags(Call& call, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize size,
                                                      std::size_t shared, int limit, unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return Potential(call, grid, block, handle, size, shared, limit);
}

CUresult api::OccupancyAvailableDynamicSMemPerBlock(Call& call, std::size_t* bytes, CUfunction handle, int blocks, int threads) {
  if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindLaunched(call, handle, &result);
  if (function == nullptr) return result;
  const Profile& profile = *call.world.profile;
  if (BlocksPerMultiprocessor(profile, NeedsOf(function), static_cast<unsigned>(threads), 0) < blocks) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t limit = DynamicSharedLimit(profile, function->symbol, *function);
  const std::size_t each = SharedForBlocks(profile, NeedsOf(function), static_cast<unsigned>(blocks));
  *bytes = each < limit ? each : limit;
  return CUDA_SUCCESS;
}

CUresult api::OccupancyMaxPotentialClusterSize(Call& call, int* size, CUfunction handle, const CUlaunchConfig* config) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* function = nullptr;
  int blocks = 0;
  const CUresult result = ConfigBlocks(call, handle, config, &function, &blocks);
  if (result != CUDA_SUCCESS) return result;
  const unsigned most = function->non_portable_cluster ? kGreatestCluster : kPortableCluster;
  *size = blocks == 0 ? 0 : static_cast<int>(most);
  return CUDA_SUCCESS;
}

CUresult api::OccupancyMaxActiveClusters(Call& call, int* clusters, CUfunction handle, const CUlaunchConfig* config) {
  if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* function = nullptr;
  int blocks = 0;
  const CUresult result = ConfigBlocks(call, handle, config, &function, &blocks);
  if (result != CUDA_SUCCESS) return result;
  const unsigned cluster = ClusterOf(config);
  const unsigned most = function->non_portable_cluster ? kGreatestCluster : kPortableCluster;
  if (cluster > most || (cluster != 0 && config->gridDimX % cluster != 0)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const int resident = blocks < kClusteredBlocks ? blocks : kClusteredBlocks;
  *clusters = cluster == 0 ? 0 : resident * Multiprocessors(call) / static_cast<int>(cluster);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
