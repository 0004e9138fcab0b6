// SPDX-License-Identifier: MIT
// devices.h: the devices in the runtime's numbering, and the primary context of each.
//
//   Owns      at most one reference to each primary context. It is taken when a thread first needs the context and released by
//             cudaDeviceReset or at exit.
//   Threads   safe. If two threads retain one context at the same time, one reference remains.
//   Errors    cudaErrorNoDevice, cudaErrorInvalidDevice, or the driver's error.
//   Faults    calls the driver: DeviceGetCount, DeviceGet, CtxGetCurrent, CtxGetDevice, DevicePrimaryCtxRetain, CtxSetCurrent,
//             DevicePrimaryCtxReset, DevicePrimaryCtxRelease.
//   Source    CUDA Runtime API 13.0, Device Management and Interactions with the CUDA Driver API: cudaSetDevice initialises the primary
//             context and makes it current; a context that the program made current itself is used unchanged.
#pragma once

#include <span>

#include "faults/cudart/process.h"

namespace cuaudit::cudart {

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
