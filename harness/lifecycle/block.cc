// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "include/cuaudit/block.h"

#include "faults/shim/gate.h"
#include "harness/lifecycle/diversion.h"

namespace cuaudit {

void BlockOut(DriverRef driver, CUdeviceptr address, std::size_t bytes) noexcept {
  (void)harness::NoteBlock(driver, faults::MarkKind::BlockOut, address, bytes);
}

void BlockBack(DriverRef driver, CUdeviceptr address) noexcept {
  (void)harness::NoteBlock(driver, faults::MarkKind::BlockBack, address, 0);
}

}  // namespace cuaudit
