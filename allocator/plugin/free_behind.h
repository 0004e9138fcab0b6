// SPDX-License-Identifier: MIT
// free_behind.h: gives a block back in the order of a stream, whichever stream it was allocated for.
//
//   Threads   as the backend.
//   Errors    none: nobody could hear them. A use that cannot be recorded is waited for; when that fails too the block is lost rather than
//             given to somebody else too early.
//   Faults    as the backend's RecordUse and Free; StreamSynchronize.
#pragma once

#include "allocator/backend.h"
#include "faults/driver/driver_ref.h"

namespace cuaudit::alloc {

// A recorded use of the block's own stream is nothing, so nobody has to remember which that was.
inline void FreeBehind(Backend* backend, driver::DriverRef driver, void* pointer, CUstream stream) noexcept {
  const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(pointer);
  if (backend->RecordUse(address, stream) != CUDA_SUCCESS && driver.StreamSynchronize(stream) != CUDA_SUCCESS) return;
  (void)backend->Free(address);
}

}  // namespace cuaudit::alloc
