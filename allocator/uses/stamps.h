// SPDX-License-Identifier: MIT
// stamps.h: what a stream was given until when, and the slots of blocks in which that is noted.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/lock.h"
#include "allocator/uses/event_pool.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

struct StreamRecord;

// The uses of a live block by the streams that it is mostly used on, so that one more of them takes one lock, the stream's.
//
//   Owns      nothing. A slot stays its stream's from one life of the block to the next, and from one block of the record to another, until
//             a stream without one uses the block.
//   Threads   `sequence` of a slot is written under the lock of the slot's stream, and so is `stream` when it is taken from one; who gives
//             it to another edits the block. Whoever has the block to himself, and only he, takes the uses out (StreamRecord::Claim).
//   Units     as in use_set.h.
//   Errors    none. A call that is late, on a block that has been freed, leaves a use that the record's next block waits for: later than
//             needed, never earlier.
//   Faults    makes no driver calls.
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

struct Arena;
struct Device;

struct Stamp {
  // Made where it stands: what is written in parts and copied as a whole at once waits for the parts.
  Stamp(std::uint64_t the_sequence, std::uint64_t the_settled, CUevent the_event) noexcept
      : sequence(the_sequence), settled(the_settled), event(the_event) {}

  std::uint64_t sequence;
  std::uint64_t settled;
  CUevent event;
  // Completion::StreamWrites: what it writes to the word, never the same twice; and the last value that tells as much.
  std::uint64_t value = 0;
  std::uint64_t last_value = 0;
  std::uint16_t pins = 0;
  bool returned = false;
  bool over = false;
};

// Stamps in order. Room is asked for apart, so that what every recording passes has no code for a list that grows.
class Stamps {
 public:
  Stamps() = default;
  Stamps(const Stamps&) = delete;
  Stamps& operator=(const Stamps&) = delete;
  ~Stamps() { std::free(first_); }
  bool Reserve(std::size_t usual) noexcept;  // host memory for one more; false: there is none
  // There is that, and there are fewer than is usual.
  bool HasRoom() const noexcept { return end_ < room_end_; }
  [[gnu::always_inline]] void Add(std::uint64_t sequence, std::uint64_t settled, CUevent event) noexcept {
    std::construct_at(end_++, sequence, settled, event);
  }
  void CutAt(Stamp* end) noexcept { end_ = end; }
  Stamp* begin() noexcept { return first_; }
  Stamp* end() noexcept { return end_; }
  Stamp& operator[](std::size_t i) noexcept { return first_[i]; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - first_); }

 private:
  Stamp* first_ = nullptr;
  Stamp* end_ = nullptr;
  const Stamp* room_end_ = nullptr;
  std::size_t capacity_ = 0;
};

// What a record stands for: a stream, or what a handle means while it is captured, when the driver does not tell the stream's identity.
enum class Scope : std::uint8_t {
  Stream,
  Capture,  // of one capture
  Pool,     // of all captures whose allocations go to one private pool
};

// One recording under way.
struct Recording {
  std::uint64_t sequence = 0;
  std::uint64_t value = 0;
  CUevent event = nullptr;
  bool is_quiet = false;  // its return can be told without the lock
  // Where it is noted as a use, and what stood there before; kCount: in no slot.
  std::size_t slot = UseSlots::kCount;
  UseSlots* slots = nullptr;
  std::uint64_t before = 0;
};

struct StampCounts {
  std::atomic<std::uint64_t> waits{0};
  std::atomic<std::uint64_t> elided{0};
  std::atomic<std::uint64_t> polls{0};
};

