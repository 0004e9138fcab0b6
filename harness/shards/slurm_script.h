// SPDX-License-Identifier: MIT
// slurm_script.h: the shell script that has Slurm carry out a plan.
//
//   Errors    none: the script is text.
//
// The script submits four jobs, each after the one before it: the array of the first faults, the plan of the second ones, their array,
// the merge. Slurm is the scheduler; the script ends at once. A task that was killed or requeued goes on with its shard where it was, and a
// merge runs even when a shard has failed, so that its report names it.
#pragma once

#include <string>
#include <vector>

#include "harness/shards/shard_plan.h"

namespace cuaudit::harness {

struct SlurmRequest {
  std::string tool;                 // path of cuaudit
  std::string plan;                 // path of the plan
  std::string directory;            // where the commands of the plan run
  std::vector<std::string> sbatch;  // further options of all jobs
};

// Cases on a genuine driver ask for a GPU.
std::string SlurmScript(const ShardPlan& plan, const SlurmRequest& request);

}  // namespace cuaudit::harness
