// SPDX-License-Identifier: MIT
// fate.h: memory whose release failed but may have been done all the same: freed again only while it is proved to be ours.
//
//   Owns      nothing.
//   Threads   not thread-safe; guarded by what guards the memory.
//   Errors    CUresult as the driver gave it.
//   Faults    PointerGetAttribute, and what the caller frees with.
//   Source    CUDA 13.0: CU_POINTER_ATTRIBUTE_BUFFER_ID is unique within the process, so what somebody else got at the same address has
//             another one. cuPointerGetAttribute of memory that is gone answers INVALID_VALUE (measured).
//   Not here  handles: no question tells whose they are, and a second cuEventDestroy or cuStreamDestroy crashes (measured).
#pragma once

#include <cuda.h>

#include "faults/driver/driver_ref.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

struct Tenure {
  unsigned long long buffer_id = 0;  // 0: not asked yet
  bool in_doubt = false;             // a release failed, and so did the question whether it was done: nobody may use the memory
  bool doubted = false;              // was in doubt, now or before
};

// `*gone` tells whether the memory is given back, now or by an earlier try. If it is not, it is still ours, unless `in_doubt`.
template <typename Free>
CUresult FreeOurs(driver::DriverRef driver, CUdeviceptr address, Tenure* tenure, bool* gone, Free free) noexcept {
  *gone = false;
  unsigned long long now = 0;
  if (tenure->buffer_id == 0 || tenure->in_doubt) {
    const CUresult asked = driver.PointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    if (!tenure->in_doubt) {
      if (asked != CUDA_SUCCESS) {
        *gone = driver::IsSticky(asked);
        return asked;
      }
      tenure->buffer_id = now;
    } else {
      *gone = asked == CUDA_ERROR_INVALID_VALUE || (asked == CUDA_SUCCESS && now != tenure->buffer_id) || driver::IsSticky(asked);
      if (*gone) return CUDA_SUCCESS;
      if (asked != CUDA_SUCCESS) return asked;
      tenure->in_doubt = false;
    }
  }
  const CUresult result = free();
  *gone = result == CUDA_SUCCESS || driver::IsSticky(result);  // a lost context takes its memory along
  if (*gone) return result;
  const CUresult asked = driver.PointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
  *gone = asked == CUDA_ERROR_INVALID_VALUE || (asked == CUDA_SUCCESS && now != tenure->buffer_id) || driver::IsSticky(asked);
  tenure->in_doubt = asked != CUDA_SUCCESS && !*gone;
  tenure->doubted = tenure->doubted || tenure->in_doubt;
  return result;
}

}  // namespace cuaudit::alloc
