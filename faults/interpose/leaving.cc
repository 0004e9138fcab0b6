// SPDX-License-Identifier: MIT
// leaving.cc: _exit and _Exit as the drop-in exports them: a process that runs no exit handlers still says that it chose to leave.
//
// Children of Python's multiprocessing, of shells and of most programs that fork end this way. The C library's own exit does not come here;
// quick_exit runs a handler of ours (process.cc). After vfork the child has its parent's memory, so nothing of it may be written to: it is
// known by its process id.
#define __CUDA_API_VERSION_INTERNAL
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/interpose/process.h"

namespace {

[[noreturn]] void Leave(int status) noexcept {
  cuaudit::faults::NoteLeaving();
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void _exit(int status) { Leave(status); }
__attribute__((visibility("default"))) void _Exit(int status) noexcept { Leave(status); }
}
