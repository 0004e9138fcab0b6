// SPDX-License-Identifier: MIT
// compiler_exports.cc: the functions that nvcc's generated code calls: registration from constructors, and the steps of <<<...>>>.
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "faults/cudart/exports.h"
#include "faults/cudart/process.h"
#include "faults/cudart/registry.h"

namespace cuaudit::cudart {
namespace {

Binary* BinaryOf(void** handle) noexcept { return reinterpret_cast<Binary*>(handle); }

}  // namespace
}  // namespace cuaudit::cudart

using namespace cuaudit::cudart;

CUDART_PUBLIC void** __cudaRegisterFatBinary(void* wrapper) { return reinterpret_cast<void**>(RegisterBinary(wrapper)); }

CUDART_PUBLIC void __cudaRegisterFatBinaryEnd(void**) {}

// Called from exit handlers, or when a plug-in is closed. The last binary to go releases what the runtime itself holds.
CUDART_PUBLIC void __cudaUnregisterFatBinary(void** handle) {
  if (handle == nullptr) return;
  UnregisterBinary(BinaryOf(handle));
}

CUDART_PUBLIC void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                          int*) {
  if (handle != nullptr) RegisterFunction(BinaryOf(handle), host, name);
}

CUDART_PUBLIC void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int, int) {
  if (handle != nullptr) RegisterVariable(BinaryOf(handle), host, name, bytes, nullptr);
}

CUDART_PUBLIC void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t bytes, int, int) {
  if (handle != nullptr) RegisterVariable(BinaryOf(handle), host, name, bytes, host);
}

// A host variable that kernels may read. It already lies in host memory, so there is nothing to do.
CUDART_PUBLIC void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}

// Called before host code first uses a __managed__ variable.
CUDART_PUBLIC char __cudaInitModule(void** handle) {
  if (handle == nullptr) return 0;
  return Run<Need::context, false>([&](DriverRef driver) noexcept { return InitialiseManaged(driver, BinaryOf(handle)); }) == cudaSuccess;
}

CUDART_PUBLIC unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  Thread& thread = This();
  if (thread.depth == kConfigurations) return static_cast<unsigned>(Record(cudaErrorLaunchOutOfResources));
  thread.configuration[thread.depth++] = {grid, block, shared_bytes, stream};
  return 0;
}

CUDART_PUBLIC cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  Thread& thread = This();
  if (thread.depth == 0) return Record(cudaErrorMissingConfiguration);
  const CallConfiguration& top = thread.configuration[--thread.depth];
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

// Generated code calls this once per stub, ignores the result and keeps the handle. The handle therefore stands for the registered kernel
// even if it could not be loaded now: a launch tries again. For a kernel that is not registered the handle is the address itself.
CUDART_PUBLIC cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  if (kernel == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  Function* const function = FindFunction(host);
  *kernel = static_cast<cudaKernel_t>(function != nullptr ? function : const_cast<void*>(host));
  if (function == nullptr) return Record(cudaErrorInvalidDeviceFunction);
  return Run<Need::context, false>([&](DriverRef driver) noexcept {
    CUkernel loaded = nullptr;
    return KernelOf(driver, function, &loaded);
  });
}

CUDART_PUBLIC cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                             cudaStream_t stream) {
  return Run<Need::context, false>([&](DriverRef driver) noexcept {
    return LaunchRegistered(driver, reinterpret_cast<Function*>(kernel), grid, block, arguments, shared_bytes, stream, false);
  });
}

CUDART_PUBLIC cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                                  cudaStream_t stream) {
  return Run<Need::context, true>([&](DriverRef driver) noexcept {
    return LaunchRegistered(driver, reinterpret_cast<Function*>(kernel), grid, block, arguments, shared_bytes, stream, false);
  });
}

namespace {

// Runs after every exit handler: the libraries went with their binaries, and the primary contexts are released now. NVIDIA's runtime leaves
// them to the end of the process, so what the program left in them is still counted as the program's leak.
__attribute__((destructor)) void OnUnload() {
  const DriverRef driver = RunningDriver();
  if (driver.table == nullptr) return;
  NoteExit();
  ReleaseDevices(driver);
}

}  // namespace
