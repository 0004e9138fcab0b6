// SPDX-License-Identifier: MIT
#include <algorithm>

#include "harness/process/shell.h"
#include "harness/shards/shard_plan.h"

namespace cuaudit::harness {

std::string SlurmScript(const ShardPlan& plan, const SlurmRequest& request) {
  const bool on_gpu = std::any_of(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& one) { return one.options.driver != "sim"; });
  const bool second = std::any_of(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& one) { return one.options.depth > 1; });
  std::string options = on_gpu ? " --gpus=1" : "";
  for (const std::string& one : request.sbatch) options.append(" ").append(ShellQuote(one));
  const std::string array = "--array=0-" + std::to_string(plan.shards - 1);
  std::string text = R"(#!/bin/sh
# Has Slurm carry out a plan of cuaudit: arrays of shards and, after them, the merge. Run it with sh; it submits the jobs and ends.
set -eu
)";
  text += "tool=" + ShellQuote(request.tool) + "\nplan=" + ShellQuote(request.plan) + "\ndirectory=" + ShellQuote(request.directory) + "\n";
  text += R"(export tool plan
mkdir -p "$plan/logs"

# submit NAME LOG [OPTION...]: submits the job whose commands come from stdin, and answers its number.
submit() {
  name=$1 log=$2
  shift 2
  sbatch --parsable --requeue --export=ALL --chdir="$directory" --job-name="cuaudit-$name" --output="$plan/logs/$log" \
    --open-mode=append)" +
          options + R"( "$@"
}

# Shards: SLURM_ARRAY_TASK_ID is the number of the shard. A task that Slurm requeues finds its finished trials and goes on.
shards() {
  submit "$@" <<'SHARD'
#!/bin/sh
exec "$tool" run-shard "$plan" --round "$round" --progress plain
SHARD
}

export round=1
first=$(shards first first-%a.log )" +
          array + ")\n";
  const std::string last = second ? "$second" : "$first";
  if (second) {
    text += R"(
# What can fail on the way back is known when every first fault was tried.
next=$(submit plan plan.log --dependency="afterany:$first" <<'NEXT'
#!/bin/sh
exec "$tool" plan "$plan" --round 2
NEXT
)
round=2
second=$(shards second second-%a.log --dependency="afterok:$next" --kill-on-invalid-dep=yes )" +
            array + ")\n";
  }
  text += R"(
# Also after a shard that failed: the report is then not exercised and names the shard.
merge=$(submit merge merge.log --dependency="afterany:)" +
          last + R"(" <<'MERGE'
#!/bin/sh
exec "$tool" merge "$plan" )" +
          (plan.project ? R"(--out "$plan/results")" : R"(--format json="$plan/report.json" --format text="$plan/report.txt")") + R"(
MERGE
)
echo "merge: job $merge; its report will be )" +
          (plan.project ? "$plan/results" : "$plan/report.txt") + "\"\n";
  return text;
}

}  // namespace cuaudit::harness
