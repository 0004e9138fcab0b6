// SPDX-License-Identifier: MIT
// commands.h: the commands of cuaudit, one function each.
//
//   Threads   one thread.
//   Errors    an exit code (README.md). The reason is one line on stderr.
#pragma once

#include "harness/options/options.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

Exit DoctorCommand(const Options& options);
Exit RunCommand(const Options& options);
Exit CyclesCommand(const Options& options);
Exit SweepCommand(const Options& options);
Exit ReplayCommand(const Options& options);
Exit ExplainCommand(const Options& options);
Exit ListCommand(const Options& options);
Exit CompareCommand(const Options& options);
Exit BaselineCommand(const Options& options);
Exit SuppressCommand(const Options& options);
Exit ReportCommand(const Options& options);
Exit EnvCommand(const Options& options);
Exit AuditCommand(const Options& options);
Exit InitCommand(const Options& options);
Exit RecordCommand(const Options& options);
Exit PlanCommand(const Options& options);
Exit RunShardCommand(const Options& options);
Exit MergeCommand(const Options& options);
Exit SlurmCommand(const Options& options);
Exit ReduceCommand(const Options& options);

}  // namespace cuaudit::harness
