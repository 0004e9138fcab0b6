// SPDX-License-Identifier: MIT
// Kernels and the libraries that hold them: attributes, occupancy, names, handles; libraries that a program loads itself.

#include "faults/cudart/calls.h"
#include "faults/cudart/descriptions.h"
#include "faults/cudart/process.h"
#include "faults/cudart/registry.h"

namespace cuaudit::cudart {
namespace {

struct Attribute {
  CUfunction_attribute attribute;
  int cudaFuncAttributes::*narrow;
  size_t cudaFuncAttributes::*wide;
};

constexpr Attribute kAttributes[] = {
    {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &cudaFuncAttributes::maxThreadsPerBlock, nullptr},
    {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, nullptr, &cudaFuncAttributes::sharedSizeBytes},
    {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, nullptr, &cudaFuncAttributes::constSizeBytes},
    {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, nullptr, &cudaFuncAttributes::localSizeBytes},
    {CU_FUNC_ATTRIBUTE_NUM_REGS, &cudaFuncAttributes::numRegs, nullptr},
    {CU_FUNC_ATTRIBUTE_PTX_VERSION, &cudaFuncAttributes::ptxVersion, nullptr},
    {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &cudaFuncAttributes::binaryVersion, nullptr},
    {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &cudaFuncAttributes::cacheModeCA, nullptr},
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &cudaFuncAttributes::maxDynamicSharedSizeBytes, nullptr},
    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &cudaFuncAttributes::preferredShmemCarveout, nullptr},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &cudaFuncAttributes::clusterDimMustBeSet, nullptr},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &cudaFuncAttributes::requiredClusterWidth, nullptr},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &cudaFuncAttributes::requiredClusterHeight, nullptr},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &cudaFuncAttributes::requiredClusterDepth, nullptr},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &cudaFuncAttributes::clusterSchedulingPolicyPreference, nullptr},
    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &cudaFuncAttributes::nonPortableClusterSizeAllowed, nullptr},
};

cudaError_t OfSymbol(CUresult result) noexcept { return result == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound : FromDriver(result); }

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

cudaError_t FuncGetAttributes(DriverRef driver, struct cudaFuncAttributes* attr, const void* func) noexcept {
  if (attr == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  cudaFuncAttributes found{};
  for (const Attribute& row : kAttributes) {
    int value = 0;
    if (const CUresult result = driver.FuncGetAttribute(&value, row.attribute, function)) return From(result);
    if (row.wide != nullptr) {
      found.*row.wide = static_cast<size_t>(value);
    } else {
      found.*row.narrow = value;
    }
  }
  *attr = found;
  return cudaSuccess;
}

cudaError_t FuncSetAttribute(DriverRef driver, const void* func, enum cudaFuncAttribute attr, int value) noexcept {
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  return From(driver.FuncSetAttribute(function, As(attr), value));
}

cudaError_t FuncSetCacheConfig(DriverRef driver, const void* func, enum cudaFuncCache cacheConfig) noexcept {
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  return From(driver.FuncSetCacheConfig(function, As(cacheConfig)));
}

cudaError_t FuncSetSharedMemConfig(DriverRef driver, const void* func, enum cudaSharedMemConfig config) noexcept {
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  return From(driver.FuncSetSharedMemConfig(function, static_cast<CUsharedconfig>(config)));
}

cudaError_t DeviceGetSharedMemConfig(DriverRef driver, enum cudaSharedMemConfig* pConfig) noexcept {
  if (pConfig == nullptr) return cudaErrorInvalidValue;
  CUsharedconfig found{};
  const CUresult result = driver.CtxGetSharedMemConfig(&found);
  if (result == CUDA_SUCCESS) *pConfig = static_cast<cudaSharedMemConfig>(found);
  return From(result);
}

cudaError_t DeviceSetSharedMemConfig(DriverRef driver, enum cudaSharedMemConfig config) noexcept {
  return From(driver.CtxSetSharedMemConfig(static_cast<CUsharedconfig>(config)));
}

cudaError_t FuncGetName(DriverRef driver, const char** name, const void* func) noexcept {
  if (name == nullptr) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, func, &kernel)) return error;
  return From(driver.KernelGetName(name, kernel));
}

cudaError_t FuncGetParamInfo(DriverRef driver, const void* func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) noexcept {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, func, &kernel)) return error;
  return From(driver.KernelGetParamInfo(kernel, paramIndex, paramOffset, paramSize));
}

cudaError_t GetFuncBySymbol(DriverRef driver, cudaFunction_t* functionPtr, const void* symbolPtr) noexcept {
  CUfunction function = nullptr;
  const cudaError_t error = ResolveFunction(driver, symbolPtr, &function);
  if (error == cudaErrorInvalidResourceHandle) return cudaErrorInvalidDeviceFunction;
  if (error == cudaSuccess && functionPtr != nullptr) *functionPtr = function;
  return error;
}

cudaError_t GetKernel(DriverRef driver, cudaKernel_t* kernelPtr, const void* entryFuncAddr) noexcept {
  if (kernelPtr == nullptr) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  const cudaError_t resolved = ResolveKernel(driver, entryFuncAddr, &kernel);
  if (resolved != cudaSuccess) return resolved == cudaErrorInvalidResourceHandle ? cudaErrorInvalidDeviceFunction : resolved;
  if (const cudaError_t error = NoteKernel(kernel, nullptr)) return error;
  *kernelPtr = kernel;
  return cudaSuccess;
}

