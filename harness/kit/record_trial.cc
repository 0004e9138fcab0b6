// SPDX-License-Identifier: MIT
#include "harness/kit/record_trial.h"

#include <unistd.h>

#include <span>
#include <utility>

namespace cuaudit::harness {

Result<std::vector<Observation>> RecordTrial(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults,
                                             int* interrupted) {
  Subject quiet = subject;
  quiet.launch.host_probes = HostProbes::None;
  quiet.launch.stacks_of_objects_only = false;
  std::vector<Observation> runs;
  for (std::size_t count = 0; count <= faults.size(); ++count) {
    const std::string journal = dir.Journal("reduce-" + std::to_string(count) + ".journal");
    const std::span<const std::string> some(faults.data(), count);
    const Result<Launch> launch = PrepareRun(quiet, journal, quiet.record_capacity, some, "/dev/null");
    if (!launch.ok()) return launch.status();
    const Result<Ending> ending = RunToEnd(*launch, interrupted);
    if (!ending.ok()) return ending.status();
    Result<Observation> run = ReadRun(quiet, journal, *ending);
    unlink(journal.c_str());
    if (!run.ok()) return run.status();
    const Status fit = count == 0 ? CheckFaultFree(quiet, *run) : CheckExercised(quiet, *run);
    if (!fit.ok()) return fit;
    runs.push_back(std::move(*run));
  }
  return runs;
}

}  // namespace cuaudit::harness
