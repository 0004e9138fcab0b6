// SPDX-License-Identifier: MIT
// exports.h: the addresses of the functions that the drop-in exports.
#pragma once

#include "faults/driver/call_id.h"

namespace cuaudit::faults {

// The drop-in's function for a symbol. cuGetProcAddress must return it instead of the driver's own pointer.
void* ExportOf(driver::CallId id) noexcept;

}  // namespace cuaudit::faults
