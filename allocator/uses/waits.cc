// SPDX-License-Identifier: MIT
// What a stream has waited for already, by itself or through a stream that it waited for.
#include <algorithm>

#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

bool StreamRecord::HasWaited(const StreamRecord* other, std::uint64_t sequence) noexcept {
  if (other == this || other->IsOver(sequence)) return true;
  const Held held(lock_);
  const Waited* const waited = WaitedFor(other);
  return waited != nullptr && waited->sequence >= sequence;
}

bool StreamRecord::Implies(std::uint64_t sequence, const StreamRecord* other, std::uint64_t theirs) noexcept {
  const Held held(lock_);
  const Waited* const waited = WaitedFor(other);
  return waited != nullptr && waited->sequence >= theirs && waited->since <= sequence;
}

StreamRecord::Waited* StreamRecord::WaitedFor(const StreamRecord* other) noexcept {
  const auto at = std::lower_bound(waited_.begin(), waited_.end(), other->index,
                                   [](const Waited& waited, std::uint32_t wanted) { return waited.other->index < wanted; });
  return at != waited_.end() && at->other == other ? &*at : nullptr;
}

// Without host memory it waits again another time.
void StreamRecord::NoteWaited(StreamRecord* other, std::uint64_t sequence, std::uint64_t stamp) noexcept {
  try {
    std::vector<Waited> theirs;
    {
      const Held held(other->lock_);
      theirs = other->waited_;
    }
    // What is known to be over need not be waited for: it is dropped, so that there is room for as many streams as have work left.
    const auto is_over = [](const Waited& waited) { return waited.other->IsOver(waited.sequence); };
    std::erase_if(theirs, [&](const Waited& waited) { return waited.other == this || waited.since > stamp || is_over(waited); });
    const Held held(lock_);
    const std::uint64_t since = begun.load(std::memory_order_relaxed) + 1;
    for (Waited& waited : theirs) waited.since = since;
    std::erase_if(waited_, is_over);
    waited_.reserve(waited_.size() + theirs.size() + 1);
    const auto note = [&](const Waited& now) {
      Waited* const before = WaitedFor(now.other);
      if (before != nullptr && before->sequence < now.sequence) *before = now;
      return before != nullptr;
    };
    const auto by_index = [](const Waited& a, const Waited& b) { return a.other->index < b.other->index; };
    std::erase_if(theirs, note);
    const auto middle = waited_.insert(waited_.end(), theirs.begin(), theirs.end());
    std::inplace_merge(waited_.begin(), middle, waited_.end(), by_index);
    const Waited direct{other, sequence, since};
    if (!note(direct)) waited_.insert(std::upper_bound(waited_.begin(), waited_.end(), direct, by_index), direct);
  } catch (...) {
  }
}

void StreamRecord::ForgetWaits() noexcept {
  const Held held(lock_);
  std::vector<Waited>().swap(waited_);
}

}  // namespace cuaudit::alloc
