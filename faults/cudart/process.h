// SPDX-License-Identifier: MIT
// process.h: what every runtime call needs: the driver, the thread's state, and the code that runs before and after the call.
//
//   Owns      the dlopen reference to libcuda.so.1, until the process ends; one thread-local Thread.
//   Threads   safe. The first call that needs the driver opens and initialises it. If that fails, the next call tries again.
//   Errors    every result except cudaSuccess and cudaErrorNotReady becomes the thread's last error. After the driver has shut down, calls
//             return cudaErrorCudartUnloading.
//   Faults    calls the driver, so a sweep can fail these calls: Init, DriverGetVersion, DeviceGetCount, DeviceGet.
//   Source    CUDA Runtime API 13.0, Error Handling and Interactions with the CUDA Driver API.
//
// Nothing here has a constructor or a destructor: nvcc's registration may run before any constructor of this library, and programs call the
// runtime from exit handlers.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <span>

#include "faults/driver/driver_ref.h"

namespace cuaudit::cudart {

using driver::DriverRef;

struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// Launch configurations are kept on a stack: evaluating the arguments of a kernel may launch another kernel.
inline constexpr unsigned kConfigurations = 6;

struct Thread {
  cudaError_t last_error;
  int device;           // selected by cudaSetDevice
  unsigned generation;  // that device's reset count plus one when this thread bound a context; 0: none bound
  unsigned depth;
  CallConfiguration configuration[kConfigurations];
};

Thread& This() noexcept;

// 13000 or 12040. Each of the two shared libraries defines its own value.
extern const int kRuntimeVersion;

enum class Need { driver, context };

struct Access {
  cudaError_t error;
  DriverRef driver;
};

// Calls an older version of an entry point than the headers select, for drivers that lack the newer one. The argument types must be exactly
// those of the entry point.
template <driver::CallId id, typename... P>
CUresult Older(DriverRef driver, P... arguments) noexcept {
  return reinterpret_cast<CUresult (*)(void*, P...)>(driver.table->entry[Index(id)])(driver.self, arguments...);
}

// Prepares what a call needs. `per_thread`: stream 0, and calls without a stream, use the per-thread default stream; the DriverRef then
// calls the driver's _ptsz and _ptds entry points.
Access Enter(Need need, bool per_thread) noexcept;

// The driver without initialising it. The table is null when libcuda.so.1 cannot be opened.
DriverRef LoadedDriver(bool per_thread) noexcept;

// The driver if it is already initialised, else a null table. For code at exit, which must not start the driver.
DriverRef RunningDriver() noexcept;

// Tells cuaudit, if it is present, that the runtime and not the program makes the releases that follow.
void NoteExit() noexcept;

// Call this after cudaErrorDeviceUninitialized. True: the thread's context was gone and a new one is bound, so the call may be tried again.
bool Rebind() noexcept;

// Stores `error` as the thread's last error and returns it.
cudaError_t Record(cudaError_t error) noexcept;

cudaError_t FromDriver(CUresult result) noexcept;

// Prints one line to stderr at the first call of each such function. Records and returns cudaErrorNotSupported.
cudaError_t NotSupported(const char* function, std::atomic<bool>* said) noexcept;

// Writes "cuaudit: libcudart: <text>" to stderr.
void Say(const char* text) noexcept;

// The devices in the runtime's numbering, and the primary context of each.
//
//   Owns      at most one reference to each primary context. It is taken when a thread first needs the context and released by
//             cudaDeviceReset or at exit.
//   Threads   safe. If two threads retain one context at the same time, one reference remains.
//   Errors    cudaErrorNoDevice, cudaErrorInvalidDevice, or the driver's error.
//   Faults    calls the driver: DeviceGetCount, DeviceGet, CtxGetCurrent, CtxGetDevice, DevicePrimaryCtxRetain, CtxSetCurrent,
//             DevicePrimaryCtxReset, DevicePrimaryCtxRelease.
//   Source    CUDA Runtime API 13.0, Device Management and Interactions with the CUDA Driver API: cudaSetDevice initialises the primary
//             context and makes it current; a context that the program made current itself is used unchanged.

inline constexpr int kMaxDevices = 64;

// Call this after the driver is initialised. It does nothing when the devices are already known.
cudaError_t FindDevices(DriverRef driver) noexcept;
int DeviceCount() noexcept;
inline bool IsDevice(int ordinal) noexcept { return ordinal >= 0 && ordinal < DeviceCount(); }
CUdevice DeviceAt(int ordinal) noexcept;  // requires IsDevice(ordinal)
int OrdinalOf(CUdevice device) noexcept;  // -1: not a device of this process

// Ensures that the thread has a current context: its present one, or else the primary context of its device.
cudaError_t BindContext(DriverRef driver) noexcept;
// Makes the primary context of `ordinal` current, whatever was current before.
cudaError_t BindDevice(DriverRef driver, int ordinal) noexcept;
// Retains the primary context of `ordinal` unless that was done already. The current context stays as it is.
cudaError_t RetainDevice(DriverRef driver, int ordinal, CUcontext* context) noexcept;
// Resets the primary context of the thread's device. Each thread binds it again at its next call.
cudaError_t ResetDevice(DriverRef driver) noexcept;
bool Bound(const Thread& thread) noexcept;
bool EverReset(int ordinal) noexcept;
// At exit: releases every retained primary context.
void ReleaseDevices(DriverRef driver) noexcept;

// Fills a cudaDeviceProp of any version from the driver's attributes.
//
//   Errors    those of the driver.
//   Faults    calls the driver: DeviceGetName, DeviceGetUuid, DeviceTotalMem, DeviceGetAttribute.
//   Source    CUDA Runtime API 13.0 and 12.4: the fields up to totalGlobalMem have the same offsets in both.

struct Property {
  unsigned short offset;
  bool wide;  // the field is a size_t, else an int
  CUdevice_attribute attribute;
};

// The caller zeroes `properties`.
cudaError_t ReadProperties(DriverRef driver, CUdevice device, std::span<const Property> fields, void* properties) noexcept;

}  // namespace cuaudit::cudart
