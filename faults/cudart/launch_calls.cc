// SPDX-License-Identifier: MIT
#include "faults/cudart/calls.h"
#include "faults/cudart/kernels.h"

namespace cuaudit::cudart {
namespace {

CUfunction Launchable(CUkernel kernel) noexcept { return reinterpret_cast<CUfunction>(kernel); }  // the driver's launches accept both

cudaError_t Launch(DriverRef driver, CUkernel kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, cudaStream_t stream,
                   bool cooperative) noexcept {
  const unsigned bytes = static_cast<unsigned>(shared_bytes);
  return From(
      cooperative
          ? driver.LaunchCooperativeKernel(Launchable(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z, bytes, stream, arguments)
          : driver.LaunchKernel(Launchable(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z, bytes, stream, arguments, nullptr));
}

}  // namespace

CUlaunchConfig PlanLaunch(const cudaLaunchConfig_t& config) noexcept {
  static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
  CUlaunchConfig launch{};
  launch.gridDimX = config.gridDim.x;
  launch.gridDimY = config.gridDim.y;
  launch.gridDimZ = config.gridDim.z;
  launch.blockDimX = config.blockDim.x;
  launch.blockDimY = config.blockDim.y;
  launch.blockDimZ = config.blockDim.z;
  launch.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  launch.hStream = config.stream;
  launch.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  launch.numAttrs = config.numAttrs;
  return launch;
}

cudaError_t LaunchRegistered(DriverRef driver, Function* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream, bool cooperative) noexcept {
  if (function != nullptr && !IsFunction(function)) function = FindFunction(function);
  if (function == nullptr) return cudaErrorInvalidDeviceFunction;
  CUkernel kernel = nullptr;
  if (const cudaError_t error = KernelOf(driver, function, &kernel)) return error;
  return Launch(driver, kernel, grid, block, arguments, shared_bytes, stream, cooperative);
}

cudaError_t LaunchKernel(DriverRef driver, const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                         cudaStream_t stream) noexcept {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, func, &kernel)) return error;
  return Launch(driver, kernel, gridDim, blockDim, args, sharedMem, stream, false);
}

cudaError_t LaunchCooperativeKernel(DriverRef driver, const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                                    cudaStream_t stream) noexcept {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, func, &kernel)) return error;
  return Launch(driver, kernel, gridDim, blockDim, args, sharedMem, stream, true);
}

cudaError_t LaunchKernelExC(DriverRef driver, const cudaLaunchConfig_t* config, const void* func, void** args) noexcept {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, func, &kernel)) return error;
  const CUlaunchConfig launch = PlanLaunch(*config);
  return From(driver.LaunchKernelEx(&launch, Launchable(kernel), args, nullptr));
}

}  // namespace cuaudit::cudart
