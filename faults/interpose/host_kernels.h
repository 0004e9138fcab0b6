// SPDX-License-Identifier: MIT
// host_kernels.h: the host kernels that are registered in this process (include/cuaudit/kernel.h). The simulated driver runs them in
// place of kernels.
//
// The program owns the kernels; this library owns the head of the list. Any thread may register. Kernels are only added, never removed.
// A malformed cuaudit_kernel is not accepted.
#pragma once

#include <atomic>

#include "include/cuaudit/kernel.h"

namespace cuaudit::faults {

// Head of the list, which has the newest kernel first.
const std::atomic<cuaudit_kernel*>& HostKernels() noexcept;

}  // namespace cuaudit::faults
