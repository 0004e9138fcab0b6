// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/device/occupancy.h"
#include "faults/sim/kernel/arguments.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kMaxGridX = 2147483647;
constexpr std::uint64_t kMaxGridYZ = 65535;
constexpr std::uint64_t kMaxBlock = 1024;
constexpr std::uint64_t kMaxBlockZ = 64;
constexpr std::uint64_t kStaticShared = 49152;

std::uint64_t Threads(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  return std::uint64_t{kernel.blockDimX} * kernel.blockDimY * kernel.blockDimZ;
}

CUfunction HandleOf(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  return kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
}

bool GoodShape(const CUDA_KERNEL_NODE_PARAMS& kernel, const Symbol& symbol) {
  if (kernel.gridDimX == 0 || kernel.gridDimY == 0 || kernel.gridDimZ == 0) return false;
  if (kernel.blockDimX == 0 || kernel.blockDimY == 0 || kernel.blockDimZ == 0) return false;
  if (kernel.gridDimX > kMaxGridX || kernel.gridDimY > kMaxGridYZ || kernel.gridDimZ > kMaxGridYZ) return false;
  if (kernel.blockDimX > kMaxBlock || kernel.blockDimY > kMaxBlock || kernel.blockDimZ > kMaxBlockZ) return false;
  const unsigned block[] = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
  for (int i = 0; i < 3; ++i) {
    if (symbol.required_block[0] != 0 && block[i] != symbol.required_block[i]) return false;
  }
  return Threads(kernel) <= kMaxBlock && Threads(kernel) <= symbol.max_threads;
}

CUresult CheckParameters(const CUDA_KERNEL_NODE_PARAMS& kernel, const Symbol& symbol) {
  if (kernel.kernelParams != nullptr && kernel.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!symbol.parameters_known) return CUDA_SUCCESS;
  const std::size_t count = symbol.parameters.size();
  if (kernel.extra != nullptr) {
    const char* buffer = nullptr;
    std::size_t bytes = 0;
    const CUresult result = ReadExtra(kernel.extra, &buffer, &bytes);
    if (result != CUDA_SUCCESS) return result;
    const std::size_t taken = count == 0 ? 0 : std::size_t{symbol.parameters[count - 1].offset} + symbol.parameters[count - 1].size;
    return bytes > taken ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
  }
  if (count != 0 && kernel.kernelParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (kernel.kernelParams[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CheckKernel(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const Context* context) noexcept {
  CUresult result = CUDA_SUCCESS;
  Function* const function = FindLaunched(call, HandleOf(kernel), &result);
  if (function == nullptr) return result;
  function->loaded = true;
  if (context != nullptr && function->module->owner != context) return CUDA_ERROR_INVALID_HANDLE;
  if (!GoodShape(kernel, *function->symbol)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t allowed = function->dynamic_shared != 0 ? static_cast<std::uint64_t>(function->dynamic_shared) : kStaticShared;
  if (kernel.sharedMemBytes > allowed) return CUDA_ERROR_INVALID_VALUE;
  return CheckParameters(kernel, *function->symbol);
}

CUresult CheckCooperative(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept {
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindLaunched(call, HandleOf(kernel), &result);
  if (function == nullptr) return result;
  const Profile& profile = *call.world.profile;
  const KernelNeeds needs{kRegisters, function->symbol->shared_bytes};
  const int blocks = BlocksPerMultiprocessor(profile, needs, static_cast<unsigned>(Threads(kernel)), kernel.sharedMemBytes);
  const std::uint64_t room =
      static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(profile.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const std::uint64_t asked = std::uint64_t{kernel.gridDimX} * kernel.gridDimY * kernel.gridDimZ;
  return asked > room ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult CheckCluster(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const CUlaunchAttributeValue& value) noexcept {
  if (call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const unsigned x = value.clusterDim.x;
  const unsigned y = value.clusterDim.y;
  const unsigned z = value.clusterDim.z;
  if (x == 0 || y == 0 || z == 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const bool fits = kernel.gridDimX % x == 0 && kernel.gridDimY % y == 0 && kernel.gridDimZ % z == 0;
  return fits && std::uint64_t{x} * y * z <= kPortableCluster ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

}  // namespace cuaudit::sim
