// SPDX-License-Identifier: MIT
#include "allocator/uses/stamps.h"

#include <algorithm>

#include "allocator/driver_scope.h"

namespace cuaudit::alloc {

bool Stamps::Reserve(std::size_t usual) noexcept {
  const std::size_t count = size();
  if (count == capacity_) {
    const std::size_t capacity = count == 0 ? 8 : 2 * count;
    Stamp* const first = static_cast<Stamp*>(std::malloc(capacity * sizeof(Stamp)));
    if (first == nullptr) return false;
    end_ = std::uninitialized_copy(first_, end_, first);
    std::free(first_);
    first_ = first;
    capacity_ = capacity;
  }
  room_end_ = first_ + std::min(capacity_, usual);
  return true;
}

Stamp* StreamRecord::FirstFrom(std::uint64_t sequence) noexcept {
  Stamp* const at = std::lower_bound(stamps_.begin(), stamps_.end(), sequence,
                                     [](const Stamp& stamp, std::uint64_t wanted) { return stamp.sequence < wanted; });
  return at == stamps_.end() ? nullptr : at;
}

Stamp* StreamRecord::At(std::uint64_t sequence) noexcept {
  Stamp* const stamp = FirstFrom(sequence);
  return stamp != nullptr && stamp->sequence == sequence ? stamp : nullptr;
}

bool StreamRecord::HasJustReturned(Stamp* stamp) noexcept {
  if (!stamp->returned && returned_[stamp->sequence % kReturning].load(std::memory_order_acquire) == stamp->sequence)
    stamp->returned = true;
  return stamp->returned;
}

void StreamRecord::Recycle(CUevent event) noexcept {
  if (event == nullptr) return;
  if (spare_count_ < kSpares) {
    spares_[spare_count_++] = event;
  } else {
    events->Give(event);
  }
}

// Gives up every other stamp that the one behind it stands for.
void StreamRecord::MakeRoom() noexcept {
  const std::size_t count = stamps_.size();
  if (count == 0) return;
  bool kept_last = false;
  Stamp* const last = stamps_.end() - 1;
  Stamp* end = stamps_.begin();
  for (Stamp* stamp = end; stamp != last; ++stamp) {
    Stamp& following = stamp[1];
    bool may_go = kept_last && following.settled >= stamp->sequence && HasReturned(stamp) && stamp->pins == 0 && HasReturned(&following);
    // What it wrote tells of the one before it from then on.
    if (may_go && word != nullptr) may_go = NoteValue(end - 1, *stamp);
    kept_last = !may_go;
    if (may_go) {
      Recycle(stamp->event);
    } else {
      *end++ = *stamp;
    }
  }
  *end++ = *last;
  stamps_.CutAt(end);
  const std::size_t kept = stamps_.size();
  shared.store(shared.load(std::memory_order_relaxed) + (count - kept), std::memory_order_relaxed);
}

bool StreamRecord::NoteValue(Stamp* earlier, const Stamp& gone) noexcept {
  if (gone.settled < earlier->sequence) return false;
  earlier->last_value = gone.last_value;
  return true;
}

void StreamRecord::NoteOver(Stamp* stamp) noexcept {
  stamp->over = true;
  for (Stamp& earlier : stamps_) {
    if (earlier.sequence > stamp->settled) break;
    earlier.over = true;
  }
}

void StreamRecord::Advance() noexcept {
  std::size_t known = 0;
  while (known < stamps_.size() && stamps_[known].over) ++known;
  std::uint64_t reached = over.load(std::memory_order_relaxed);
  if (known == stamps_.size()) {
    reached = begun.load(std::memory_order_relaxed);
  } else if (known != 0) {
    reached = std::max(reached, stamps_[known - 1].sequence);
  }
  over.store(reached, std::memory_order_release);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < stamps_.size(); ++i) {
    if (i < known && stamps_[i].pins == 0 && HasReturned(&stamps_[i])) {
      Recycle(stamps_[i].event);
    } else {
      stamps_[kept++] = stamps_[i];
    }
  }
  stamps_.CutAt(stamps_.begin() + kept);
}

