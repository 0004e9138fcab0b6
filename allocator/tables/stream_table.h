// SPDX-License-Identifier: MIT
// stream_table.h: the streams that an allocator has seen, and the words that they write.
#pragma once

#include "allocator/blocks/capture.h"
#include "allocator/driver_scope.h"
#include "allocator/tables/device.h"
#include "allocator/tables/environment.h"
#include "allocator/uses/event_pool.h"
#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

// Mapped host memory that streams write their sequence numbers to, with Completion::StreamWrites.
//
//   Owns      its pages, until Free gave them back.
//   Threads   Make: any thread. Free: when nobody else is in a call, and no stream writes any more.
//   Errors    CUresult as the driver gave it; OUT_OF_MEMORY when host memory ran out.
//   Faults    Make: MemHostAlloc, MemHostGetDevicePointer. Free: PointerGetAttribute, MemFreeHost.
class WordPages {
 public:
  explicit WordPages(Environment& environment) noexcept : env_(environment) {}
  ~WordPages();
  CUresult Make(StreamRecord* stream) noexcept;  // a cache line that the stream writes to and the host reads
  CUresult Free() noexcept;                      // the first error; what it could not give back is for another try
  bool empty() const noexcept { return pages_ == nullptr; }

 private:
  struct Page {
    Page* next = nullptr;
    void* host = nullptr;
    CUdeviceptr device = 0;
    std::size_t used = 0;
    Tenure tenure;
  };
  Environment& env_;
  Lock lock_;
  Page* pages_ = nullptr;  // under lock_
};

bool IsDefaultStream(CUstream stream) noexcept;

// The streams that an allocator has seen, and which captures they take part in.
//
//   Owns      the records of streams, kept until it is destroyed; the events and words that they record with; the table of captures.
//   Threads   any thread. Records are added at the heads of lists and stay, so walking needs no lock. `lock_` is taken to add one, and
//             where a stream's way into the fast path opens or closes. No driver call is made with it held.
//   Streams   a handle is used only in the calls that name it.
//   Errors    CUresult as the driver gave it; OUT_OF_MEMORY when host memory ran out.
//   Faults    Make: those of WordPages::Make. LookAt: those of Captures.
class StreamTable {
 public:
  StreamTable(Environment& environment, const Devices& devices) noexcept : words(environment), env_(environment), devices_(devices) {}
  ~StreamTable();

  StreamRecord* First() const noexcept { return first_.load(std::memory_order_acquire); }  // then next_all
  StreamRecord* Find(std::uint64_t id) const noexcept {
    StreamRecord* found = bucket_[id % kBuckets].load(std::memory_order_acquire);
    while (found != nullptr && found->id != id) found = found->next;
    return found;
  }
  CUresult Make(std::uint64_t id, CUstream stream, CUcontext context, StreamRecord** out, Scope scope = Scope::Stream,
                std::uint64_t scope_id = 0) noexcept;
  // What the handle is in captures of that scope.
  StreamRecord* FindCaptured(CUstream handle, CUcontext context, Scope scope, std::uint64_t scope_id) noexcept;
  CUresult MakeCaptured(CUstream stream, CUcontext context, Scope scope, std::uint64_t scope_id, StreamRecord** out) noexcept;
  void NoteRetired(StreamRecord* record, CUstream handle) noexcept;

  // The stream's capture now; what it was in before is over if that is another.
  CUresult LookAt(StreamRecord* stream, CUstream live, CaptureView* out) noexcept;
  // The stream is in that capture: what it is outside goes to the driver from now on, until it is seen there; and other captures that its
  // handle took part in are over.
  void NoteCaptured(CUstream handle, CUcontext context, std::uint64_t capture) noexcept;
  // The stream was seen outside: the captures that its handle took part in are over. If it is a stream that was known before them, the
  // handle was its all the time, and so were they: its next recording ends what it is owed from before them.
  void EndCapturesOf(CUstream handle, CUcontext context, StreamRecord* seen) noexcept;
  void EndCapture(std::uint64_t capture) noexcept;  // for each stream that was in it
  std::uint64_t captures_noted() const noexcept { return captures_noted_.load(std::memory_order_acquire); }
  // The stream was in no capture, asked after `noted` was read.
  void EnterFastPath(StreamRecord* stream, Arena* arena, std::uint64_t noted) noexcept;
  std::uint64_t records_visited() const noexcept { return records_visited_.load(); }  // for their handle

  static constexpr std::size_t kBuckets = 1024;
  static std::size_t HandleBucket(CUstream stream) noexcept {
    return (reinterpret_cast<std::uintptr_t>(stream) * 0x9E3779B97F4A7C15U >> 40) % kBuckets;
  }

  EventPools events;
  WordPages words;
  Captures captures;

 private:
  template <typename IsIt>
  StreamRecord* FirstWithHandle(CUstream handle, IsIt is_it) noexcept;

  Environment& env_;
  const Devices& devices_;
  std::atomic<StreamRecord*> first_{nullptr};
  std::uint32_t count_ = 0;                       // under lock_
  std::atomic<std::uint64_t> captures_noted_{0};  // how often a stream was seen in a capture; under lock_
  std::atomic<std::uint64_t> records_visited_{0};
  std::atomic<StreamRecord*> bucket_[kBuckets] = {};       // by identity
  std::atomic<StreamRecord*> with_handle_[kBuckets] = {};  // by handle
  Lock lock_{LockRank::Streams};
};

}  // namespace cuaudit::alloc