// What one stream was given until when, and how much of it is known to be over.
//
//   Owns      the list of recordings that are not known to be over, each with an event of the stream's context (from EventPool).
//   Threads   any thread. The events are recorded, queried and waited for with no lock held; one in use is pinned, so that it is not
//             recorded anew.
//   Streams   StreamRecord is a stream's identity; `handle` is used only while the stream lives: in calls that name it, and at Free for
//             RecordStream.
//   Units     a sequence counts the recordings begun on a stream; a use (stream, n) is over when all recordings up to n are.
//   Errors    CUresult as the driver gave it; OUT_OF_MEMORY when host memory ran out. A recording that failed leaves no trace,
//             save that its write may still come: SynchronizeWord waits for that.
//   Faults    Record: EventCreate (in the pool), EventRecord or StreamWriteValue64. Poll: EventQuery. WaitOn: StreamWaitEvent.
//             Synchronize: EventSynchronize, CtxSynchronize.
//   Source    ours. CUDA 13.0: a wait takes the state of the event at the call, whatever is recorded later.
//
// Recordings of two threads on one stream may begin in one order and reach the stream in the other. So each stamp remembers the newest one
// that had returned before it began (`settled`): only those are known to be over when it is. Stamps are given up for newer ones when
// there are too many, the older for the next that has it settled: later than needed, never earlier.
struct StreamRecord {
  // Set once.
  std::uint64_t id = 0;
  CUstream handle = nullptr;  // as first seen
  CUcontext context = nullptr;
  Device* device = nullptr;  // null: of no device of the allocator
  std::uint32_t index = 0;   // dense, in order of first sight
  bool is_default = false;   // its handle means a stream of the current context
  Scope scope = Scope::Stream;
  std::uint64_t scope_id = 0;  // the capture's, or the pool's
  std::thread::id thread;      // own_thread: who made it
  bool own_thread = false;     // a thread's default stream: its handle means another stream on another thread
  EventPool* events = nullptr;
  StampCounts* counts = nullptr;
  std::uint32_t max_stamps = 64;
  // Completion::StreamWrites: where the stream writes, and what the host reads.
  CUdeviceptr word_address = 0;
  std::atomic<std::uint64_t>* word = nullptr;
  StreamRecord* next = nullptr;        // in the table's bucket
  StreamRecord* next_alike = nullptr;  // whose handle is in the same bucket
  StreamRecord* next_all = nullptr;

  std::atomic<Arena*> arena{nullptr};       // in the shared pool
  std::atomic<Arena*> fast_arena{nullptr};  // the same, for the path without locks, which no capture may take: null while it is in one
  std::atomic<bool> retired{false};
  std::atomic<std::uint64_t> wanted_stamp{0};  // debts on this stream await the recording of this number, the newest of them
  std::atomic<std::uint64_t> begun{0};         // recordings begun
  std::atomic<std::uint64_t> over{0};          // all recordings up to here are known to be over
  std::atomic<std::uint64_t> capture{0};       // the capture that it was last seen in
  // Scope::Capture: the stream that it has turned out to be, and a number of that one's that ends what this one is owed.
  std::atomic<StreamRecord*> same{nullptr};
  std::uint64_t same_sequence = 0;
  // Of another scope than Stream: its handle is of no use any more, having been retired as this stream; this one itself, if that is not
  // known to be the one it was in the capture.
  std::atomic<StreamRecord*> retired_as{nullptr};
  // Of this stream; written under the lock.
  std::atomic<std::uint64_t> shared{0};  // stamps that others stand for

  bool SharesScope(const StreamRecord& other) const noexcept { return scope == other.scope && scope_id == other.scope_id; }
  // The handle that stands for the stream on this thread; a thread's default stream has none.
  CUstream LiveHandle() const noexcept { return own_thread ? nullptr : handle; }
  // The number that a recording begun from now on has at least.
  std::uint64_t NextSequence() const noexcept {
    return retired.load(std::memory_order_acquire) ? begun.load(std::memory_order_acquire) : begun.load(std::memory_order_acquire) + 1;
  }
  // A debt that the recording of that number pays. Recordings under way that are older do not.
  void Want(std::uint64_t sequence) noexcept {
    std::uint64_t known = wanted_stamp.load(std::memory_order_relaxed);
    while (known < sequence && !wanted_stamp.compare_exchange_weak(known, sequence, std::memory_order_relaxed)) {
    }
  }
  // Of one that failed the number is begun again.
  bool IsStampDue() const noexcept { return wanted_stamp.load(std::memory_order_relaxed) > begun.load(std::memory_order_relaxed); }
  bool IsOver(std::uint64_t sequence) const noexcept { return over.load(std::memory_order_acquire) >= sequence; }
  // This stream has waited for `other` up to `sequence`, itself or by waiting for a stream that had, or it is over.
  bool HasWaited(const StreamRecord* other, std::uint64_t sequence) noexcept;
  // It has just been made to wait, for `other` up to `sequence` by its stamp `stamp`, and so for all that `other` had waited for before
  // that.
  void NoteWaited(StreamRecord* other, std::uint64_t sequence, std::uint64_t stamp) noexcept;
  // Who waits for this stream up to `sequence` need not wait for (other, theirs).
  bool Implies(std::uint64_t sequence, const StreamRecord* other, std::uint64_t theirs) noexcept;

