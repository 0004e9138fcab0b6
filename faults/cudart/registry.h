// SPDX-License-Identifier: MIT
// registry.h: what nvcc's constructors registered: fat binaries, kernels, variables.
//
//   Owns      one CUlibrary per fat binary that was used, from its first use until it is unregistered.
//   Threads   safe. A library that two threads load at once is unloaded once again by the later one.
//   Units     bytes.
//   Errors    cudaErrorInvalidDeviceFunction and cudaErrorInvalidSymbol for what was never registered; else as the driver answers. A
//             library that did not load is tried again at the next use.
//   Faults    makes driver calls: LibraryLoadData, LibraryGetKernel, LibraryGetGlobal, LibraryGetManaged, LibraryUnload,
//             KernelGetFunction.
//   Source    crt/host_runtime.h of the toolkit, which declares what its generated code calls.
#pragma once

#include "faults/cudart/arena.h"
#include "faults/cudart/process.h"

namespace cuaudit::cudart {

struct Function;
struct Variable;

struct Binary {
  const void* image;  // the fatbin behind the record that nvcc emits
  std::atomic<CUlibrary> library;
  Function* functions;
  Variable* variables;
  Binary* next;
};

struct Function {
  Binary* binary;
  const void* host;  // the stub's address: cudaLaunchKernel's func
  const char* name;
  std::atomic<CUkernel> kernel;
  Function* next;
};

struct Variable {
  Binary* binary;
  const void* host;
  const char* name;
  size_t bytes;
  void** managed;  // where generated code reads the address of a __managed__ variable; null for others
  Variable* next;
};

// Registration, from constructors. Null when there is no memory.
Binary* RegisterBinary(const void* wrapper) noexcept;
void RegisterFunction(Binary* binary, const void* host, const char* name) noexcept;
void RegisterVariable(Binary* binary, const void* host, const char* name, size_t bytes, void** managed) noexcept;
void UnregisterBinary(Binary* binary) noexcept;
bool AnyBinary() noexcept;

Function* FindFunction(const void* host) noexcept;
Variable* FindVariable(const void* host) noexcept;
// Back from a loaded kernel, or from its function in the current context, to the stub; null for one that is not registered.
const void* HostOf(DriverRef driver, CUkernel kernel, CUfunction function) noexcept;
// `token` came from __cudaGetKernel.
bool IsFunction(const void* token) noexcept;

// Load what is needed, once.
cudaError_t LibraryOf(DriverRef driver, Binary* binary, CUlibrary* library) noexcept;
cudaError_t KernelOf(DriverRef driver, Function* function, CUkernel* kernel) noexcept;
cudaError_t AddressOf(DriverRef driver, Variable* variable, CUdeviceptr* address, size_t* bytes) noexcept;
// Writes the addresses of the binary's __managed__ variables where generated code reads them.
cudaError_t InitialiseManaged(DriverRef driver, Binary* binary) noexcept;

}  // namespace cuaudit::cudart
