// SPDX-License-Identifier: MIT
#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"

namespace cuaudit::harness {
namespace {

// A lifecycle has no command; its options come from CUAUDIT_SWEEP.
constexpr std::pair<Command, Exit (*)(const Options&)> kCommands[] = {
    {kDoctor, &DoctorCommand},     {kRun, &RunCommand},           {kCycles, &CyclesCommand}, {kSweep, &SweepCommand},
    {kReplay, &ReplayCommand},     {kExplain, &ExplainCommand},   {kList, &ListCommand},     {kCompare, &CompareCommand},
    {kBaseline, &BaselineCommand}, {kSuppress, &SuppressCommand}, {kReport, &ReportCommand}, {kEnv, &EnvCommand},
    {kAuditCases, &AuditCommand},  {kInit, &InitCommand},         {kRecord, &RecordCommand}, {kPlan, &PlanCommand},
    {kRunShard, &RunShardCommand}, {kMerge, &MergeCommand},       {kSlurm, &SlurmCommand},   {kReduce, &ReduceCommand}};

Exit Dispatch(const Options& options) {
  for (const auto& [command, carry_out] : kCommands) {
    if (command == options.command) return carry_out(options);
  }
  return Exit::Failure;
}

// `name` is argv[0]. With a slash it is the path of the tool; without one the shell found the tool in PATH.
Exit Main(std::string_view name, const std::vector<std::string>& arguments) {
  Result<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    Say(options.status().message());
    return options.status().exit();
  }
  if (options->done) return Print(options->message);
  if (name.find('/') != std::string_view::npos) options->tool = name;
  return Dispatch(*options);
}

// Opens /dev/null for each standard stream that is closed, because the next opened file would get the stream's number and receive the
// messages.
// The descriptor is read-only, so a write to the stream still fails.
void OccupyStandardStreams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", O_RDONLY);
  }
}

}  // namespace
}  // namespace cuaudit::harness

int main(int argc, char** argv) {
  using namespace cuaudit::harness;
  OccupyStandardStreams();
  // A write to a closed pipe becomes an error that is reported like any other, except in Print. Started programs get the default handler
  // back.
  std::signal(SIGPIPE, SIG_IGN);
  // A write beyond the limit on file sizes becomes an error, too, and the error names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  // Children of a process that ignores SIGCHLD vanish without a status, and an ignored signal is inherited.
  std::signal(SIGCHLD, SIG_DFL);
  try {
    return static_cast<int>(Main(argc > 0 ? argv[0] : "", std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)));
  } catch (const std::exception& error) {
    // cuaudit itself throws nothing; the standard library may throw when memory is exhausted.
    Say(std::string("failed: ") + error.what());
    return static_cast<int>(Exit::Failure);
  }
}