  CUresult Record(driver::DriverRef driver, CUstream live, std::uint64_t* sequence) noexcept;
  // The same in its parts, so that a use can be noted under the number before the driver is called. Begin is followed by Send, and
  // that by Cancel if it failed, or by Cancel at once.
  // With `slots` it is noted in the stream's, if there is one, and Cancel takes that back.
  CUresult Begin(driver::DriverRef driver, Recording* out, UseSlots* slots = nullptr) noexcept;
  CUresult Send(driver::DriverRef driver, CUstream live, const Recording& recording) noexcept;
  // What is kept of one until it returns: mostly it does, and a whole Recording would be written for nothing.
  struct QuickRecording {
    std::uint64_t sequence;
    std::uint64_t before;
    CUevent event;
  };
  // Begin with `slot`, where all is as usual: the slot is the stream's, there is an event and room for a stamp, and all recordings have
  // returned. False: it is not, and nothing was done. It is sent by cuEventRecord, and that is followed by Returned or CancelQuick.
  [[gnu::always_inline]] bool BeginQuick(UseSlots* slots, std::size_t slot, QuickRecording* out) noexcept {
    if (word != nullptr) [[unlikely]]
      return false;
    const Held held(lock_);
    const std::uint64_t last = begun.load(std::memory_order_relaxed);
    if (settled_ + 1 != last || returned_[last % kReturning].load(std::memory_order_acquire) != last) [[unlikely]]
      return false;
    if (spare_count_ == 0 || !stamps_.HasRoom() || slots->stream[slot].load(std::memory_order_relaxed) != this) [[unlikely]]
      return false;
    CUevent const event = spares_[--spare_count_];
    stamps_.Add(last + 1, last, event);
    settled_ = last;
    begun.store(last + 1, std::memory_order_release);
    std::atomic<std::uint64_t>& noted = slots->sequence[slot];
    *out = {last + 1, noted.load(std::memory_order_relaxed), event};
    noted.store(last + 1, std::memory_order_relaxed);
    return true;
  }
  // Of a quiet recording that was sent.
  void Returned(std::uint64_t sequence) noexcept { returned_[sequence % kReturning].store(sequence, std::memory_order_release); }
  // Of a recording that has reached the stream. True: overlapping ones may have reached it in another order, and all have returned.
  bool Sent(const Recording& recording) noexcept;
  void Cancel(const Recording& recording) noexcept;
  void CancelQuick(std::uint64_t sequence, std::uint64_t before, UseSlots* slots) noexcept;
  // Slot `i` is this stream's and not in use: from then on it is nobody's. The block is being edited.
  bool Leave(UseSlots* slots, std::size_t i) noexcept;
  // The same also when it is in use: what it stands at is in the caller's hands.
  std::uint64_t Vacate(UseSlots* slots, std::size_t i) noexcept;
  // Slot `i`, nobody's, is this stream's and stands at `sequence`. The block is being edited.
  void Occupy(UseSlots* slots, std::size_t i, std::uint64_t sequence) noexcept;
  // What slot `i`, this stream's, stands at; it is not in use any more. 0: it was not.
  std::uint64_t Claim(UseSlots* slots, std::size_t i) noexcept;
  // `*is_over` as far as one look tells.
  CUresult Poll(driver::DriverRef driver, std::uint64_t sequence, bool* is_over) noexcept;
  // As much of what lies up to `sequence` as is over: the newest first, which often tells of all, then from the oldest on.
  CUresult PollUpTo(driver::DriverRef driver, std::uint64_t sequence) noexcept;
  // Makes `waiter` wait for all up to `sequence`. `*possible` false: that was not recorded yet.
  CUresult WaitOn(driver::DriverRef driver, std::uint64_t sequence, StreamRecord* waiter, CUstream live_waiter, bool* possible) noexcept;
  // Waits until all up to `sequence` is over, for the whole context where the recordings do not tell of all of it.
  CUresult Synchronize(driver::DriverRef driver, std::uint64_t sequence) noexcept;
  // Waits for the recordings alone. `*possible` false: one of them was not recorded yet, or has not returned; then waiting for the whole
  // context tells.
  CUresult SynchronizeRecorded(driver::DriverRef driver, std::uint64_t sequence, bool* possible) noexcept;
  CUresult SynchronizeAll(driver::DriverRef driver) noexcept;  // the whole context, and so all that it was given until now
  // Until nothing is still to be written to the word, by recordings that failed either.
  CUresult SynchronizeWord(driver::DriverRef driver) noexcept;
  bool IsRecorded(std::uint64_t sequence) noexcept;
  void ForgetWaits() noexcept;    // nothing more comes on this stream
  void ReleaseEvents() noexcept;  // back to the pool; the stamps count as over

