// SPDX-License-Identifier: MIT
// make_call.h: calls any entry point of a driver with arguments as words.
//
//   Threads   safe.
//   Errors    the driver's result.
#pragma once

#include <cstdint>

#include "faults/driver/driver_ref.h"

namespace cuaudit::harness {

// `words` has a word per parameter: the value, or for a structure that is passed by value its address (0: all zero).
CUresult MakeCall(driver::DriverRef driver, driver::CallId call, const std::uint64_t* words) noexcept;

}  // namespace cuaudit::harness
