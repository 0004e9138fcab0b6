// SPDX-License-Identifier: MIT
// ending_signals.h: the signals by which a user ends a command.
//
//   Threads   any.
#pragma once

#include <signal.h>

namespace cuaudit::harness {

// SIGINT, SIGTERM and SIGHUP. Left out is what this process was told to ignore (nohup; a shell's background): blocked, it would arrive.
sigset_t EndingSignals();

}  // namespace cuaudit::harness
