// SPDX-License-Identifier: MIT
// Devices: which one a thread uses, what each is and can (properties, attributes, place on the bus, peers), the profiler, private tables.
#include <string.h>

#include "faults/cudart/calls.h"
#include "faults/cudart/descriptions.h"
#include "faults/cudart/process.h"

namespace cuaudit::cudart {
namespace {

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

cudaError_t GetDeviceCount(DriverRef, int* count) noexcept {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = DeviceCount();
  return cudaSuccess;
}

cudaError_t SetDevice(DriverRef driver, int device) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return BindDevice(driver, device);
}

// The list names the devices, in order, that a thread may get if it does not choose. The calling thread takes the first.
cudaError_t SetValidDevices(DriverRef, int* device_arr, int len) noexcept {
  if (len < 0 || (len > 0 && device_arr == nullptr)) return cudaErrorInvalidValue;
  for (int i = 0; i < len; ++i) {
    if (!IsDevice(device_arr[i])) return cudaErrorInvalidDevice;
  }
  if (len > 0 && This().generation == 0) This().device = device_arr[0];
  return cudaSuccess;
}

cudaError_t GetDevice(DriverRef, int* device) noexcept {
  if (device == nullptr) return cudaErrorInvalidValue;
  *device = This().device;
  return cudaSuccess;
}

cudaError_t SetDeviceFlags(DriverRef driver, unsigned int flags) noexcept {
  return From(driver.DevicePrimaryCtxSetFlags(DeviceAt(This().device), flags));
}

cudaError_t GetDeviceFlags(DriverRef driver, unsigned int* flags) noexcept {
  if (flags == nullptr) return cudaErrorInvalidValue;
  int active = 0;
  const CUresult result =
      Bound(This()) ? driver.CtxGetFlags(flags) : driver.DevicePrimaryCtxGetState(DeviceAt(This().device), flags, &active);
  // Host memory can always be mapped, and the flag says so until the device is reset.
  if (result == CUDA_SUCCESS && !EverReset(This().device)) *flags |= cudaDeviceMapHost;
  return From(result);
}

cudaError_t InitDevice(DriverRef driver, int device, unsigned int deviceFlags, unsigned int flags) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
    if (const CUresult result = driver.DevicePrimaryCtxSetFlags(DeviceAt(device), deviceFlags)) return From(result);
  }
  CUcontext context = nullptr;
  return RetainDevice(driver, device, &context);
}

cudaError_t DeviceReset(DriverRef driver) noexcept { return ResetDevice(driver); }

cudaError_t DeviceSynchronize(DriverRef driver) noexcept { return From(Older<driver::CallId::CtxSynchronize>(driver)); }

cudaError_t DeviceGetLimit(DriverRef driver, size_t* pValue, enum cudaLimit limit) noexcept {
  return From(driver.CtxGetLimit(pValue, static_cast<CUlimit>(limit)));
}

cudaError_t DeviceSetLimit(DriverRef driver, enum cudaLimit limit, size_t value) noexcept {
  return From(driver.CtxSetLimit(static_cast<CUlimit>(limit), value));
}

cudaError_t DeviceGetCacheConfig(DriverRef driver, enum cudaFuncCache* pCacheConfig) noexcept {
  if (pCacheConfig == nullptr) return cudaErrorInvalidValue;
  CUfunc_cache config = CU_FUNC_CACHE_PREFER_NONE;
  const CUresult result = driver.CtxGetCacheConfig(&config);
  if (result == CUDA_SUCCESS) *pCacheConfig = static_cast<cudaFuncCache>(config);
  return From(result);
}

cudaError_t DeviceSetCacheConfig(DriverRef driver, enum cudaFuncCache cacheConfig) noexcept {
  return From(driver.CtxSetCacheConfig(static_cast<CUfunc_cache>(cacheConfig)));
}

cudaError_t DeviceGetStreamPriorityRange(DriverRef driver, int* leastPriority, int* greatestPriority) noexcept {
  return From(driver.CtxGetStreamPriorityRange(leastPriority, greatestPriority));
}

cudaError_t GetDriverEntryPointByVersion(DriverRef driver, const char* symbol, void** funcPtr, unsigned int cudaVersion,
                                         unsigned long long flags, enum cudaDriverEntryPointQueryResult* driverStatus) noexcept {
  if (symbol == nullptr || funcPtr == nullptr) return cudaErrorInvalidValue;
  const bool for_thread = driver.table == LoadedDriver(true).table;
  if (flags == cudaEnableDefault && for_thread) flags = cudaEnablePerThreadDefaultStream;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = driver.GetProcAddress(symbol, funcPtr, static_cast<int>(cudaVersion), flags, &status);
  if (result == CUDA_SUCCESS && driverStatus != nullptr) *driverStatus = static_cast<cudaDriverEntryPointQueryResult>(status);
  return From(result);
}

cudaError_t GetDriverEntryPoint(DriverRef driver, const char* symbol, void** funcPtr, unsigned long long flags,
                                enum cudaDriverEntryPointQueryResult* driverStatus) noexcept {
  return GetDriverEntryPointByVersion(driver, symbol, funcPtr, static_cast<unsigned>(kRuntimeVersion), flags, driverStatus);
}

// Always fails: the export tables are private to NVIDIA's libraries and not documented.
cudaError_t GetExportTable(const void** ppExportTable, const cudaUUID_t*) noexcept {
  static std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed))
    Say("cudaGetExportTable: one of NVIDIA's libraries asks for a private table, which this runtime has not");
  if (ppExportTable != nullptr) *ppExportTable = nullptr;
  return cudaErrorInvalidValue;
}

cudaError_t ProfilerStart(DriverRef driver) noexcept { return From(driver.ProfilerStart()); }

cudaError_t ProfilerStop(DriverRef driver) noexcept { return From(driver.ProfilerStop()); }

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
