// SPDX-License-Identifier: MIT
// host_kernels.h: the process's registered host kernels, which the simulated driver runs in the place of kernels.
//
//   Owns      the list's head; the records are the program's.
//   Threads   any; records are only ever added.
//   Errors    none: a record that is not one is not taken.
//   Faults    makes no driver calls.
//   Source    include/cuaudit/kernel.h.
#pragma once

#include <atomic>

#include "include/cuaudit/kernel.h"

namespace cuaudit::faults {

// The newest first.
const std::atomic<cuaudit_kernel*>& HostKernels() noexcept;

}  // namespace cuaudit::faults
