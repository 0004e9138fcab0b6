// SPDX-License-Identifier: MIT
#include <filesystem>
#include <system_error>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cli/shard_cases.h"
#include "harness/process/program.h"
#include "harness/shards/shard_plan.h"
#include "harness/shards/slurm_script.h"

namespace cuaudit::harness {

Exit SlurmCommand(const Options& options) {
  const Status usable = CheckOperands(options, 1);
  if (!usable.ok()) return Refuse(usable);
  const PlanFolder folder(options.operands.front());
  const Result<ShardPlan> plan = ReadShardPlan(folder, 1);
  if (!plan.ok()) return Refuse(plan.status());
  const Result<Program> tool = ResolveProgram(options.tool);
  if (!tool.ok()) return Refuse(tool.status());
  std::error_code error;
  SlurmRequest request;
  request.tool = tool->path;
  request.plan = std::filesystem::absolute(folder.path(), error).lexically_normal().string();
  request.directory = std::filesystem::current_path(error).string();
  request.sbatch = options.sbatch;
  return Print(SlurmScript(*plan, request));
}

}  // namespace cuaudit::harness
