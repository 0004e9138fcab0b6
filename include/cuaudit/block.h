// SPDX-License-Identifier: MIT
// block.h: lets a memory pool report its blocks to the audit, through the DriverRef that the pool was given.
//
//     CUresult Pool::Allocate(...) { ...; cuaudit::BlockOut(driver_, address, bytes); return CUDA_SUCCESS; }
//     void Pool::Free(...)         { cuaudit::BlockBack(driver_, address); ... }
//
// Call BlockBack before another thread can be handed the memory, and BlockOut after the memory belongs to the caller alone. Both are as
// thread-safe as the DriverRef.
// Neither call fails. Both do nothing for address 0 and for a DriverRef that is not under audit. When the pool's DriverRef is a table
// that the program put in front of the step's own, the audit does not see the block and counts it in Audit::skipped. mark.h has the same
// functions for programs that call the driver by name, and lists the findings about blocks.
#pragma once

#include <cstddef>

#include "cuaudit/lifecycle.h"

namespace cuaudit {

CUAUDIT_PUBLIC void BlockOut(DriverRef driver, CUdeviceptr address, std::size_t bytes) noexcept;
CUAUDIT_PUBLIC void BlockBack(DriverRef driver, CUdeviceptr address) noexcept;

}  // namespace cuaudit
