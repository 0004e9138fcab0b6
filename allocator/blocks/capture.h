// SPDX-License-Identifier: MIT
// capture.h: uses of a block by work that was captured, not run: whether the capture is over, and whether a graph orders the uses before a
// stream.
//
//   Owns      one record per capture that used a block: kept while the capture may go on, and while a block or a pool refers to it.
//   Threads   Captures: any thread. A block's captured uses: as the block's other uses.
//   Streams   asked about their capture only in calls that were handed them.
//   Errors    CUresult as the driver gave it; OUT_OF_MEMORY when host memory ran out.
//   Faults    LookAt: StreamIsCapturing, StreamGetCaptureInfo. CaptureOf: StreamGetCaptureInfo. IsOrderedBefore: GraphNodeGetDependencies.
//   Source    CUDA 13.0: events of a capture can be neither queried nor waited for outside it, so order is read off the graph.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/lock.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

struct StreamRecord;

struct Capture {
  std::uint64_t id = 0;
  std::atomic<bool> ended{false};
  std::atomic<std::uint32_t> references{1};  // the table's, until it has ended; each use's and each pool's
  Capture* next = nullptr;

  void Keep() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void Drop() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

struct CapturedUse {
  CapturedUse() = default;
  CapturedUse(const CapturedUse&) = delete;
  CapturedUse& operator=(const CapturedUse&) = delete;
  ~CapturedUse() {
    if (capture != nullptr) capture->Drop();
  }
  StreamRecord* stream = nullptr;
  Capture* capture = nullptr;      // a reference
  std::vector<CUgraphNode> nodes;  // what the stream's captured work ended with
  CapturedUse* next = nullptr;
};

struct Block;
void DropCaptured(Block* block) noexcept;       // all of its captured uses
void DropEnded(Block* block) noexcept;          // those of captures that are over
bool IsInCapture(const Block* block) noexcept;  // a capture that used it is not over, as far as is known

// Whether a stream is captured, and in which capture; the only question about its identity that a captured stream may be asked.
CUresult CaptureOf(driver::DriverRef driver, CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id) noexcept;

struct CaptureView {
  std::uint64_t id = 0;  // 0: not capturing
  std::vector<CUgraphNode> last;
};

class Captures {
 public:
  Captures() = default;
  Captures(const Captures&) = delete;
  Captures& operator=(const Captures&) = delete;
  ~Captures();
  // The stream's capture; a capture that it was in before, and is not in now, is over.
  CUresult LookAt(driver::DriverRef driver, StreamRecord* stream, CUstream live, CaptureView* out) noexcept;
  // With a reference for the caller; nullptr: no host memory.
  Capture* FindOrMake(std::uint64_t id) noexcept;
  void End(std::uint64_t id) noexcept;

 private:
  static constexpr std::size_t kBuckets = 64;
  Lock lock_{LockRank::Captures};
  Capture* open_[kBuckets] = {};  // that have not ended, as far as is known; by id
};

// Whether each of `nodes` is one of `last` or lies before one of them. Gives up, with false, after 65536 nodes.
CUresult IsOrderedBefore(driver::DriverRef driver, const std::vector<CUgraphNode>& nodes, const std::vector<CUgraphNode>& last,
                         bool* ordered) noexcept;

}  // namespace cuaudit::alloc