 private:
  struct Pinned {
    std::uint64_t sequence = 0;
    CUevent event = nullptr;
  };
  struct Waited {
    StreamRecord* other = nullptr;
    std::uint64_t sequence = 0;  // the other's, up to which it was waited for
    std::uint64_t since = 0;     // this stream's stamps from here on came after that wait
  };
  Stamp* At(std::uint64_t sequence) noexcept;
  Waited* WaitedFor(const StreamRecord* other) noexcept;
  Stamp* FirstFrom(std::uint64_t sequence) noexcept;
  bool HasReturned(Stamp* stamp) noexcept { return stamp->sequence <= settled_ || HasJustReturned(stamp); }
  bool HasJustReturned(Stamp* stamp) noexcept;
  void Recycle(CUevent event) noexcept;
  void MakeRoom() noexcept;
  // `gone` is given up: what it wrote stands for `earlier`, the one before it. False: it need not.
  static bool NoteValue(Stamp* earlier, const Stamp& gone) noexcept;
  void NoteOver(Stamp* stamp) noexcept;
  void Advance() noexcept;
  void LoadWord() noexcept;
  CUresult Enter(CUevent event, Recording* out) noexcept;
  std::uint64_t Settled(std::uint64_t sequence, bool* is_quiet) noexcept;
  void Withdraw(const Recording& recording) noexcept;
  bool Finish(const Recording& recording, bool recorded, bool is_over) noexcept;
  CUresult WriteWord(driver::DriverRef driver, CUstream live, std::uint64_t value) noexcept;
  Pinned Pin(Stamp* stamp) noexcept;
  void Unpin(const Pinned& pinned, bool is_over) noexcept;
  template <typename Visit>
  CUresult VisitStamps(std::uint64_t sequence, bool* possible, std::uint64_t* covered, std::uint64_t* newest, Visit visit) noexcept;

  static constexpr std::size_t kReturning = 8;
  static constexpr std::size_t kSpares = 32;

  // Where recordings tell that they have returned: the sequence. Those that find the place of an earlier one taken use the lock.
  std::array<std::atomic<std::uint64_t>, kReturning> returned_{};
  Lock lock_{LockRank::Stream};
  // Guarded by lock_:
  Stamps stamps_;                         // by sequence, and by value
  std::uint64_t values_ = 0;              // given out, also to recordings that failed: a write may have been done all the same
  std::uint64_t failed_writes_ = 0;       // to the word
  std::uint64_t failed_writes_over_ = 0;  // so many of them will not come any more
  std::uint64_t settled_ = 0;             // all recordings up to here have returned
  std::size_t spare_count_ = 0;
  std::array<CUevent, kSpares> spares_{};  // so that streams do not meet at the pool
  std::vector<Waited> waited_;             // by the other's index
};

}  // namespace cuaudit::alloc
