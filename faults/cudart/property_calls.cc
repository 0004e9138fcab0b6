// SPDX-License-Identifier: MIT
// What a device is and can: properties, attributes, its place on the bus, its peers.
#include <string.h>

#include "faults/cudart/calls.h"
#include "faults/cudart/devices.h"
#include "faults/cudart/properties.h"
#include "faults/cudart/twins.h"

namespace cuaudit::cudart {
namespace {

bool IsDevice(int device) noexcept { return device >= 0 && device < DeviceCount(); }

constexpr Property kProperties[] = {
#define CUDART_PROPERTY(field, attribute)                                                                                    \
  {static_cast<unsigned short>(__builtin_offsetof(cudaDeviceProp, field)), sizeof(cudaDeviceProp{}.field) == sizeof(size_t), \
   CU_DEVICE_ATTRIBUTE_##attribute},
#define CUDART_PROPERTY_13 CUDART_PROPERTY
#include "faults/cudart/device_properties.def"
#undef CUDART_PROPERTY
#undef CUDART_PROPERTY_13
};

cudaError_t Describe(DriverRef driver, CUdevice device, cudaDeviceProp* properties) noexcept {
  *properties = {};
  return ReadProperties(driver, device, kProperties, properties);
}

}  // namespace

cudaError_t ReadProperties(DriverRef driver, CUdevice device, std::span<const Property> fields, void* properties) noexcept {
  cudaDeviceProp* const common = static_cast<cudaDeviceProp*>(properties);
  static_assert(sizeof(common->uuid) == sizeof(CUuuid));
  if (const CUresult result = driver.DeviceGetName(common->name, sizeof(common->name), device)) return From(result);
  if (const CUresult result = driver.DeviceGetUuid(reinterpret_cast<CUuuid*>(&common->uuid), device)) return From(result);
  if (const CUresult result = driver.DeviceTotalMem(&common->totalGlobalMem, device)) return From(result);
  for (const Property& property : fields) {
    int value = 0;
    if (const CUresult result = driver.DeviceGetAttribute(&value, property.attribute, device)) return From(result);
    char* const field = static_cast<char*>(properties) + property.offset;
    if (property.wide) {
      const size_t wide = static_cast<size_t>(value);
      memcpy(field, &wide, sizeof(wide));
    } else {
      memcpy(field, &value, sizeof(value));
    }
  }
  return cudaSuccess;
}

cudaError_t GetDeviceProperties(DriverRef driver, struct cudaDeviceProp* prop, int device) noexcept {
  if (prop == nullptr) return cudaErrorInvalidValue;
  return IsDevice(device) ? Describe(driver, DeviceAt(device), prop) : cudaErrorInvalidDevice;
}

cudaError_t DeviceGetAttribute(DriverRef driver, int* value, enum cudaDeviceAttr attr, int device) noexcept {
  return IsDevice(device) ? From(driver.DeviceGetAttribute(value, As(attr), DeviceAt(device))) : cudaErrorInvalidDevice;
}

// The device with the most of the wanted features; among equals the one with the lowest number.
cudaError_t ChooseDevice(DriverRef driver, int* device, const struct cudaDeviceProp* prop) noexcept {
  if (device == nullptr || prop == nullptr) return cudaErrorInvalidValue;
  int best = 0;
  int most = -1;
  for (int i = 0; i < DeviceCount(); ++i) {
    cudaDeviceProp properties;
    if (const cudaError_t error = Describe(driver, DeviceAt(i), &properties)) return error;
    int met = 0;
    met += prop->name[0] != 0 && strncmp(prop->name, properties.name, sizeof(prop->name)) == 0 ? 1 : 0;
    met += properties.major * 10 + properties.minor >= prop->major * 10 + prop->minor ? 1 : 0;
    met += properties.totalGlobalMem >= prop->totalGlobalMem ? 1 : 0;
    met += properties.multiProcessorCount >= prop->multiProcessorCount ? 1 : 0;
    if (met > most) {
      most = met;
      best = i;
    }
  }
  *device = best;
  return cudaSuccess;
}

cudaError_t DeviceGetPCIBusId(DriverRef driver, char* pciBusId, int len, int device) noexcept {
  return IsDevice(device) ? From(driver.DeviceGetPCIBusId(pciBusId, len, DeviceAt(device))) : cudaErrorInvalidDevice;
}

cudaError_t DeviceGetByPCIBusId(DriverRef driver, int* device, const char* pciBusId) noexcept {
  if (device == nullptr) return cudaErrorInvalidValue;
  CUdevice found = 0;
  const CUresult result = driver.DeviceGetByPCIBusId(&found, pciBusId);
  if (result == CUDA_SUCCESS) *device = OrdinalOf(found);
  return From(result);
}

cudaError_t DeviceGetP2PAttribute(DriverRef driver, int* value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice) noexcept {
  if (!IsDevice(srcDevice) || !IsDevice(dstDevice)) return cudaErrorInvalidDevice;
  return From(driver.DeviceGetP2PAttribute(value, As(attr), DeviceAt(srcDevice), DeviceAt(dstDevice)));
}

cudaError_t DeviceGetHostAtomicCapabilities(DriverRef driver, unsigned int* capabilities, const enum cudaAtomicOperation* operations,
                                            unsigned int count, int device) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return From(driver.DeviceGetHostAtomicCapabilities(capabilities, As(operations), count, DeviceAt(device)));
}

cudaError_t DeviceGetP2PAtomicCapabilities(DriverRef driver, unsigned int* capabilities, const enum cudaAtomicOperation* operations,
                                           unsigned int count, int srcDevice, int dstDevice) noexcept {
  if (!IsDevice(srcDevice) || !IsDevice(dstDevice)) return cudaErrorInvalidDevice;
  return From(driver.DeviceGetP2PAtomicCapabilities(capabilities, As(operations), count, DeviceAt(srcDevice), DeviceAt(dstDevice)));
}

cudaError_t DeviceCanAccessPeer(DriverRef driver, int* canAccessPeer, int device, int peerDevice) noexcept {
  if (!IsDevice(device) || !IsDevice(peerDevice)) return cudaErrorInvalidDevice;
  return From(driver.DeviceCanAccessPeer(canAccessPeer, DeviceAt(device), DeviceAt(peerDevice)));
}

cudaError_t DeviceEnablePeerAccess(DriverRef driver, int peerDevice, unsigned int flags) noexcept {
  if (!IsDevice(peerDevice)) return cudaErrorInvalidDevice;
  CUcontext peer = nullptr;
  if (const cudaError_t error = RetainDevice(driver, peerDevice, &peer)) return error;
  return From(driver.CtxEnablePeerAccess(peer, flags));
}

cudaError_t DeviceDisablePeerAccess(DriverRef driver, int peerDevice) noexcept {
  if (!IsDevice(peerDevice)) return cudaErrorInvalidDevice;
  CUcontext peer = nullptr;
  if (const cudaError_t error = RetainDevice(driver, peerDevice, &peer)) return error;
  return From(driver.CtxDisablePeerAccess(peer));
}

cudaError_t DeviceFlushGPUDirectRDMAWrites(DriverRef driver, enum cudaFlushGPUDirectRDMAWritesTarget target,
                                           enum cudaFlushGPUDirectRDMAWritesScope scope) noexcept {
  return From(driver.FlushGPUDirectRDMAWrites(As(target), As(scope)));
}

cudaError_t CtxResetPersistingL2Cache(DriverRef driver) noexcept { return From(driver.CtxResetPersistingL2Cache()); }

// The callback's argument structure has the same layout under both names.
cudaError_t DeviceRegisterAsyncNotification(DriverRef driver, int device, cudaAsyncCallback callbackFunc, void* userData,
                                            cudaAsyncCallbackHandle_t* callback) noexcept {
  if (callbackFunc == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  static_assert(sizeof(cudaAsyncNotificationInfo_t) == sizeof(CUasyncNotificationInfo));
  return From(driver.DeviceRegisterAsyncNotification(DeviceAt(device),
                                                     reinterpret_cast<CUasyncCallback>(reinterpret_cast<void*>(callbackFunc)), userData,
                                                     reinterpret_cast<CUasyncCallbackHandle*>(callback)));
}

cudaError_t DeviceUnregisterAsyncNotification(DriverRef driver, int device, cudaAsyncCallbackHandle_t callback) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return From(driver.DeviceUnregisterAsyncNotification(DeviceAt(device), reinterpret_cast<CUasyncCallbackHandle>(callback)));
}

}  // namespace cuaudit::cudart
