// SPDX-License-Identifier: MIT
// device.h: one device of an allocator: its context, its limit and what is reserved of it, its figures.
//
//   Owns      a reference to the primary context unless a context was given, until ReleaseContexts.
//   Threads   any thread; `releasing`, `settling` and `routes_lock` as lock_order.def says.
//   Units     bytes.
//   Faults    Open: DevicePrimaryCtxRetain, DeviceGetAttribute, MemGetAllocationGranularity, DeviceTotalMem. ReleaseContexts:
//             DevicePrimaryCtxRelease.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/lock.h"
#include "allocator/pool.h"
#include "allocator/tables/counters.h"
#include "allocator/tables/environment.h"
#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

struct DeviceConfig;
struct Pool;

// Under Device::routes_lock, but for `pool` and `route`, which never change.
struct Routed {
  Pool* pool = nullptr;
  Route route;
  std::uint64_t number = 0;  // in the order of their beginnings
  int asking = 0;            // calls of `applies` under way, with no lock held
  bool is_ending = false;    // nobody else asks it
};

struct Device {
  // False: the limit forbids so many bytes more.
  bool Reserve(std::size_t bytes) noexcept;
  void Unreserve(std::size_t bytes) noexcept { reserved.fetch_sub(bytes, std::memory_order_relaxed); }

  // So many more of them, and of their bytes, in the figures.
  void CountSegments(bool large, int count, std::int64_t bytes, bool is_oversize = false) noexcept;

  int index = 0;
  CUdevice ordinal = 0;
  CUcontext context = nullptr;
  bool retained = false;
  std::size_t total = 0;
  std::size_t granularity = 0;  // of physical handles; 0: no virtual memory management
  bool stream_writes = false;
  std::atomic<std::size_t> limit{0};
  std::atomic<std::size_t> reserved{0};  // granted or being asked for
  Totals totals;
  std::atomic<std::uint64_t> searches{0};  // with garbage_collection_threshold: how old free blocks are
  std::atomic<std::uint64_t> retries{0}, ooms{0}, syncs{0}, allocs{0}, frees{0}, fallbacks{0}, refused{0}, left{0}, moved{0},
      moved_bytes{0};
  // Held by whoever gives cached memory back, driver calls included: what is in its hands is in nobody's set, and who finds nothing to
  // release must not be told that the device is full meanwhile.
  Lock releasing{LockRank::Releasing};
  // Under it: how long pages may still be moved, as of then.
  std::chrono::steady_clock::duration moving_credit{0};
  std::chrono::steady_clock::time_point moving_credited{};
  // Held while the whole context is waited for, so that no capture that is announced before it begins is met by that.
  Lock settling{LockRank::Settling};
  Lock routes_lock;
  std::vector<std::unique_ptr<Routed>> routes;
  std::uint64_t routes_begun = 0;  // under routes_lock
  std::atomic<int> routed{0};
  Counters shared;  // of threads that have no cache; under totals.lock
};

// As far as is known, and of that device or of none of the allocator's.
inline bool InCapture(const StreamRecord* stream, const Device* device) noexcept {
  return stream->capture.load(std::memory_order_acquire) != 0 && (stream->device == device || stream->device == nullptr);
}

class Devices {
 public:
  explicit Devices(Environment& environment) noexcept : env_(environment) {}
  CUresult Open(const DeviceConfig* configs, int count) noexcept;
  CUresult ReleaseContexts() noexcept;  // the first error
  CUresult SetMemoryFraction(int device, double fraction) noexcept;

  Device* At(int device) const noexcept {  // nullptr: there is none
    return device >= 0 && static_cast<std::size_t>(device) < all_.size() ? all_[static_cast<std::size_t>(device)].get() : nullptr;
  }
  // For a call that names a device: also whether the allocator is usable.
  CUresult Find(int device, const char* call, Device** out) noexcept;
  std::size_t size() const noexcept { return all_.size(); }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }

 private:
  CUresult OpenDevice(const DeviceConfig& config, Device* device) noexcept;
  Environment& env_;
  std::vector<std::unique_ptr<Device>> all_;
};

}  // namespace cuaudit::alloc
