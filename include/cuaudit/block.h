// SPDX-License-Identifier: MIT
// block.h: a pool that cuts device memory into blocks tells of them through the DriverRef that it was given.
//
//     CUresult Pool::Allocate(...) { ...; cuaudit::BlockOut(driver_, address, bytes); return CUDA_SUCCESS; }
//     void Pool::Free(...)         { cuaudit::BlockBack(driver_, address); ... }
//
//   Owns      nothing.
//   Threads   as the DriverRef. Say BlockBack before another thread can be handed the memory, BlockOut after it is the caller's alone.
//   Units     bytes.
//   Errors    none: through a DriverRef that nobody audits it does nothing, and so does an address of 0. Through a table that was put
//             around the step's own an audit hears nothing of the block, and counts it in Audit::skipped.
//   Faults    makes no driver calls.
//   Source    ours. mark.h has the same for programs that call the driver by name, and says what is then reported.
#pragma once

#include <cstddef>

#include "cuaudit/lifecycle.h"

namespace cuaudit {

CUAUDIT_PUBLIC void BlockOut(DriverRef driver, CUdeviceptr address, std::size_t bytes) noexcept;
CUAUDIT_PUBLIC void BlockBack(DriverRef driver, CUdeviceptr address) noexcept;

}  // namespace cuaudit
