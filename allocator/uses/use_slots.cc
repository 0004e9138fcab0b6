// SPDX-License-Identifier: MIT
// A stream's slots in blocks, under its lock.
#include "allocator/uses/use_slots.h"

#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

bool StreamRecord::Leave(UseSlots* slots, std::size_t i) noexcept {
  const Held held(lock_);
  if (slots->sequence[i].load(std::memory_order_relaxed) != 0) return false;
  slots->stream[i].store(nullptr, std::memory_order_relaxed);
  return true;
}

std::uint64_t StreamRecord::Vacate(UseSlots* slots, std::size_t i) noexcept {
  const Held held(lock_);
  slots->stream[i].store(nullptr, std::memory_order_relaxed);
  return slots->sequence[i].exchange(0, std::memory_order_relaxed);
}

void StreamRecord::Occupy(UseSlots* slots, std::size_t i, std::uint64_t sequence) noexcept {
  const Held held(lock_);
  slots->sequence[i].store(sequence, std::memory_order_relaxed);
  slots->stream[i].store(this, std::memory_order_release);
}

std::uint64_t StreamRecord::Claim(UseSlots* slots, std::size_t i) noexcept {
  const Held held(lock_);
  const std::uint64_t sequence = slots->sequence[i].load(std::memory_order_relaxed);
  slots->sequence[i].store(0, std::memory_order_relaxed);
  return sequence;
}

// The lock is held. Not, when it was used again since, or taken out.
void StreamRecord::Withdraw(const Recording& recording) noexcept {
  if (recording.slot == UseSlots::kCount) return;
  std::atomic<std::uint64_t>& noted = recording.slots->sequence[recording.slot];
  const bool is_ours = recording.slots->stream[recording.slot].load(std::memory_order_relaxed) == this;
  if (is_ours && noted.load(std::memory_order_relaxed) == recording.sequence) {
    noted.store(recording.before, std::memory_order_relaxed);
  } else {
    // A use that was noted since may fall back to this one: then the next recording ends it.
    Want(recording.sequence);
  }
}

}  // namespace cuaudit::alloc
