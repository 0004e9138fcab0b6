// SPDX-License-Identifier: MIT
#include "allocator/plugin/plugin_state.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "allocator/observe/account.h"
#include "allocator/observe/snapshot_pickle.h"
#include "allocator/plugin/process_driver.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {
namespace {

constexpr int kOnlyDevice = 0;  // each backend has one device, so that no other is woken up

thread_local std::string last_error;  // on the heap: a library that is loaded late has next to no thread storage of its own

CUresult DeviceOfCurrent(driver::DriverRef driver, CUdevice* out) noexcept {
#if CUDA_VERSION >= 13000
  return driver.CtxGetDevice(out, nullptr);
#else
  return driver.CtxGetDevice(out);
#endif
}

void Warn(void*, const char* text) noexcept { std::fprintf(stderr, "cuaudit_allocator: %s\n", text); }

}  // namespace

[[gnu::noinline]] PluginState& PluginState::MakeOnly() {
  static PluginState* const state = new PluginState();  // outlives every exit handler that may still free a tensor
  only_.store(state, std::memory_order_release);
  return *state;
}

void PluginState::SetError(std::string_view text) noexcept {
  try {
    last_error = text;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
}
const char* PluginState::Error() noexcept { return last_error.c_str(); }

bool PluginState::IsReady() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (!has_settings_) {
      const char* const text = std::getenv("CUAUDIT_ALLOC_CONF");
      settings_error_.clear();
      if (text != nullptr && !ParseSettings(text, &settings_, &settings_error_)) settings_error_ = "CUAUDIT_ALLOC_CONF: " + settings_error_;
      has_settings_ = settings_error_.empty();
    }
    if (!settings_error_.empty()) SetError(settings_error_);
    return settings_error_.empty();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

CUresult PluginState::Make(int device) {
  if (const char* const wrong = OpenProcessDriver(&driver_); wrong != nullptr) {
    SetError(wrong);
    return CUDA_ERROR_NO_DEVICE;
  }
  const driver::DriverRef driver = driver::Driver(&driver_);
  DeviceConfig config;
  CUresult result = driver.Init(0);
  if (result == CUDA_SUCCESS) result = driver.DeviceGet(&config.device, device);
  std::unique_ptr<Backend> backend;
  Allocator* native = nullptr;
  if (result == CUDA_SUCCESS) result = MakeBackend(settings_, driver, &config, 1, {.self = nullptr, .warn = Warn}, &backend, &native);
  if (result != CUDA_SUCCESS) {
    SetError("device " + std::to_string(device) + ": " + std::string(driver::ShortResultName(result)));
    return result;
  }
  if (native != nullptr && settings_.record_history != RecordHistory::Never) {
    if (history_.max_entries() == 0) {
      const StackLevel levels[] = {StackLevel::Never, StackLevel::Never, StackLevel::Alloc, StackLevel::All};
      result =
          history_.Start({.max_entries = settings_.history_entries, .stacks = levels[static_cast<std::size_t>(settings_.record_history)]});
      if (result != CUDA_SUCCESS) {
        SetError("no host memory for record_history_entries:" + std::to_string(settings_.history_entries));
        return result;
      }
    }
    native->SetTracer(history_.tracer());
  }
  Slot& slot = slots_[static_cast<std::size_t>(device)];
  slot.owned = std::move(backend);
  slot.native = native;
  slot.backend.store(slot.owned.get(), std::memory_order_release);
  if (device_end_.load(std::memory_order_relaxed) <= device) device_end_.store(device + 1, std::memory_order_release);
  return CUDA_SUCCESS;
}

Backend* PluginState::MakeFor(int device) noexcept {
  try {
    if (device < 0 || device >= kMaxDevices) {
      SetError("device " + std::to_string(device) + ": 0 to 63 expected");
      return nullptr;
    }
    if (!IsReady()) return nullptr;
    const std::lock_guard lock(mutex_);
    if (Existing(device) == nullptr && Make(device) != CUDA_SUCCESS) return nullptr;
    return Existing(device);
  } catch (const std::bad_alloc&) {
    SetError("no host memory");
    return nullptr;
  }
}

Allocator* PluginState::Native(int device) const noexcept {
  return Existing(device) == nullptr ? nullptr : slots_[static_cast<std::size_t>(device)].native;
}

Backend* PluginState::Owner(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept {
  const int end = device_end_.load(std::memory_order_acquire);
  for (int device = 0; device < end; ++device) {
    Backend* const backend = Existing(device);
    if (backend != nullptr && backend->FindBlock(address, base, size)) return backend;
  }
  return nullptr;
}

bool PluginState::Applies(void* filter, StreamRef stream) noexcept {
  const Filter& applies = *static_cast<const Filter*>(filter);
  return applies == nullptr || applies(stream.handle());
}

// PyTorch's pool begins to exist with the first begin, and each begin is one use of it.
CUresult PluginState::BeginPool(int device, PoolKey key, std::function<bool(CUstream)> filter) noexcept {
  if (BackendFor(device) == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  Allocator* const native = Native(device);
  if (native == nullptr) return CUDA_SUCCESS;  // the driver's own pools follow the capture by themselves
  const std::lock_guard lock(mutex_);
  try {
    std::unique_ptr<Pool>& pool = slots_[static_cast<std::size_t>(device)].pools[key];
    const bool is_new = pool == nullptr;
    if (is_new) pool = std::make_unique<Pool>();
    std::unique_ptr<Filter> asked = std::make_unique<Filter>(std::move(filter));
    CUresult result = is_new ? native->CreatePool({}, &pool->id) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
      result = native->BeginAllocateToPool(kOnlyDevice, pool->id, {.applies = Applies, .user = asked.get()});
      if (is_new) (void)native->ReleasePool(pool->id);  // its maker's use: the begin's remains, or none
    }
    if (result == CUDA_SUCCESS) {
      ++pool->uses;
      pool->filter = std::move(asked);  // the one before it is asked no more: else this begin would have been refused
    } else if (is_new) {
      slots_[static_cast<std::size_t>(device)].pools.erase(key);
    }
    return result;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

CUresult PluginState::EndPool(int device, PoolKey key) noexcept {
  Allocator* const native = Native(device);
  if (native == nullptr) return CUDA_SUCCESS;
  auto& pools = slots_[static_cast<std::size_t>(device)].pools;
  PoolId id;
  const Filter* ended = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pools.find(key);
    if (found == pools.end()) return CUDA_ERROR_INVALID_VALUE;
    id = found->second->id;
    ended = found->second->filter.get();
  }
  // Without the lock: this waits for whoever asks the filter, which may come here itself.
  const CUresult result = native->EndAllocateToPool(kOnlyDevice, id);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  const auto found = pools.find(key);
  if (found != pools.end() && found->second->filter.get() == ended) found->second->filter.reset();
  return result;
}

CUresult PluginState::ReleasePool(int device, PoolKey key) noexcept {
  Allocator* const native = Native(device);
  if (native == nullptr) return CUDA_SUCCESS;
  const std::lock_guard lock(mutex_);
  auto& pools = slots_[static_cast<std::size_t>(device)].pools;
  const auto found = pools.find(key);
  if (found == pools.end()) return CUDA_ERROR_INVALID_VALUE;
  // Refused as long as allocations are directed to the pool: then it and its filter stay, and it can be released again.
  const CUresult result = native->ReleasePool(found->second->id);
  if (result == CUDA_SUCCESS && --found->second->uses == 0) pools.erase(found);
  return result;
}

std::string PluginState::Account(int device, std::size_t bytes, CUresult result) {
  const Allocator* const native = Native(device);
  const Backend* const backend = Existing(device);
  Statistics statistics;
  if (backend != nullptr) backend->GetStatistics(kOnlyDevice, &statistics);
  if (native != nullptr && result == CUDA_ERROR_OUT_OF_MEMORY) {
    OutOfMemory account = native->LastOutOfMemory();
    account.device = device;
    return FormatOutOfMemory(account, statistics);
  }
  if (native == nullptr && backend != nullptr && result == CUDA_ERROR_OUT_OF_MEMORY) {
    OutOfMemory account;
    account.device = device;
    account.requested = bytes;
    account.driver_result = result;
    const std::string call = backend->LastErrorText();
    const driver::DriverRef driver = driver::Driver(&driver_);
    CUdevice current = -1;  // the caller's, as PyTorch sets it; another one's memory would mislead
    CUdevice wanted = -2;
    if (DeviceOfCurrent(driver, &current) != CUDA_SUCCESS || driver.DeviceGet(&wanted, device) != CUDA_SUCCESS || current != wanted ||
        driver.MemGetInfo(&account.device_free, &account.device_total) != CUDA_SUCCESS)
      account.device_free = account.device_total = 0;
    return FormatDriverOutOfMemory(account, statistics, call.c_str());
  }
  return "device " + std::to_string(device) + ", " + FormatBytes(bytes) + ": " + std::string(driver::ShortResultName(result)) + ": " +
         (backend == nullptr ? Error() : backend->LastErrorText());
}

std::string PluginState::Snapshot(const char* path) noexcept {
  try {
    alloc::Snapshot all;
    int count = 0;
    for (int device = 0; device < kMaxDevices; ++device) {
      const Backend* const backend = Existing(device);
      if (backend == nullptr) continue;
      count = device + 1;
      alloc::Snapshot one;
      if (const CUresult result = backend->TakeSnapshot(&one); result != CUDA_SUCCESS)
        return "the snapshot failed: " + std::string(backend->LastErrorText());
      for (SnapshotSegment& segment : one.segments) {
        segment.device = device;
        all.segments.push_back(std::move(segment));
      }
    }
    if (count == 0) return "nothing was allocated yet";
    SnapshotDocument document;
    document.snapshot = &all;
    document.history = history_.max_entries() == 0 ? nullptr : &history_;
    document.device_count = count;
    document.settings = SettingsForSnapshot(settings_);
    for (int device = 0; device < count; ++device) {
      if (Existing(device) == nullptr) continue;
      document.backend = Existing(device)->Name();
      document.precision = Existing(device)->Precision();
    }
    return SaveSnapshot(document, path);
  } catch (const std::bad_alloc&) {
    return "no host memory";  // short enough to need none
  }
}

}  // namespace cuaudit::alloc
