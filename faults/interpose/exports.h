// SPDX-License-Identifier: MIT
// exports.h: the drop-in's own exported functions as addresses.
//
//   Owns      nothing; constant addresses.
//   Threads   safe everywhere; no state.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include "faults/driver/call_id.h"

namespace cuaudit::faults {

// The exported function of that symbol: what cuGetProcAddress must hand out instead of the driver's own pointer.
void* ExportOf(driver::CallId id) noexcept;

}  // namespace cuaudit::faults
