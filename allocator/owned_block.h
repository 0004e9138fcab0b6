// SPDX-License-Identifier: MIT
// owned_block.h: blocks that give themselves back, and a block that is given back in the order of a stream.
#pragma once

#include <cstddef>
#include <utility>

#include "allocator/backend.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

// A block that gives itself back, and remembers for which stream it was allocated.
//
//   Owns      one block; borrows its backend, which must outlive it. Moves, never copies.
//   Threads   one at a time; the block may be given back on another thread than it was allocated on.
//   Streams   work on stream() needs no further order; after the last work on any other: RecordUse(that stream).
//   Errors    CUresult of the backend's call. Reset answers the error of its Free; the destructor drops it.
//   Faults    as the backend's Allocate, Free, RecordUse, RecordStream, KeepAliveUntil.
//   Source    ours.
class OwnedBlock {
 public:
  OwnedBlock() = default;
  OwnedBlock(OwnedBlock&& other) noexcept { Swap(&other); }
  OwnedBlock& operator=(OwnedBlock&& other) noexcept {
    OwnedBlock taken(std::move(other));
    Swap(&taken);
    return *this;
  }
  OwnedBlock(const OwnedBlock&) = delete;
  OwnedBlock& operator=(const OwnedBlock&) = delete;
  ~OwnedBlock() { (void)Reset(); }

  // What `out` held is given back when the new block is there; on failure `out` stays as it was.
  [[nodiscard]] static CUresult Allocate(Backend* backend, int device, std::size_t bytes, CUstream stream, OwnedBlock* out) noexcept {
    OwnedBlock block;
    const CUresult result = backend->Allocate(device, bytes, stream, &block.address_);
    if (result != CUDA_SUCCESS) return result;
    block.backend_ = backend;
    block.bytes_ = bytes;
    block.stream_ = stream;
    *out = std::move(block);
    return CUDA_SUCCESS;
  }

  [[nodiscard]] CUdeviceptr address() const noexcept { return address_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] CUstream stream() const noexcept { return stream_; }
  explicit operator bool() const noexcept { return address_ != 0; }

  [[nodiscard]] CUresult RecordUse(CUstream stream) const noexcept {
    return address_ == 0 ? CUDA_SUCCESS : backend_->RecordUse(address_, stream);
  }
  [[nodiscard]] CUresult RecordStream(CUstream stream) const noexcept {
    return address_ == 0 ? CUDA_SUCCESS : backend_->RecordStream(address_, stream);
  }
  [[nodiscard]] CUresult KeepAliveUntil(CUevent event) const noexcept {
    return address_ == 0 ? CUDA_SUCCESS : backend_->KeepAliveUntil(address_, event);
  }

  [[nodiscard]] CUresult Reset() noexcept {
    const CUdeviceptr address = Release();
    return address == 0 ? CUDA_SUCCESS : backend_->Free(address);
  }
  // The caller frees it.
  [[nodiscard]] CUdeviceptr Release() noexcept {
    bytes_ = 0;
    return std::exchange(address_, 0);
  }

 private:
  void Swap(OwnedBlock* other) noexcept {
    std::swap(backend_, other->backend_);
    std::swap(address_, other->address_);
    std::swap(bytes_, other->bytes_);
    std::swap(stream_, other->stream_);
  }

  Backend* backend_ = nullptr;
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
  CUstream stream_ = nullptr;
};

// Gives a block back in the order of a stream, whichever stream it was allocated for.
//
//   Threads   as the backend.
//   Errors    none: nobody could hear them. A use that cannot be recorded is waited for; when that fails too the block is lost rather than
//             given to somebody else too early.
//   Faults    as the backend's RecordUse and Free; StreamSynchronize.
//
// A recorded use of the block's own stream is nothing, so nobody has to remember which that was.
inline void FreeBehind(Backend* backend, driver::DriverRef driver, void* pointer, CUstream stream) noexcept {
  const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(pointer);
  if (backend->RecordUse(address, stream) != CUDA_SUCCESS && driver.StreamSynchronize(stream) != CUDA_SUCCESS) return;
  (void)backend->Free(address);
}

}  // namespace cuaudit::alloc