cudaError_t KernelSetAttributeForDevice(DriverRef driver, cudaKernel_t kernel, enum cudaFuncAttribute attr, int value,
                                        int device) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  if (kernel == nullptr) return cudaErrorInvalidResourceHandle;
  CUkernel resolved = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, kernel, &resolved)) return error;
  return From(driver.KernelSetAttribute(As(attr), value, resolved, DeviceAt(device)));
}

cudaError_t OccupancyMaxActiveBlocksPerMultiprocessor(DriverRef driver, int* numBlocks, const void* func, int blockSize,
                                                      size_t dynamicSMemSize) noexcept {
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  return From(driver.OccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, function, blockSize, dynamicSMemSize));
}

cudaError_t OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(DriverRef driver, int* numBlocks, const void* func, int blockSize,
                                                               size_t dynamicSMemSize, unsigned int flags) noexcept {
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  return From(driver.OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, function, blockSize, dynamicSMemSize, flags));
}

cudaError_t OccupancyAvailableDynamicSMemPerBlock(DriverRef driver, size_t* dynamicSmemSize, const void* func, int numBlocks,
                                                  int blockSize) noexcept {
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  return From(driver.OccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, function, numBlocks, blockSize));
}

cudaError_t OccupancyMaxPotentialClusterSize(DriverRef driver, int* clusterSize, const void* func,
                                             const cudaLaunchConfig_t* launchConfig) noexcept {
  if (launchConfig == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  const CUlaunchConfig config = PlanLaunch(*launchConfig);
  return From(driver.OccupancyMaxPotentialClusterSize(clusterSize, function, &config));
}

cudaError_t OccupancyMaxActiveClusters(DriverRef driver, int* numClusters, const void* func,
                                       const cudaLaunchConfig_t* launchConfig) noexcept {
  if (launchConfig == nullptr) return cudaErrorInvalidValue;
  CUfunction function = nullptr;
  if (const cudaError_t error = ResolveFunction(driver, func, &function)) return error;
  const CUlaunchConfig config = PlanLaunch(*launchConfig);
  return From(driver.OccupancyMaxActiveClusters(numClusters, function, &config));
}

cudaError_t LibraryLoadData(DriverRef driver, cudaLibrary_t* library, const void* code, enum cudaJitOption* jitOptions,
                            void** jitOptionsValues, unsigned int numJitOptions, enum cudaLibraryOption* libraryOptions,
                            void** libraryOptionValues, unsigned int numLibraryOptions) noexcept {
  return From(driver.LibraryLoadData(library, code, As(jitOptions), jitOptionsValues, numJitOptions, As(libraryOptions),
                                     libraryOptionValues, numLibraryOptions));
}

cudaError_t LibraryLoadFromFile(DriverRef driver, cudaLibrary_t* library, const char* fileName, enum cudaJitOption* jitOptions,
                                void** jitOptionsValues, unsigned int numJitOptions, enum cudaLibraryOption* libraryOptions,
                                void** libraryOptionValues, unsigned int numLibraryOptions) noexcept {
  return From(driver.LibraryLoadFromFile(library, fileName, As(jitOptions), jitOptionsValues, numJitOptions, As(libraryOptions),
                                         libraryOptionValues, numLibraryOptions));
}

// Forget the kernels first: another thread's load may get the same addresses.
cudaError_t LibraryUnload(DriverRef driver, cudaLibrary_t library) noexcept {
  if (library != nullptr) ForgetKernelsOf(library);
  return From(driver.LibraryUnload(library));
}

cudaError_t LibraryGetKernel(DriverRef driver, cudaKernel_t* pKernel, cudaLibrary_t library, const char* name) noexcept {
  const CUresult result = driver.LibraryGetKernel(pKernel, library, name);
  return result == CUDA_SUCCESS ? NoteKernel(*pKernel, library) : OfSymbol(result);
}

cudaError_t LibraryGetKernelCount(DriverRef driver, unsigned int* count, cudaLibrary_t lib) noexcept {
  return From(driver.LibraryGetKernelCount(count, lib));
}

cudaError_t LibraryEnumerateKernels(DriverRef driver, cudaKernel_t* kernels, unsigned int numKernels, cudaLibrary_t lib) noexcept {
  unsigned count = 0;
  if (const CUresult result = driver.LibraryGetKernelCount(&count, lib)) return From(result);
  if (const CUresult result = driver.LibraryEnumerateKernels(kernels, numKernels, lib)) return From(result);
  for (unsigned i = 0; i < numKernels && i < count; ++i) {
    if (const cudaError_t error = NoteKernel(kernels[i], lib)) return error;
  }
  return cudaSuccess;
}

cudaError_t LibraryGetGlobal(DriverRef driver, void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) noexcept {
  return OfSymbol(driver.LibraryGetGlobal(reinterpret_cast<CUdeviceptr*>(dptr), bytes, library, name));
}

cudaError_t LibraryGetManaged(DriverRef driver, void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) noexcept {
  return OfSymbol(driver.LibraryGetManaged(reinterpret_cast<CUdeviceptr*>(dptr), bytes, library, name));
}

cudaError_t LibraryGetUnifiedFunction(DriverRef driver, void** fptr, cudaLibrary_t library, const char* symbol) noexcept {
  return OfSymbol(driver.LibraryGetUnifiedFunction(fptr, library, symbol));
}

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
