// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/device/occupancy.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/module.h"

namespace cuaudit::sim {
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
