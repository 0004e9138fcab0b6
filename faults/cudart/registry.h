// SPDX-License-Identifier: MIT
// registry.h: the fat binaries, kernels and variables that nvcc's constructors registered, and the driver's kernel or address behind each.
//
//   Owns      one CUlibrary for each fat binary, from its first use until it is unregistered.
//   Threads   safe. If two threads load one library at the same time, the second thread unloads its copy.
//   Errors    cudaErrorInvalidDeviceFunction and cudaErrorInvalidSymbol for an address that was never registered; else the driver's error.
//             A library that failed to load is tried again at its next use.
//   Faults    calls the driver: LibraryLoadData, LibraryGetKernel, LibraryGetGlobal, LibraryGetManaged, LibraryUnload, KernelGetFunction.
//   Source    crt/host_runtime.h of the CUDA toolkit, which declares the functions that nvcc's generated code calls.
#pragma once

#include "faults/cudart/arena.h"
#include "faults/cudart/process.h"

namespace cuaudit::cudart {

struct Function;
struct Variable;

struct Binary {
  const void* image;  // the fatbin that nvcc's record points to
  std::atomic<CUlibrary> library;
  Function* functions;
  Variable* variables;
  Binary* next;
};

struct Function {
  Binary* binary;
  const void* host;  // address of the host stub: the `func` of cudaLaunchKernel
  const char* name;
  std::atomic<CUkernel> kernel;
  Function* next;
};

struct Variable {
  Binary* binary;
  const void* host;
  const char* name;
  size_t bytes;
  void** managed;  // generated code reads the address of a __managed__ variable here; null for other variables
  Variable* next;
};

// Called by nvcc's constructors. Null when there is no memory.
Binary* RegisterBinary(const void* wrapper) noexcept;
void RegisterFunction(Binary* binary, const void* host, const char* name) noexcept;
void RegisterVariable(Binary* binary, const void* host, const char* name, size_t bytes, void** managed) noexcept;
void UnregisterBinary(Binary* binary) noexcept;
bool AnyBinary() noexcept;

Function* FindFunction(const void* host) noexcept;
Variable* FindVariable(const void* host) noexcept;
// The host stub of a loaded kernel, or of its function in the current context; null for a kernel that is not registered.
const void* HostOf(DriverRef driver, CUkernel kernel, CUfunction function) noexcept;
// True if __cudaGetKernel returned `token`.
bool IsFunction(const void* token) noexcept;

// Load the library, kernel or variable at its first use.
cudaError_t LibraryOf(DriverRef driver, Binary* binary, CUlibrary* library) noexcept;
cudaError_t KernelOf(DriverRef driver, Function* function, CUkernel* kernel) noexcept;
cudaError_t AddressOf(DriverRef driver, Variable* variable, CUdeviceptr* address, size_t* bytes) noexcept;
// Writes the addresses of the binary's __managed__ variables to where generated code reads them.
cudaError_t InitialiseManaged(DriverRef driver, Binary* binary) noexcept;

// Finds the driver's kernel behind each of the three values that a program may pass as a kernel.
//
//   Owns      the list of kernels that cudaLibraryGetKernel and cudaLibraryEnumerateKernels returned.
//   Errors    cudaErrorInvalidDeviceFunction for null, cudaErrorInvalidResourceHandle for an address that is not a kernel.
//   Faults    calls the driver: KernelGetFunction, and those of AddressOf.
//   Source    CUDA Runtime API 13.0: a kernel is the address of its host stub, a cudaKernel_t of cudaGetKernel, or one of a library.

cudaError_t ResolveKernel(DriverRef driver, const void* address, CUkernel* kernel) noexcept;
// The kernel as a CUfunction, which the driver's launches and queries accept.
cudaError_t ResolveFunction(DriverRef driver, const void* address, CUfunction* function) noexcept;
// Records a kernel of a library that the program loaded itself.
cudaError_t NoteKernel(CUkernel kernel, CUlibrary library) noexcept;
void ForgetKernelsOf(CUlibrary library) noexcept;

// Launches a registered kernel, for <<<...>>> and cudaLaunchKernel alike.
//
//   Streams   queued on `stream`.
//   Errors    cudaErrorInvalidDeviceFunction for a kernel that was never registered; else the driver's error.
//   Faults    calls the driver: LibraryLoadData and LibraryGetKernel at the first launch, then LaunchKernel or LaunchCooperativeKernel.
//   Source    CUDA Runtime API 13.0, Execution Control.

cudaError_t LaunchRegistered(DriverRef driver, Function* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream, bool cooperative) noexcept;

// Converts the launch configuration. The attributes have the same layout in both, so the result points to the caller's.
CUlaunchConfig PlanLaunch(const cudaLaunchConfig_t& config) noexcept;

// Finds the device address of a variable that is one side of a copy.
//
//   Units     bytes.
//   Errors    cudaErrorInvalidSymbol for an address that was never registered, cudaErrorInvalidValue for a range beyond the variable.
//   Faults    makes the driver calls of AddressOf.
//   Source    CUDA Runtime API 13.0, cudaMemcpyToSymbol and the calls beside it.

cudaError_t Locate(DriverRef driver, const void* symbol, size_t offset, size_t count, CUdeviceptr* address) noexcept;

}  // namespace cuaudit::cudart