// The lock is held.
CUresult StreamRecord::Enter(CUevent event, Recording* out) noexcept {
  if (stamps_.size() >= max_stamps) [[unlikely]] {
    if (word != nullptr) LoadWord();
    if (stamps_.size() >= max_stamps) MakeRoom();
  }
  const std::uint64_t last = begun.load(std::memory_order_relaxed);
  std::uint64_t settled = last;
  out->is_quiet = word == nullptr;
  // Mostly the last one is the only one that was not known to have returned, and it has.
  if (settled_ + 1 != last || returned_[last % kReturning].load(std::memory_order_acquire) != last) [[unlikely]]
    settled = Settled(last + 1, &out->is_quiet);
  if (!stamps_.Reserve(max_stamps)) return CUDA_ERROR_OUT_OF_MEMORY;
  stamps_.Add(last + 1, settled, event);
  if (word != nullptr) stamps_.end()[-1].value = stamps_.end()[-1].last_value = out->value = ++values_;
  settled_ = settled;
  begun.store(last + 1, std::memory_order_release);
  out->sequence = last + 1;
  out->event = event;
  return CUDA_SUCCESS;
}

// Up to where all recordings before that one have returned. `*is_quiet` false: one that has not has its place.
std::uint64_t StreamRecord::Settled(std::uint64_t sequence, bool* is_quiet) noexcept {
  std::uint64_t settled = sequence - 1;
  for (Stamp* stamp = stamps_.end(); stamp != stamps_.begin() && (--stamp)->sequence > settled_;) {
    if (HasReturned(stamp)) continue;
    settled = stamp->sequence - 1;
    if (stamp->sequence % kReturning == sequence % kReturning) *is_quiet = false;
  }
  return settled;
}

