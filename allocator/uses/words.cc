// SPDX-License-Identifier: MIT
// Completion::StreamWrites: what a stream's word tells, and when nothing writes to it any more.
#include <algorithm>
#include <iterator>

#include "allocator/driver_scope.h"
#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

void StreamRecord::LoadWord() noexcept {
  counts->polls.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t seen = word->load(std::memory_order_acquire);
  const auto after =
      std::upper_bound(stamps_.begin(), stamps_.end(), seen, [](std::uint64_t value, const Stamp& stamp) { return value < stamp.value; });
  if (after == stamps_.begin() || seen > std::prev(after)->last_value) return;
  NoteOver(&*std::prev(after));
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

}  // namespace cuaudit::alloc
