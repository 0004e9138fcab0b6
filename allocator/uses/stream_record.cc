// SPDX-License-Identifier: MIT
// What a stream knows beside its stamps: which streams it has waited for, what its word tells, and its slots in blocks.
#include <algorithm>

#include "allocator/driver_scope.h"
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

// Completion::StreamWrites: what a stream's word tells, and when nothing writes to it any more.

void StreamRecord::LoadWord() noexcept {
  counts->polls.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t seen = word->load(std::memory_order_acquire);
  Stamp* const after =
      std::upper_bound(stamps_.begin(), stamps_.end(), seen, [](std::uint64_t value, const Stamp& stamp) { return value < stamp.value; });
  if (after == stamps_.begin() || seen > after[-1].last_value) return;
  NoteOver(after - 1);
  Advance();
}

// One that failed may have been done all the same: the word may be written to for as long as the stream has work.
CUresult StreamRecord::WriteWord(driver::DriverRef driver, CUstream live, std::uint64_t value) noexcept {
  const CUresult result = driver.StreamWriteValue64(live, word_address, value, 0);
  if (result == CUDA_SUCCESS) return result;
  const Held held(lock_);
  ++failed_writes_;
  return result;
}

CUresult StreamRecord::SynchronizeWord(driver::DriverRef driver) noexcept {
  if (word == nullptr) return CUDA_SUCCESS;
  {
    const Held held(lock_);
    LoadWord();
    if (failed_writes_ == failed_writes_over_ && IsOver(begun.load(std::memory_order_relaxed))) return CUDA_SUCCESS;
  }
  return SynchronizeAll(driver);
}

// Where nothing was recorded behind it: all that the context was given until now, as a stamp that is over at once.
CUresult StreamRecord::SynchronizeAll(driver::DriverRef driver) noexcept {
  Recording now;
  CUresult result = CUDA_SUCCESS;
  std::uint64_t failed_writes = 0;
  {
    const Held held(lock_);
    failed_writes = failed_writes_;
    result = Enter(nullptr, &now);
  }
  if (result != CUDA_SUCCESS) return result;
  CurrentContext current(driver, context);
  result = current.result();
  if (result == CUDA_SUCCESS) result = SynchronizeCurrent(driver, context);
  (void)Finish(now, result == CUDA_SUCCESS, true);
  if (result == CUDA_SUCCESS) {
    const Held held(lock_);
    failed_writes_over_ = std::max(failed_writes_over_, failed_writes);
  }
  return result != CUDA_SUCCESS ? result : current.Leave();
}

// A stream's slots in blocks, under its lock.

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
