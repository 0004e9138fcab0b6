// SPDX-License-Identifier: MIT
// driver_backend.h: allocators without a cache of their own: each block is the driver's, stream-ordered or plain.
//
//   Owns      the blocks until Free, one stream per device for what a free has to wait for, the pools (StreamOrderedBackend), and a
//             reference to each device's primary context unless a context was given. Borrows the DriverRef, contexts, streams.
//   Threads   as backend.h. One lock around the books, none during driver calls.
//   Streams   more than backend.h asks: the block's own stream must live until Free as well, since the driver is told of it there.
//   Errors    as backend.h. What the driver refuses to take back stays aside, counted in `releases_refused`, until EmptyCache or the
//             destructor.
//   Faults    Create: DevicePrimaryCtxRetain, MemPoolCreate, MemPoolSetAttribute. A failed Create and the destructor: MemPoolDestroy,
//             StreamDestroy, DevicePrimaryCtxRelease. Allocate: MemAllocFromPoolAsync; or ThreadExchangeStreamCaptureMode and MemAlloc.
//             Free: MemFreeAsync or MemFree. Free of a block with uses, before that: EventCreate, EventRecord, StreamWaitEvent,
//             EventDestroy, the first time StreamCreate, and StreamSynchronize where nothing is cached. Each of these calls also makes
//             CtxGetCurrent, CtxPushCurrent, CtxPopCurrent, StreamIsCapturing and StreamGetCtx.
//   Source    CUDA Driver API 13.0; that a free waits on a stream of its own is PyTorch's idea for cudaMallocAsync.
//   Not here  RecordUse as such: it is RecordStream here, counted in `uses_degraded`, told once through `warn`, and shown by a snapshot's
//             `backend`.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/backend.h"
#include "allocator/settings.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

class DriverBackend : public Backend {
 public:
  ~DriverBackend() override;

  [[nodiscard]] static CUresult CreateStreamOrdered(driver::DriverRef driver, const DeviceConfig* devices, int count,
                                                    const Warning& warning, std::unique_ptr<Backend>* out) noexcept;
  [[nodiscard]] static CUresult CreateUncached(driver::DriverRef driver, const DeviceConfig* devices, int count, const Warning& warning,
                                               std::unique_ptr<Backend>* out) noexcept;

  const char* Name() const noexcept override { return is_stream_ordered_ ? "cudaMallocAsync" : "none"; }
  UsePrecision Precision() const noexcept override { return UsePrecision::AtTheFree; }

  [[nodiscard]] CUresult Allocate(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept override;
  [[nodiscard]] CUresult Free(CUdeviceptr address) noexcept override;
  [[nodiscard]] CUresult RecordStream(CUdeviceptr address, CUstream stream) noexcept override;
  [[nodiscard]] CUresult RecordUse(CUdeviceptr address, CUstream stream) noexcept override;
  // The device's own free stream waits for the event now, and the block's free comes after it.
  [[nodiscard]] CUresult KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept override;
  bool FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept override;
  // MemPoolTrimTo behind CtxSynchronize (so not while a stream of the device is captured), and what was refused before.
  [[nodiscard]] CUresult EmptyCache() noexcept override;
  [[nodiscard]] CUresult Trim(int device, std::size_t reserved_bytes) noexcept override;
  // `reserved` is the pool's own word (MemPoolGetAttribute), or what is allocated when there is none.
  void GetStatistics(int device, Statistics* out) const noexcept override;
  void ResetPeaks(int device) noexcept override;
  void ResetAccumulated(int device) noexcept override;
  [[nodiscard]] CUresult TakeSnapshot(Snapshot* out) const noexcept override;  // a segment for each block
  const char* LastErrorText() const noexcept override;

 private:
  struct Device {
    DeviceConfig config;
    bool is_retained = false;
    CUmemoryPool pool = nullptr;
    CUstream free_stream = nullptr;
    Statistics statistics;
  };
  struct Block {
    std::size_t size = 0;
    std::size_t requested = 0;
    int device = 0;
    CUstream stream = nullptr;
    bool is_captured = false;       // allocated in a capture: a node of a graph (stream-ordered), or in use by one (uncached)
    bool uses_free_stream = false;  // KeepAliveUntil
    bool is_freed = false;          // stays aside
    std::vector<CUstream> users;    // RecordStream, other than `stream`
  };
  using Blocks = std::map<CUdeviceptr, Block>;

  DriverBackend(driver::DriverRef driver, const Warning& warning, bool is_stream_ordered) noexcept
      : driver_(driver), warning_(warning), is_stream_ordered_(is_stream_ordered) {}
  static CUresult Create(driver::DriverRef driver, const DeviceConfig* devices, int count, const Warning& warning, bool is_stream_ordered,
                         std::unique_ptr<Backend>* out) noexcept;

  CUresult Open(Device* device) noexcept;
  CUresult Acquire(Device* device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept;
  CUresult Release(CUdeviceptr address, const Block& block) noexcept;
  CUresult FreeStream(Device* device, CUstream* out) noexcept;
  CUresult Follow(CUstream follower, CUstream leader) noexcept;
  CUresult ReleaseAside() noexcept;
  void CountAllocation(Device* device, const Block& block) noexcept;
  void CountFree(Device* device, const Block& block) noexcept;
  CUresult Fail(CUresult result, const char* text) const noexcept;

  driver::DriverRef driver_;
  Warning warning_;
  bool is_stream_ordered_;
  mutable std::mutex mutex_;
  std::vector<Device> devices_;
  Blocks blocks_;
  bool has_warned_ = false;
};

// The backend that the settings ask for. Errors and faults as its Create; `out` is empty then. `native`, when not null, is told which of
// the two it is: the caching allocator, or null.
[[nodiscard]] CUresult MakeBackend(const Settings& settings, driver::DriverRef driver, const DeviceConfig* devices, int count,
                                   const Warning& warning, std::unique_ptr<Backend>* out, Allocator** native) noexcept;

}  // namespace cuaudit::alloc
