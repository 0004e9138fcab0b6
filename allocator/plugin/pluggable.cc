// SPDX-License-Identifier: MIT
#include "allocator/plugin/pluggable.h"

#include <new>
#include <stdexcept>
#include <string>

#include "allocator/observe/account.h"
#include "allocator/plugin/plugin_state.h"

using cuaudit::alloc::Backend;
using cuaudit::alloc::PluginState;

namespace {

CUdeviceptr Address(void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// What a function that cannot answer leaves for cuaudit_last_error.
[[gnu::cold]] void SetErrorOf(const Backend* backend) { PluginState::SetError(backend->LastErrorText()); }
inline int Tell(CUresult result, const Backend* backend) {
  if (result != CUDA_SUCCESS && backend != nullptr) [[unlikely]]
    SetErrorOf(backend);
  return static_cast<int>(result);
}

[[gnu::cold]] void SetAccount(int device, std::size_t size, CUresult result) {
  PluginState::SetError(PluginState::Get().Account(device, size, result));
}
[[noreturn, gnu::cold]] void Throw(const char* call) { throw std::runtime_error(call + (": " + std::string(PluginState::Error()))); }

// The words of a failure are left for cuaudit_last_error.
inline CUresult Allocate(std::size_t size, int device, CUstream stream, void** out) {
  Backend* const backend = PluginState::Get().BackendFor(device);
  if (backend == nullptr) [[unlikely]]
    return CUDA_ERROR_NOT_INITIALIZED;
  CUdeviceptr address = 0;
  const CUresult result = backend->Allocate(0, size, stream, &address);
  if (result != CUDA_SUCCESS) [[unlikely]]
    SetAccount(device, size, result);
  *out = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): a device address is both
  return result;
}

}  // namespace

void* cuaudit_malloc(ssize_t size, int device, CUstream stream) {
  void* block = nullptr;
  if (Allocate(static_cast<std::size_t>(size), device, stream, &block) != CUDA_SUCCESS) [[unlikely]]
    Throw("cuaudit_malloc");
  return block;
}

int cuaudit_allocate(std::size_t size, int device, CUstream stream, void** out) noexcept {
  if (out == nullptr) {
    PluginState::SetError("cuaudit_allocate: a place for the address expected");
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = nullptr;
  try {
    return Allocate(size, device, stream, out);
  } catch (const std::bad_alloc&) {
    PluginState::SetError("no host memory");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

void cuaudit_free(void* pointer, ssize_t, int device, CUstream) noexcept {
  Backend* const backend = PluginState::Get().Existing(device);
  if (backend != nullptr) Tell(backend->Free(Address(pointer)), backend);
}

void cuaudit_record_stream(void* pointer, CUstream stream) noexcept {
  CUdeviceptr base = 0;
  Backend* const backend = PluginState::Get().Owner(Address(pointer), &base, nullptr);
  if (backend != nullptr) Tell(backend->RecordStream(base, stream), backend);  // others' memory: as PyTorch, nothing
}

int cuaudit_record_use(void* pointer, CUstream stream) noexcept {
  if (pointer == nullptr) return CUDA_SUCCESS;
  CUdeviceptr base = 0;
  Backend* const backend = PluginState::Get().Owner(Address(pointer), &base, nullptr);
  if (backend == nullptr) {
    PluginState::SetError("cuaudit_record_use: the pointer is in no live block");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Tell(backend->RecordUse(base, stream), backend);
}

void cuaudit_init(int) {
  if (!PluginState::Get().IsReady()) Throw("cuaudit_init");
}

void cuaudit_reset() noexcept {
  for (int device = 0; device < PluginState::kMaxDevices; ++device) {
    Backend* const backend = PluginState::Get().Existing(device);
    if (backend != nullptr) Tell(backend->EmptyCache(), backend);
  }
}

void cuaudit_memory_fraction(double fraction, int device) noexcept {
  PluginState& state = PluginState::Get();
  if (state.BackendFor(device) == nullptr) return;
  cuaudit::alloc::Allocator* const native = state.Native(device);
  if (native != nullptr) Tell(native->SetMemoryFraction(0, fraction), native);
}

void* cuaudit_base_alloc(void* pointer, std::size_t* size) noexcept {
  CUdeviceptr base = 0;
  if (PluginState::Get().Owner(Address(pointer), &base, size) == nullptr) return nullptr;
  return reinterpret_cast<void*>(base);  // NOLINT(performance-no-int-to-ptr)
}

void cuaudit_begin_allocate_to_pool(int device, CuauditMempoolId pool, std::function<bool(CUstream)> filter) noexcept {
  Tell(PluginState::Get().BeginPool(device, pool, std::move(filter)), PluginState::Get().Existing(device));
}
void cuaudit_end_allocate_to_pool(int device, CuauditMempoolId pool) noexcept {
  Tell(PluginState::Get().EndPool(device, pool), PluginState::Get().Existing(device));
}
void cuaudit_release_pool(int device, CuauditMempoolId pool) noexcept {
  Tell(PluginState::Get().ReleasePool(device, pool), PluginState::Get().Existing(device));
}

int cuaudit_statistic(int device, const char* name, long long* value) noexcept {
  const Backend* const backend = PluginState::Get().Existing(device);
  if (backend == nullptr || name == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  try {
    cuaudit::alloc::Statistics statistics;
    backend->GetStatistics(0, &statistics);
    for (const auto& [listed, number] : cuaudit::alloc::ListStatistics(statistics)) {
      if (listed != name) continue;
      *value = number;
      return CUDA_SUCCESS;
    }
    PluginState::SetError(std::string("cuaudit_statistic: no counter is called ") + name);
    return CUDA_ERROR_INVALID_VALUE;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

int cuaudit_snapshot(const char* path) noexcept {
  if (path == nullptr) {
    PluginState::SetError("cuaudit_snapshot: a path expected");
    return CUDA_ERROR_UNKNOWN;
  }
  const std::string wrong = PluginState::Get().Snapshot(path);
  if (wrong.empty()) return CUDA_SUCCESS;
  PluginState::SetError(wrong);
  return CUDA_ERROR_UNKNOWN;
}

int cuaudit_check_settings() noexcept { return PluginState::Get().IsReady() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

const char* cuaudit_last_error() noexcept { return PluginState::Error(); }
