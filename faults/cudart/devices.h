// SPDX-License-Identifier: MIT
// devices.h: the devices as the runtime numbers them, and the primary context of each.
//
//   Owns      at most one reference of each primary context, taken when a thread first needs it, given back by cudaDeviceReset or at exit.
//   Threads   safe; two threads that retain at once end with one reference.
//   Errors    cudaErrorNoDevice, cudaErrorInvalidDevice, or as the driver answers.
//   Faults    makes driver calls: DeviceGetCount, DeviceGet, CtxGetCurrent, CtxGetDevice, DevicePrimaryCtxRetain, CtxSetCurrent,
//             DevicePrimaryCtxReset, DevicePrimaryCtxRelease.
//   Source    CUDA Runtime API 13.0: cudaSetDevice initialises the primary context and makes it current; a context that the program
//             made current itself is used as it is.
#pragma once

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

inline constexpr int kMaxDevices = 64;

// Called once the driver is initialised; no effect when the devices are known.
cudaError_t FindDevices(DriverRef driver) noexcept;
int DeviceCount() noexcept;
CUdevice DeviceAt(int ordinal) noexcept;  // `ordinal` below DeviceCount()
int OrdinalOf(CUdevice device) noexcept;  // -1 for none

// Gives the thread a current context: the one it has, else the primary context of its device.
cudaError_t BindContext(DriverRef driver) noexcept;
// Makes `ordinal`'s primary context current, whatever was.
cudaError_t BindDevice(DriverRef driver, int ordinal) noexcept;
// Retains `ordinal`'s primary context unless that was done, and makes nothing current.
cudaError_t RetainDevice(DriverRef driver, int ordinal, CUcontext* context) noexcept;
// Resets the primary context of the thread's device. Every thread binds anew at its next call.
cudaError_t ResetDevice(DriverRef driver) noexcept;
bool Bound(const Thread& thread) noexcept;
bool EverReset(int ordinal) noexcept;
// At exit: gives back what was retained.
void ReleaseDevices(DriverRef driver) noexcept;

}  // namespace cuaudit::cudart
