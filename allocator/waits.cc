// SPDX-License-Identifier: MIT
// What a stream has waited for already, by itself or through a stream that it waited for.
#include <algorithm>

#include "allocator/stamps.h"

namespace cuaudit::alloc {

bool StreamRecord::HasWaited(const StreamRecord* other, std::uint64_t sequence) noexcept {
  if (other == this || other->IsOver(sequence)) return true;
  const Held held(lock_);
  return other->index < waited_.size() && waited_[other->index].sequence >= sequence;
}

bool StreamRecord::Implies(std::uint64_t sequence, const StreamRecord* other, std::uint64_t theirs) noexcept {
  const Held held(lock_);
  if (other->index >= waited_.size()) return false;
  const Waited& waited = waited_[other->index];
  return waited.sequence >= theirs && waited.since <= sequence;
}

// Without host memory it waits again another time.
void StreamRecord::NoteWaited(StreamRecord* other, std::uint64_t sequence, std::uint64_t stamp) noexcept {
  try {
    std::vector<Waited> theirs;
    {
      const Held held(other->lock_);
      theirs = other->waited_;
    }
    const Held held(lock_);
    waited_.resize(std::max({waited_.size(), theirs.size(), std::size_t{other->index} + 1}));
    const std::uint64_t since = begun.load(std::memory_order_relaxed) + 1;
    const auto note = [&](std::size_t of, std::uint64_t up_to) {
      if (waited_[of].sequence < up_to) waited_[of] = {up_to, since};
    };
    note(other->index, sequence);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      if (i != index && theirs[i].since <= stamp) note(i, theirs[i].sequence);
    }
  } catch (...) {
  }
}

}  // namespace cuaudit::alloc
