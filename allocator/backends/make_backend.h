// SPDX-License-Identifier: MIT
// make_backend.h: the backend that settings ask for.
//
//   Owns      nothing; the result owns itself.
//   Threads   safe.
//   Errors    as the backend's Create; `out` is empty then.
//   Faults    as the backend's Create.
//   Source    ours.
#pragma once

#include <memory>

#include "allocator/backends/driver_backend.h"
#include "allocator/settings.h"

namespace cuaudit::alloc {

// `native`, when not null, is told which of the two it is: the caching allocator, or null.
[[nodiscard]] CUresult MakeBackend(const Settings& settings, driver::DriverRef driver, const DeviceConfig* devices, int count,
                                   const Warning& warning, std::unique_ptr<Backend>* out, Allocator** native) noexcept;

}  // namespace cuaudit::alloc
