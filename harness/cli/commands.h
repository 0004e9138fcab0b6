// SPDX-License-Identifier: MIT
// commands.h: the commands of cuaudit, one function each.
//
//   Threads   one thread.
//   Errors    an exit code (README.md); what went wrong stands in one line on stderr.
//   Faults    make no driver calls; the programs they start do.
#pragma once

#include <string>

#include "harness/options/options.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

Exit DoctorCommand(const Options& options);
Exit RunCommand(const Options& options);
Exit CyclesCommand(const Options& options);
Exit SweepCommand(const Options& options);
Exit ReplayCommand(const Options& options);
Exit ExplainCommand(const Options& options);
Exit ExplainWord(const std::string& word);  // of a report: the id of a rule, a verdict or a reason
Exit ListCommand(const Options& options);

}  // namespace cuaudit::harness
