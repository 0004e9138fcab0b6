// SPDX-License-Identifier: MIT
// Libraries that a program loads itself, and what is in them.
#include "faults/cudart/calls.h"
#include "faults/cudart/kernels.h"
#include "faults/cudart/twins.h"

namespace cuaudit::cudart {
namespace {

cudaError_t OfSymbol(CUresult result) noexcept { return result == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound : FromDriver(result); }

}  // namespace

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

}  // namespace cuaudit::cudart
