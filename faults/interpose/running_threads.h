// SPDX-License-Identifier: MIT
// running_threads.h: the threads of this process that still run, besides the one that asks.
//
//   Threads   any.
//   Errors    none: where /proc cannot be read, no thread is found.
//   Source    /proc/self/task; the flags of a task that is ending: PF_EXITING of the kernel, field 9 of proc(5)'s stat.
//
// It makes system calls only, past every wrapper, so that it leaves no trace among the host resources.
#pragma once

#include <sys/types.h>

namespace cuaudit::faults {

// Calls `see` once for each thread, in the order of their ids as the kernel lists them.
void EachRunningThread(void (*see)(pid_t thread)) noexcept;

}  // namespace cuaudit::faults
