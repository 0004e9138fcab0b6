// SPDX-License-Identifier: MIT
// arena_table.h: the arenas of one allocator.
//
//   Owns      the arenas and the records of their segments; the memory behind those is given back before (Core::Close), or stays.
//   Threads   any thread. Arenas are added at the head and stay, so walking needs no lock.
//   Errors    Of answers nullptr when host memory ran out.
//   Faults    makes no driver calls.
#pragma once

#include "allocator/tables/arena.h"

namespace cuaudit::alloc {

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