CUresult StreamRecord::Begin(driver::DriverRef driver, Recording* out, UseSlots* slots) noexcept {
  std::unique_lock<Lock> held(lock_);
  if (word == nullptr && spare_count_ == 0) [[unlikely]] {
    held.unlock();
    std::array<CUevent, kSpares / 4> taken;
    std::size_t count = events->TakeSome(taken.data(), taken.size());
    if (count == 0) {
      const CUresult result = events->Take(driver, taken.data());
      if (result != CUDA_SUCCESS) return result;
      count = 1;
    }
    held.lock();
    while (count != 0) Recycle(taken[--count]);
  }
  CUevent const event = word == nullptr ? spares_[--spare_count_] : nullptr;
  const CUresult result = Enter(event, out);
  if (result != CUDA_SUCCESS) [[unlikely]] {
    Recycle(event);
    return result;
  }
  if (slots == nullptr) return CUDA_SUCCESS;
  out->slots = slots;
  out->slot = slots->Find(this);
  if (out->slot == UseSlots::kCount) return CUDA_SUCCESS;
  std::atomic<std::uint64_t>& noted = slots->sequence[out->slot];
  out->before = noted.load(std::memory_order_relaxed);
  noted.store(out->sequence, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

// True when it overlapped with another recording and none is under way any more.
bool StreamRecord::Finish(const Recording& recording, bool is_recorded, bool is_over) noexcept {
  const Held held(lock_);
  Stamp* const stamp = At(recording.sequence);
  const bool overlapped = stamp->settled + 1 != recording.sequence || begun.load(std::memory_order_relaxed) != recording.sequence;
  if (is_recorded) {
    stamp->returned = true;
    if (is_over) {
      NoteOver(stamp);
      Advance();
    }
  } else {
    Withdraw(recording);
    Recycle(stamp->event);
    // Its write may have been done, over the one before it, and so tells of that; over others', and so another write must tell of those.
    if (word != nullptr && stamp != stamps_.begin()) (void)NoteValue(stamp - 1, *stamp);
    stamps_.CutAt(std::move(stamp + 1, stamps_.end(), stamp));
    // The next one has its number: else a debt that awaits it would count as paid.
    const std::uint64_t last = std::max(over.load(std::memory_order_relaxed), stamps_.size() == 0 ? 0 : stamps_.end()[-1].sequence);
    begun.store(last, std::memory_order_release);
    if (word != nullptr && overlapped) Want(last + 1);
    Advance();
  }
  return overlapped && std::all_of(stamps_.begin(), stamps_.end(), [this](Stamp& other) { return HasReturned(&other); });
}

CUresult StreamRecord::Send(driver::DriverRef driver, CUstream live, const Recording& recording) noexcept {
  const CUresult result = word == nullptr ? driver.EventRecord(recording.event, live) : WriteWord(driver, live, recording.value);
  if (result != CUDA_SUCCESS) return result;
  const bool repeat = Sent(recording);
  if (word == nullptr || !repeat) return CUDA_SUCCESS;
  // Writes of two threads may have reached the stream in the wrong order, so that the larger number is never seen: one more ends it.
  Recording last;
  {
    const Held held(lock_);
    if (Enter(nullptr, &last) != CUDA_SUCCESS) return CUDA_SUCCESS;
  }
  (void)Finish(last, WriteWord(driver, live, last.value) == CUDA_SUCCESS, false);
  return CUDA_SUCCESS;
}

bool StreamRecord::Sent(const Recording& recording) noexcept {
  if (!recording.is_quiet) return Finish(recording, true, false);
  Returned(recording.sequence);
  return false;
}

void StreamRecord::Cancel(const Recording& recording) noexcept { (void)Finish(recording, false, false); }

void StreamRecord::CancelQuick(std::uint64_t sequence, std::uint64_t before, UseSlots* slots) noexcept {
  Recording recording;
  recording.sequence = sequence;
  recording.slot = slots->Find(this) % UseSlots::kCount;  // where it has none any more, one that is not its own
  recording.slots = slots;
  recording.before = before;
  Cancel(recording);
}

CUresult StreamRecord::Record(driver::DriverRef driver, CUstream live, std::uint64_t* sequence) noexcept {
  Recording recording;
  const CUresult result = Begin(driver, &recording);
  if (result != CUDA_SUCCESS) return result;
  *sequence = recording.sequence;
  const CUresult sent = Send(driver, live, recording);
  if (sent != CUDA_SUCCESS) Cancel(recording);
  return sent;
}

StreamRecord::Pinned StreamRecord::Pin(Stamp* stamp) noexcept {
  ++stamp->pins;
  return {stamp->sequence, stamp->event};
}

void StreamRecord::Unpin(const Pinned& pinned, bool is_over) noexcept {
  Stamp* const stamp = At(pinned.sequence);
  --stamp->pins;
  if (is_over) NoteOver(stamp);
  if (stamp->over) Advance();
}

// Calls `visit(event)`, without the lock, for as few stamps as stand for all that is not over up to `sequence`. `*possible` false: there
// are recordings up to there that have not begun or not returned. `*newest` is the newest of them.
template <typename Visit>
CUresult StreamRecord::VisitStamps(std::uint64_t sequence, bool* possible, std::uint64_t* covered, std::uint64_t* newest,
                                   Visit visit) noexcept {
  *possible = true;
  std::unique_lock<Lock> held(lock_);
  *covered = *newest = sequence;
  if (IsOver(sequence)) return CUDA_SUCCESS;
  Stamp* stamp = FirstFrom(sequence);
  if (stamp == nullptr || !HasReturned(stamp)) {
    *possible = false;
    return CUDA_SUCCESS;
  }
  *covered = *newest = stamp->sequence;
  std::uint64_t limit = stamp->sequence;  // what lies from here on is dealt with
  std::uint64_t settled = 0;
  while (stamp != nullptr) {
    settled = std::max(settled, stamp->settled);
    limit = stamp->sequence;
    if (!stamp->over) {
      const Pinned pinned = Pin(stamp);
      held.unlock();
      bool is_over = false;
      const CUresult result = visit(pinned.event, &is_over);
      held.lock();
      Unpin(pinned, is_over);
      if (result != CUDA_SUCCESS) return result;
    }
    // The newest before it that none of those visited stands for.
    stamp = nullptr;
    for (Stamp& other : stamps_) {
      if (other.sequence >= limit) break;
      if (other.over || other.sequence <= settled) continue;
      if (!HasReturned(&other)) {
        if (other.sequence <= sequence) *possible = false;
        *covered = std::min(*covered, other.sequence - 1);
        continue;
      }
      stamp = &other;
    }
  }
  return CUDA_SUCCESS;
}

CUresult StreamRecord::Poll(driver::DriverRef driver, std::uint64_t sequence, bool* is_over) noexcept {
  *is_over = IsOver(sequence);
  if (*is_over) return CUDA_SUCCESS;
  if (word != nullptr) {
    const Held held(lock_);
    LoadWord();
    *is_over = IsOver(sequence);
    return CUDA_SUCCESS;
  }
  bool possible = false;
  std::uint64_t covered = 0;
  RelaxedCapture relaxed(driver);
  if (relaxed.result() != CUDA_SUCCESS) return relaxed.result();
  std::uint64_t newest = 0;
  CUresult result = VisitStamps(sequence, &possible, &covered, &newest, [&](CUevent event, bool* done) {
    counts->polls.fetch_add(1, std::memory_order_relaxed);
    const CUresult answer = driver.EventQuery(event);
    *done = answer == CUDA_SUCCESS;
    return answer;
  });
  if (result == CUDA_ERROR_NOT_READY) result = CUDA_SUCCESS;
  *is_over = IsOver(sequence);
  const CUresult left = relaxed.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

CUresult StreamRecord::PollUpTo(driver::DriverRef driver, std::uint64_t sequence) noexcept {
  bool is_over = false;
  CUresult result = Poll(driver, sequence, &is_over);
  if (is_over || word != nullptr) return result;
  while (result == CUDA_SUCCESS && over.load(std::memory_order_acquire) + 1 < sequence) {
    result = Poll(driver, over.load(std::memory_order_acquire) + 1, &is_over);
    if (!is_over) break;
  }
  return result;
}

CUresult StreamRecord::WaitOn(driver::DriverRef driver, std::uint64_t sequence, StreamRecord* waiter, CUstream live_waiter,
                              bool* possible) noexcept {
  *possible = true;
  if (waiter->HasWaited(this, sequence)) return CUDA_SUCCESS;
  if (word != nullptr) {
    *possible = false;
    return CUDA_SUCCESS;
  }
  std::uint64_t covered = 0;
  std::uint64_t newest = 0;
  const CUresult result = VisitStamps(sequence, possible, &covered, &newest, [&](CUevent event, bool*) {
    counts->waits.fetch_add(1, std::memory_order_relaxed);
    return driver.StreamWaitEvent(live_waiter, event, 0);
  });
  if (result == CUDA_SUCCESS && *possible) waiter->NoteWaited(this, covered, newest);
  return result;
}

CUresult StreamRecord::SynchronizeRecorded(driver::DriverRef driver, std::uint64_t sequence, bool* possible) noexcept {
  *possible = IsOver(sequence);
  if (*possible) return CUDA_SUCCESS;
  if (word != nullptr) {
    const Held held(lock_);
    LoadWord();
    *possible = IsOver(sequence);
    return CUDA_SUCCESS;
  }
  std::uint64_t covered = 0;
  std::uint64_t newest = 0;
  RelaxedCapture relaxed(driver);
  if (relaxed.result() != CUDA_SUCCESS) return relaxed.result();
  const CUresult result = VisitStamps(sequence, possible, &covered, &newest, [&](CUevent event, bool* is_over) {
    const CUresult answer = driver.EventSynchronize(event);
    *is_over = answer == CUDA_SUCCESS;
    return answer;
  });
  const CUresult left = relaxed.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

CUresult StreamRecord::Synchronize(driver::DriverRef driver, std::uint64_t sequence) noexcept {
  bool possible = false;
  const CUresult result = SynchronizeRecorded(driver, sequence, &possible);
  return result != CUDA_SUCCESS || possible ? result : SynchronizeAll(driver);
}

bool StreamRecord::IsRecorded(std::uint64_t sequence) noexcept {
  if (IsOver(sequence)) return true;
  const Held held(lock_);
  Stamp* const stamp = FirstFrom(sequence);
  return stamp != nullptr && HasReturned(stamp);
}

void StreamRecord::ReleaseEvents() noexcept {
  const Held held(lock_);
  for (Stamp& stamp : stamps_) stamp.over = true;
  Advance();
  events->Give(spares_.data(), spare_count_);
  spare_count_ = 0;
}

}  // namespace cuaudit::alloc
