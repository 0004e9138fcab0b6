// SPDX-License-Identifier: MIT
// identities.h: which stream a handle means, outside captures and in them, until it is retired.
//
//   Owns      the answer for the legacy stream of each primary context that the allocator retained, and with trust_stream_handles the
//             latest for each handle.
//   Threads   any thread.
//   Errors, Faults   as Allocator::Identify and Allocator::RetireStream.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/tables/device.h"
#include "allocator/tables/environment.h"
#include "allocator/tables/pool_table.h"
#include "allocator/tables/stream_table.h"

namespace cuaudit::alloc {

class Identities {
 public:
  Identities(Environment& environment, Devices& devices, StreamTable& streams, PoolTable& pools) noexcept
      : env_(environment), devices_(devices), streams_(streams), pools_(pools) {}
  struct Named {  // in two registers
    CUresult result = CUDA_SUCCESS;
    StreamRecord* record = nullptr;  // null with an error
  };
  CUresult Identify(int device, CUstream stream, StreamRef* out) noexcept {
    const Named named = Name(device, stream);
    *out = StreamRef(named.result == CUDA_SUCCESS ? named.record : nullptr);
    return named.result;
  }
  Named Name(int device, CUstream stream) noexcept;
  Named NameAnew(Device* device, CUstream stream) noexcept;  // the same where nothing is Known. The allocator is usable.
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
  Named Ask(Device* device, CUstream stream) noexcept;
  static Named DoesNotKnow(CUresult result, CUstream stream) noexcept;
  Named AskCaptured(Device* device, CUstream stream) noexcept;
  Named See(Device* device, CUstream stream, std::uint64_t id, StreamRecord* found) noexcept;
  Named AskInContext(Device* device, CUstream stream) noexcept;
  CUresult IdentifyCaptured(Device* device, CUstream stream, std::uint64_t capture, StreamRecord** out) noexcept;
  Environment& env_;
  Devices& devices_;
  StreamTable& streams_;
  PoolTable& pools_;
  std::atomic<StreamRecord*> by_handle_[StreamTable::kBuckets] = {};
  std::atomic<StreamRecord*> legacy_[kMaxDevices] = {};  // the legacy stream of each device
};

}  // namespace cuaudit::alloc
