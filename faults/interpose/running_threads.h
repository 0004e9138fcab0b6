// SPDX-License-Identifier: MIT
// running_threads.h: lists the other threads of this process that still run.
//
//   Threads   may be called from any thread.
//   Errors    none. Without a readable /proc no thread is listed.
//   Source    /proc/self/task. The kernel sets PF_EXITING in the flags of a thread that is ending (field 9 of its stat file, proc(5)).
//
// Files are opened and read by bare system calls. The host probes wrap open(), and would otherwise record the descriptors as the program's.
#pragma once

#include <sys/types.h>

namespace cuaudit::faults {

// Calls `see` once for each running thread but the caller, in the order in which the kernel lists them.
void EachRunningThread(void (*see)(pid_t thread)) noexcept;

}  // namespace cuaudit::faults
