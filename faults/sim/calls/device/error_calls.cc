// SPDX-License-Identifier: MIT
// Names of errors, the log of refused calls, and notifications of a device.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
namespace {

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
#define CUAUDIT_ERROR_TEXT(code, name, text) {code, #name, text},
#include "faults/sim/calls/device/error_texts.def"
#undef CUAUDIT_ERROR_TEXT
};

const ErrorText* FindError(CUresult code) {
  for (const ErrorText& row : kErrors) {
    if (row.code == static_cast<int>(code)) return &row;
  }
  return nullptr;
}

}  // namespace

CUresult api::GetErrorName(Call&, CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = FindError(error);
  *text = row == nullptr ? nullptr : row->name;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult api::GetErrorString(Call&, CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = FindError(error);
  *text = row == nullptr ? nullptr : row->text;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Calls that their models refuse are logged. Flags are reserved and not checked. Notifications of a device are never sent.

#ifdef CUAUDIT_HAS_LogsRegisterCallback
CUresult api::LogsRegisterCallback(Call& call, CUlogsCallback function, void* data, CUlogsCallbackHandle* out) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CallbackEntry* const entry = call.world.Make<CallbackEntry>(nullptr);
  if (entry == nullptr || !call.world.listeners.Push(call.world.arena, entry)) {
    if (entry != nullptr) call.world.Destroy(entry);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  entry->function = reinterpret_cast<void (*)()>(function);
  entry->data = data;
  if (out != nullptr) *out = ToHandle<CUlogsCallbackHandle>(entry);
  return CUDA_SUCCESS;
}

CUresult api::LogsUnregisterCallback(Call& call, CUlogsCallbackHandle handle) {
  CallbackEntry* const entry = call.world.Find<CallbackEntry>(handle);
  if (entry == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.world.listeners.EraseValue(entry);
  call.world.Destroy(entry);
  return CUDA_SUCCESS;
}

CUresult api::LogsCurrent(Call& call, CUlogIterator* iterator, unsigned int) {
  if (iterator == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *iterator = static_cast<CUlogIterator>(call.world.refused);
  return CUDA_SUCCESS;
}

// The newest lines that fit.
CUresult api::LogsDumpToMemory(Call& call, CUlogIterator* iterator, char* buffer, std::size_t* size, unsigned int) {
  if (buffer == nullptr || size == nullptr || *size == 0) return CUDA_ERROR_INVALID_VALUE;
  const World& world = call.world;
  char line[kLongestLine];
  std::uint64_t first = world.refused;
  const std::uint64_t asked = iterator == nullptr ? 0 : *iterator;
  for (std::size_t room = *size - 1; first > asked && world.refused - first < kRefusals; --first) {
    const std::size_t length = WriteRefusal(world.refusals[(first - 1) % kRefusals], line) + 1;
    if (length > room) break;
    room -= length;
  }
  std::size_t at = 0;
  for (; first < world.refused; ++first) {
    const std::size_t length = WriteRefusal(world.refusals[first % kRefusals], line);
    std::memcpy(buffer + at, line, length);
    at += length;
    buffer[at++] = '\n';
  }
  buffer[at] = '\0';
  *size = at;
  if (iterator != nullptr) *iterator = static_cast<CUlogIterator>(world.refused);
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
  CallbackEntry* const entry = call.Follow<CallbackEntry>(handle);
  if (entry == nullptr || entry->device != device) return CUDA_ERROR_INVALID_VALUE;
  call.world.Destroy(entry);
  return CUDA_SUCCESS;
}
#endif

}  // namespace cuaudit::sim
