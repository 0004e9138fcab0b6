// SPDX-License-Identifier: MIT
// use_slots.h: the uses of a live block by the streams that it is mostly used on, so that one more of them takes one lock, the stream's.
//
//   Owns      nothing. A slot stays its stream's from one life of the block to the next, and from one block of the record to another, until
//             a stream without one uses the block.
//   Threads   `sequence` of a slot is written under the lock of the slot's stream, and so is `stream` when it is taken from one; who gives
//             it to another edits the block. Whoever has the block to himself, and only he, takes the uses out (StreamRecord::Claim).
//   Units     as in use_set.h.
//   Errors    none. A call that is late, on a block that has been freed, leaves a use that the record's next block waits for: later than
//             needed, never earlier.
//   Faults    makes no driver calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuaudit::alloc {

struct StreamRecord;

struct alignas(64) UseSlots {
  static constexpr std::size_t kCount = 4;

  std::array<std::atomic<StreamRecord*>, kCount> stream{};
  std::array<std::atomic<std::uint64_t>, kCount> sequence{};  // 0: not used since it was taken out

  // kCount: none is the stream's. Without its lock only a guess.
  std::size_t Find(const StreamRecord* wanted) const noexcept {
    std::size_t i = 0;
    while (i < kCount && stream[i].load(std::memory_order_acquire) != wanted) ++i;
    return i;
  }
};

}  // namespace cuaudit::alloc
