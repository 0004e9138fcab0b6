// SPDX-License-Identifier: MIT
// errors.h: one line about why a call was refused, kept for the thread that made it.
//
//   Owns      200 bytes and an account of each thread.
//   Threads   each its own.
//   Faults    makes no driver calls.
#pragma once

#include <cuda.h>

#include "allocator/trace.h"

namespace cuaudit::alloc {

// Keeps the line, answers the code.
[[gnu::format(printf, 2, 3)]] CUresult Refuse(CUresult result, const char* format, ...) noexcept;
const char* LastRefusal() noexcept;
OutOfMemory& LastAccount() noexcept;

}  // namespace cuaudit::alloc
