// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/executor.h"
#include "faults/sim/launch.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kMaxGridX = 2147483647;
constexpr std::uint64_t kMaxGridYZ = 65535;
constexpr std::uint64_t kMaxBlock = 1024;
constexpr std::uint64_t kMaxBlockZ = 64;
constexpr std::uint64_t kStaticShared = 49152;

CUresult Launch(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  result = CheckKernel(call, kernel);
  if (result != CUDA_SUCCESS) return result;
  Work work;
  work.type = WorkType::Kernel;
  work.kernel = kernel;
  return Submit(call, stream, CU_GRAPH_NODE_TYPE_KERNEL, work);
}

CUDA_KERNEL_NODE_PARAMS Describe(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                 unsigned shared, void** parameters, void** extra) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function;
  kernel.gridDimX = gx;
  kernel.gridDimY = gy;
  kernel.gridDimZ = gz;
  kernel.blockDimX = bx;
  kernel.blockDimY = by;
  kernel.blockDimZ = bz;
  kernel.sharedMemBytes = shared;
  kernel.kernelParams = parameters;
  kernel.extra = extra;
  return kernel;
}

}  // namespace

CUresult CheckKernel(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept {
  CUfunction const handle = kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindFunction(call, handle, &result);
  if (function == nullptr) return result;
  if (kernel.gridDimX == 0 || kernel.gridDimY == 0 || kernel.gridDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.blockDimX == 0 || kernel.blockDimY == 0 || kernel.blockDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.gridDimX > kMaxGridX || kernel.gridDimY > kMaxGridYZ || kernel.gridDimZ > kMaxGridYZ) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.blockDimX > kMaxBlock || kernel.blockDimY > kMaxBlock || kernel.blockDimZ > kMaxBlockZ) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t threads = std::uint64_t{kernel.blockDimX} * kernel.blockDimY * kernel.blockDimZ;
  if (threads > kMaxBlock || threads > function->symbol->max_threads) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t allowed = function->dynamic_shared != 0 ? static_cast<std::uint64_t>(function->dynamic_shared) : kStaticShared;
  if (kernel.sharedMemBytes > allowed) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.kernelParams != nullptr && kernel.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool wants = function->symbol->parameters_known && !function->symbol->parameters.empty();
  return wants && kernel.kernelParams == nullptr && kernel.extra == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult api::LaunchKernel(Call& call, CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                           unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** parameters, void** extra) {
  return Launch(call, Describe(function, gx, gy, gz, bx, by, bz, shared, parameters, extra), stream);
}

CUresult api::LaunchCooperativeKernel(Call& call, CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                      unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** parameters) {
  return Launch(call, Describe(function, gx, gy, gz, bx, by, bz, shared, parameters, nullptr), stream);
}

CUresult api::LaunchKernelEx(Call& call, const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return Launch(call,
                Describe(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
                         config->blockDimZ, config->sharedMemBytes, parameters, extra),
                config->hStream);
}

}  // namespace cuaudit::sim
