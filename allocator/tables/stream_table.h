// SPDX-License-Identifier: MIT
// stream_table.h: the streams that an allocator has seen, which of them a handle means, and the words that they write.
#pragma once

#include "allocator/blocks/capture.h"
#include "allocator/driver_scope.h"
#include "allocator/tables/device.h"
#include "allocator/tables/environment.h"
#include "allocator/uses/event_pool.h"
#include "allocator/uses/stamps.h"

namespace cuaudit::alloc {

class PoolTable;

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

// Which stream a handle means, outside captures and in them, until it is retired.
//
//   Owns      the answer for the legacy stream of each primary context that the allocator retained, and with trust_stream_handles the
//             latest for each handle.
//   Threads   any thread.
//   Errors, Faults   as Allocator::Identify and Allocator::RetireStream.
class Identities {
 public:
  Identities(Environment& environment, Devices& devices, StreamTable& streams, PoolTable& pools) noexcept
      : env_(environment), devices_(devices), streams_(streams), pools_(pools) {}
  CUresult Identify(int device, CUstream stream, StreamRef* out) noexcept {
    StreamRecord* found = nullptr;
    const CUresult result = Name(device, stream, &found);
    *out = StreamRef(found);
    return result;
  }
  CUresult Name(int device, CUstream stream, StreamRecord** out) noexcept;  // the same; with an error `*out` stays as it is
  // The same where nothing is Known. The allocator is usable.
  CUresult NameAnew(Device* device, CUstream stream, StreamRecord** out) noexcept;
  // What Identify answers where the driver need not be asked; nullptr: it has to be.
  StreamRecord* Known(const Device* device, CUstream stream) noexcept {
    const std::atomic<StreamRecord*>* const memory = MemoryOf(device, stream);
    StreamRecord* const found = memory == nullptr ? nullptr : memory->load(std::memory_order_acquire);
    const bool is_it =
        found != nullptr && !found->retired.load(std::memory_order_relaxed) && (found->handle == stream || found->is_default);
    return is_it ? found : nullptr;
  }
  CUresult RetireStream(int device, CUstream stream) noexcept;

 private:
  // Where the answer for the handle is remembered; nullptr: nowhere. A primary context's legacy stream lives as long as it, and is never
  // captured; the allocator knows that of a context that it retained itself. In a green context the handle means a stream of its own, which
  // may be captured (contract question green_stream.standard_captured). A reset is not supported (allocator.h, "Contexts").
  std::atomic<StreamRecord*>* MemoryOf(const Device* device, CUstream stream) noexcept {
    const bool is_trusted = env_.options.trust_stream_handles;
    if (stream == nullptr || stream == CU_STREAM_LEGACY) return device->retained || is_trusted ? &legacy_[device->index] : nullptr;
    return is_trusted && stream != CU_STREAM_PER_THREAD ? &by_handle_[StreamTable::HandleBucket(stream)] : nullptr;
  }
  CUresult Ask(Device* device, CUstream stream, StreamRecord** out) noexcept;
  CUresult AskCaptured(Device* device, CUstream stream, CUstreamCaptureStatus* status, StreamRecord** out) noexcept;
  CUresult Meet(Device* device, CUstream stream, std::uint64_t id, StreamRecord** out) noexcept;
  CUresult AskInContext(Device* device, CUstream stream, StreamRecord** out) noexcept;
  CUresult IdentifyCaptured(Device* device, CUstream stream, std::uint64_t capture, StreamRecord** out) noexcept;
  Environment& env_;
  Devices& devices_;
  StreamTable& streams_;
  PoolTable& pools_;
  std::atomic<StreamRecord*> by_handle_[StreamTable::kBuckets] = {};
  std::atomic<StreamRecord*> legacy_[kMaxDevices] = {};  // the legacy stream of each device
};

}  // namespace cuaudit::alloc
