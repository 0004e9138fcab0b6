// SPDX-License-Identifier: MIT
// leaving.cc: the drop-in's exports _exit and _Exit, so that a process that runs no exit handlers still records that it chose to leave.
//
// Children of Python's multiprocessing, of shells and of most programs that fork end this way. The C library's exit does not call these
// functions; quick_exit runs a handler of the drop-in (process.cc). After vfork the child shares its parent's memory, so no state of the
// parent may be written; such a child is recognised by its process id.
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
