// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/capture.h"
#include "allocator/lock.h"
#include "allocator/pool.h"

namespace cuaudit::alloc {

struct Arena;

// Of pools that are or were. Never changed, and kept until the allocator is destroyed: who holds a pool's record may read its options while
// the record becomes another pool's.
struct KnownOptions {
  PoolOptions options;
  KnownOptions* next = nullptr;
};

struct Pool {
  std::atomic<std::uint64_t> number{0};  // the second half of its identity
  std::atomic<const PoolOptions*> known{&kPlainOptions};
  std::atomic<int> users{1};   // from 0 only under Core::make_lock
  std::atomic<int> routes{0};  // under Core::make_lock
  std::atomic<Arena*> arenas{nullptr};
  Pool* next = nullptr;
  bool is_private = false;
  std::vector<Capture*> captures;  // that used its blocks while it was routed: references; under Core::make_lock

  PoolId id() const noexcept { return {0, number.load(std::memory_order_relaxed)}; }
  const PoolOptions& options() const noexcept { return *known.load(std::memory_order_acquire); }

  void ForgetCaptures() noexcept {
    for (Capture* const capture : captures) capture->Drop();
    captures.clear();
  }

  static constexpr PoolOptions kPlainOptions{};
};

}  // namespace cuaudit::alloc
