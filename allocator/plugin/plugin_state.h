// SPDX-License-Identifier: MIT
// plugin_state.h: what stands behind the C functions: settings, the process's driver, a backend for each device.
//
//   Owns      the backends and the history; one such state per process, never destroyed.
//   Threads   any; one lock around making a backend and around pools, none on the way to an existing one.
//   Errors    Backend answers null and Settings false; error() then says why, for the latest failure on this thread.
//   Faults    cuInit, cuDeviceGet, and what MakeBackend calls.
//   Source    ours.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "allocator/backends/driver_backend.h"
#include "allocator/observe/history.h"
#include "faults/driver/genuine_driver.h"

namespace cuaudit::alloc {

class PluginState {
 public:
  static constexpr int kMaxDevices = 64;

  static PluginState& Get() {
    PluginState* const state = only_.load(std::memory_order_acquire);
    return state != nullptr ? *state : MakeOnly();
  }

  // Reads the settings until they are right; false when they are wrong.
  bool IsReady() noexcept;
  // Makes it the first time; null with error() set.
  Backend* BackendFor(int device) noexcept {
    Backend* const backend = Existing(device);
    return backend != nullptr ? backend : MakeFor(device);
  }
  // Null when that device has none yet.
  Backend* Existing(int device) const noexcept {
    if (device < 0 || device >= kMaxDevices) return nullptr;
    return slots_[static_cast<std::size_t>(device)].backend.load(std::memory_order_acquire);
  }
  Allocator* Native(int device) const noexcept;
  // Which of the backends a pointer belongs to; null when none. `size` as Backend::FindBlock.
  Backend* Owner(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept;

  using PoolKey = std::pair<unsigned long long, unsigned long long>;
  CUresult BeginPool(int device, PoolKey key, std::function<bool(CUstream)> filter) noexcept;
  CUresult EndPool(int device, PoolKey key) noexcept;
  CUresult ReleasePool(int device, PoolKey key) noexcept;

  std::string Snapshot(const char* path) noexcept;  // empty when it was written
  std::string Account(int device, std::size_t bytes, CUresult result);

  static void SetError(std::string_view text) noexcept;
  static const char* Error() noexcept;

 private:
  using Filter = std::function<bool(CUstream)>;
  struct Pool {
    PoolId id;
    int uses = 0;
    std::unique_ptr<const Filter> filter;  // of the route that is begun: other threads ask it until that has ended
  };
  struct Slot {
    std::atomic<Backend*> backend{nullptr};  // an index into nothing: read without the lock
    std::unique_ptr<Backend> owned;
    Allocator* native = nullptr;
    std::map<PoolKey, std::unique_ptr<Pool>> pools;
  };

  PluginState() = default;
  static PluginState& MakeOnly();
  Backend* MakeFor(int device) noexcept;
  CUresult Make(int device);
  static bool Applies(void* filter, StreamRef stream) noexcept;

  static inline constinit std::atomic<PluginState*> only_{nullptr};

  std::mutex mutex_;
  bool has_settings_ = false;
  std::string settings_error_;
  Settings settings_;
  driver::GenuineDriver driver_;
  History history_;
  std::array<Slot, kMaxDevices> slots_;
  std::atomic<int> device_end_{0};  // no backend is at this index or behind it
};

}  // namespace cuaudit::alloc
