// SPDX-License-Identifier: MIT
// commands.h: the commands of cuaudit, one function each.
//
//   Owns      nothing.
//   Threads   one thread.
//   Errors    the exit code of design section 11; what went wrong stands in one line on stderr.
//   Faults    make no driver calls; the programs they start do.
//   Source    ours.
#pragma once

#include "harness/cli/options.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

Exit DoctorCommand(const Options& options);
Exit RunCommand(const Options& options);
Exit CyclesCommand(const Options& options);
Exit SweepCommand(const Options& options);
Exit ReplayCommand(const Options& options);
Exit ExplainCommand(const Options& options);
Exit ListCommand(const Options& options);

}  // namespace cuaudit::harness
