// SPDX-License-Identifier: MIT
#include "faults/cudart/calls.h"
#include "faults/cudart/devices.h"

namespace cuaudit::cudart {

cudaError_t GetDeviceCount(DriverRef, int* count) noexcept {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = DeviceCount();
  return cudaSuccess;
}

cudaError_t SetDevice(DriverRef driver, int device) noexcept {
  if (device < 0 || device >= DeviceCount()) return cudaErrorInvalidDevice;
  return BindDevice(driver, device);
}

// The list names the devices, in order, that a thread may get if it does not choose. The calling thread takes the first.
cudaError_t SetValidDevices(DriverRef, int* device_arr, int len) noexcept {
  if (len < 0 || (len > 0 && device_arr == nullptr)) return cudaErrorInvalidValue;
  for (int i = 0; i < len; ++i) {
    if (device_arr[i] < 0 || device_arr[i] >= DeviceCount()) return cudaErrorInvalidDevice;
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
  if (device < 0 || device >= DeviceCount()) return cudaErrorInvalidDevice;
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

}  // namespace cuaudit::cudart
