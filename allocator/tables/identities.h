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
  CUresult Identify(int device, CUstream stream, StreamRef* out) noexcept;
  CUresult RetireStream(int device, CUstream stream) noexcept;

 private:
  std::atomic<StreamRecord*>* MemoryOf(const Device* device, CUstream stream) noexcept;
  CUresult Ask(Device* device, CUstream stream, StreamRecord** out) noexcept;
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
