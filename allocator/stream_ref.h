// SPDX-License-Identifier: MIT
// stream_ref.h: a stream as the allocator knows it: by an identity that is never given out again, unlike a CUstream.
//
//   Owns      nothing. Valid as long as its allocator; copied freely.
//   Threads   immutable.
//   Streams   made by Allocator::Identify from a live stream. Whoever passes one to Allocate promises that the stream still lives then, and
//             that a capture of it was announced (allocator.h).
//             The legacy default stream, and each thread's per-thread one, are streams of a context like others.
//   Faults    makes no driver calls.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace cuaudit::alloc {

struct StreamRecord;

class StreamRef {
 public:
  StreamRef() = default;
  explicit StreamRef(StreamRecord* record) noexcept : record_(record) {}
  explicit operator bool() const noexcept { return record_ != nullptr; }
  bool operator==(const StreamRef&) const = default;
  StreamRecord* record() const noexcept { return record_; }
  std::uint64_t id() const noexcept;  // as cuStreamGetId; of a captured stream a number of the allocator, with the highest bit set
  CUstream handle() const noexcept;   // as it was when the stream was first seen
  int device() const noexcept;        // index in the allocator's list; -1 for a stream of no device of the allocator

 private:
  StreamRecord* record_ = nullptr;
};

}  // namespace cuaudit::alloc
