// SPDX-License-Identifier: MIT
// pool_table.h: the pools of one allocator, and the arenas that they have.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/blocks/capture.h"
#include "allocator/lock.h"
#include "allocator/pool.h"
#include "allocator/tables/arena.h"
#include "allocator/tables/device.h"
#include "allocator/tables/stream_table.h"

namespace cuaudit::alloc {

// Of pools that are or were. Never changed, and kept until the allocator is destroyed: who holds a pool's record may read its options while
// the record becomes another pool's.
struct KnownOptions {
  PoolOptions options;
  KnownOptions* next = nullptr;
};

// The pools of one allocator, and which of them a stream's allocations go to.
//
//   Owns      the records of pools and all options they ever had, kept until it is destroyed. A record without users and without memory
//             becomes another pool's.
//   Threads   any thread. Pools are added at the head and stay. `lock_` guards who uses a pool and what was captured from it; an arena's
//             lock is only tried under it. A device's routes are under its routes_lock. Filters are called with no lock held.
//   Errors    INVALID_VALUE, ILLEGAL_STATE, OUT_OF_MEMORY as allocator.h says.
//   Faults    makes no driver calls.
class PoolTable {
 public:
  PoolTable(Environment& environment, Devices& devices, StreamTable& streams) noexcept
      : env_(environment), devices_(devices), streams_(streams) {}
  ~PoolTable();
  CUresult CreatePool(const PoolOptions& options, PoolId* out) noexcept;
  CUresult ReleasePool(PoolId pool) noexcept;
  CUresult BeginAllocateToPool(int device, PoolId pool, const Route& route) noexcept;
  CUresult EndAllocateToPool(int device, PoolId pool) noexcept;

  Pool* First() const noexcept { return first_.load(std::memory_order_acquire); }  // private ones; then next
  Pool* Find(PoolId id) noexcept;
  Pool* RouteOf(Device* device, StreamRecord* stream) noexcept;
  // The captures of the streams that a route applies to are the route's: they end with it.
  void NoteCapture(Pool* pool, Capture* capture) noexcept;

  Pool shared;  // everybody's

 private:
  Pool* FindUsed(PoolId id) noexcept;
  const PoolOptions* Know(const PoolOptions& options) noexcept;
  CUresult AddRoute(Device* device, Pool* pool, const Route& route) noexcept;
  void DropRoute(Pool* pool) noexcept;
  bool IsAskingARoute() const noexcept;

  Environment& env_;
  Devices& devices_;
  StreamTable& streams_;
  std::atomic<Pool*> first_{nullptr};
  KnownOptions* known_options_ = nullptr;  // under lock_
  std::uint64_t next_ = 1;                 // under lock_
  Lock lock_{LockRank::Pools};
};

// The arenas of one allocator.
//
//   Owns      the arenas and the records of their segments; the memory behind those is given back before (Core::Close), or stays.
//   Threads   any thread. Arenas are added at the head and stay, so walking needs no lock.
//   Errors    Of answers nullptr when host memory ran out.
//   Faults    makes no driver calls.
class ArenaTable {
 public:
  explicit ArenaTable(ArenaEnvironment& environment) noexcept : env_(environment) {}
  ~ArenaTable();
  Arena* Of(Device* device, Pool* pool, StreamRecord* stream) noexcept;
  Arena* First() const noexcept { return first_.load(std::memory_order_acquire); }  // then next_all

 private:
  ArenaEnvironment& env_;
  std::atomic<Arena*> first_{nullptr};
  std::uint32_t count_ = 0;  // under lock_
  Lock lock_;                // one is made at a time
};

}  // namespace cuaudit::alloc
