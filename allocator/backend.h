// SPDX-License-Identifier: MIT
// backend.h: what a device allocator is to its users, whoever provides the memory: this room's caching allocator, the driver's
// stream-ordered one, or none at all.
//
//   Owns      by its implementation.
//   Threads   every method from any thread. Free never waits for another thread's Allocate.
//   Streams   a stream must live during the calls that name it, and one of RecordStream until Free. A block belongs to the stream that it
//             was allocated for: work on that stream needs no further order, work on any other must be told of, by RecordUse right after
//             it was enqueued, or by RecordStream at any time before Free.
//   Units     bytes. Devices are indices into the list that the allocator was created with.
//   Errors    CUresult, noexcept; host memory that runs out is CUDA_ERROR_OUT_OF_MEMORY. A call that answers an error has changed nothing
//             unless it says so. LastErrorText explains this thread's latest one.
//   Faults    listed by the implementation.
//   Source    RecordUse: pytorch issue 181191, third version; the rest: PyTorch CUDACachingAllocator.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "allocator/snapshot.h"
#include "allocator/statistics.h"
#include "allocator/trace.h"

namespace cuaudit::alloc {

// What RecordUse means to a backend.
enum class UsePrecision : unsigned char {
  AtTheCall,  // the block waits for what the stream was given until RecordUse
  AtTheFree,  // as RecordStream: for what the stream was given until Free
};

class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual const char* Name() const noexcept = 0;  // "native", "cudaMallocAsync", "none"
  virtual UsePrecision Precision() const noexcept = 0;

  // 0 bytes: SUCCESS and address 0. More than 1 EiB: INVALID_VALUE. `*out` is 0 on failure.
  [[nodiscard]] virtual CUresult Allocate(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept = 0;
  // 0 is ignored. Not the beginning of a live block: INVALID_VALUE, nothing happens. A live block is consumed whatever is answered: the
  // code is then the driver's own, which may be INVALID_VALUE too (FindBlock tells), and memory whose uses could not be told stays aside
  // until all is synchronised.
  [[nodiscard]] virtual CUresult Free(CUdeviceptr address) noexcept = 0;
  // `stream` uses the block until Free: its work until then is recorded at Free, so the stream must live until then (Allocator: or
  // until RetireStream).
  [[nodiscard]] virtual CUresult RecordStream(CUdeviceptr address, CUstream stream) noexcept = 0;
  // `stream`'s last access to the block has been enqueued: it is recorded now. No-op for the block's own stream and for address 0.
  [[nodiscard]] virtual CUresult RecordUse(CUdeviceptr address, CUstream stream) noexcept = 0;
  // The block is not given out before `event`, as recorded at this call, is over. The event may be re-recorded or destroyed afterwards.
  [[nodiscard]] virtual CUresult KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept = 0;
  // The live block that begins at, or contains, the address; `size` may be null. False: none.
  virtual bool FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept = 0;

  // Gives back all that is cached and unused. Waits for the uses of what it releases. The first error; the rest is released all the same.
  [[nodiscard]] virtual CUresult EmptyCache() noexcept = 0;
  // Until the device's reserved memory is at most `reserved_bytes`, or nothing more can be released.
  [[nodiscard]] virtual CUresult Trim(int device, std::size_t reserved_bytes) noexcept = 0;

  virtual void GetStatistics(int device, Statistics* out) const noexcept = 0;
  virtual void ResetPeaks(int device) noexcept = 0;
  virtual void ResetAccumulated(int device) noexcept = 0;
  [[nodiscard]] virtual CUresult TakeSnapshot(Snapshot* out) const noexcept = 0;

  // What this thread's latest call that answered an error was about: call, value, what was expected. Never null; from static or thread
  // storage.
  virtual const char* LastErrorText() const noexcept = 0;
};

}  // namespace cuaudit::alloc
