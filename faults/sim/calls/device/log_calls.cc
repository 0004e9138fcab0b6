// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"

// The simulator writes no log messages: callbacks are kept, never called, and dumps are empty. Flags are reserved, and nobody looks.
namespace cuaudit::sim {

#ifdef CUAUDIT_HAS_LogsRegisterCallback
CUresult api::LogsRegisterCallback(Call& call, CUlogsCallback function, void*, CUlogsCallbackHandle* out) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CallbackEntry* const entry = call.world.Make<CallbackEntry>(nullptr);
  if (entry == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (out != nullptr) *out = ToHandle<CUlogsCallbackHandle>(entry);
  return CUDA_SUCCESS;
}

CUresult api::LogsUnregisterCallback(Call& call, CUlogsCallbackHandle handle) {
  CallbackEntry* const entry = call.world.Find<CallbackEntry>(handle);
  if (entry == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.world.Destroy(entry);
  return CUDA_SUCCESS;
}

CUresult api::LogsCurrent(Call&, CUlogIterator* iterator, unsigned int) {
  if (iterator == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *iterator = 0;
  return CUDA_SUCCESS;
}

CUresult api::LogsDumpToMemory(Call&, CUlogIterator*, char* buffer, std::size_t* size, unsigned int) {
  if (buffer == nullptr || size == nullptr || *size == 0) return CUDA_ERROR_INVALID_VALUE;
  buffer[0] = '\0';
  *size = 0;
  return CUDA_SUCCESS;
}
#endif

#ifdef CUAUDIT_HAS_DeviceRegisterAsyncNotification
CUresult api::DeviceRegisterAsyncNotification(Call& call, CUdevice device, CUasyncCallback function, void*, CUasyncCallbackHandle* out) {
  if (function == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  CallbackEntry* const entry = call.world.Make<CallbackEntry>(nullptr);
  if (entry == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  entry->device = device;
  *out = ToHandle<CUasyncCallbackHandle>(entry);
  return CUDA_SUCCESS;
}

CUresult api::DeviceUnregisterAsyncNotification(Call& call, CUdevice device, CUasyncCallbackHandle handle) {
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  CallbackEntry* const entry = call.world.Find<CallbackEntry>(handle);
  if (entry == nullptr || entry->device != device) return CUDA_ERROR_INVALID_VALUE;
  call.world.Destroy(entry);
  return CUDA_SUCCESS;
}
#endif

}  // namespace cuaudit::sim
