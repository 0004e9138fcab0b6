// SPDX-License-Identifier: MIT
// process_driver.h: the driver that a process gets by name: the genuine one, or whatever stands in front of it.
//
//   Owns      as genuine_driver.h: the dlopen reference, for the rest of the process.
//   Threads   one.
//   Errors    a static phrase that says what is missing; null on success.
//   Faults    makes no driver call.
//   Source    libcuda.so.1 as the dynamic loader finds it, so that an audit's drop-in is found first.
#pragma once

#include "faults/driver/genuine_driver.h"

namespace cuaudit::alloc {

[[nodiscard]] const char* OpenProcessDriver(driver::GenuineDriver* driver) noexcept;

}  // namespace cuaudit::alloc
