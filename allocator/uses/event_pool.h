// SPDX-License-Identifier: MIT
// event_pool.h: events of one context, without timing, taken and given back.
//
//   Owns      the events that nobody has taken.
//   Threads   any thread. Events are created with no lock held.
//   Errors    CUresult as the driver gave it; OUT_OF_MEMORY when host memory ran out. Give never fails: room for an event is made before
//             it is created.
//   Faults    Take: CtxGetCurrent, CtxPushCurrent, EventCreate, CtxPopCurrent, EventDestroy. DestroyAll: EventDestroy.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/lock.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

class EventPool {
 public:
  explicit EventPool(CUcontext context) noexcept : context_(context) {}
  CUcontext context() const noexcept { return context_; }
  CUresult Take(driver::DriverRef driver, CUevent* out) noexcept;
  // As many as there are, up to `wanted`, at `out`; how many. Makes none.
  std::size_t TakeSome(CUevent* out, std::size_t wanted) noexcept;
  void Give(CUevent event) noexcept { Give(&event, 1); }
  void Give(const CUevent* events, std::size_t count) noexcept;
  // The first error, and how many calls failed. No event is destroyed twice: one that is gone would crash the process, or be another's.
  CUresult DestroyAll(driver::DriverRef driver, std::uint64_t* refused) noexcept;
  std::uint64_t created() const noexcept { return created_.load(std::memory_order_relaxed); }
  std::uint64_t live() const noexcept { return live_.load(std::memory_order_relaxed); }

  EventPool* next = nullptr;

 private:
  const CUcontext context_;
  Lock lock_{LockRank::Events};
  std::vector<CUevent> free_;
  std::size_t made_ = 0;  // under lock_: events, and those being created
  std::atomic<std::uint64_t> created_{0};
  std::atomic<std::uint64_t> live_{0};
};

// One pool for each context, kept until this is destroyed; the events are given back before.
class EventPools {
 public:
  ~EventPools();
  EventPool* Of(CUcontext context) noexcept;  // nullptr: no host memory
  EventPool* First() const noexcept { return first_.load(std::memory_order_acquire); }

 private:
  std::atomic<EventPool*> first_{nullptr};
  Lock lock_;
};

}  // namespace cuaudit::alloc
