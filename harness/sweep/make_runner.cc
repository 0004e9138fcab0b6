// SPDX-License-Identifier: MIT
#include "harness/sweep/make_runner.h"

#include "harness/sweep/fork_runner.h"

namespace cuaudit::harness {

std::unique_ptr<Runner> MakeRunner(std::string_view isolation, const Subject& subject, const WorkDir& dir, const SpawnOptions& resources,
                                   const Rehearsal& rehearsal) {
  const bool automatic = isolation == "auto";
  // Journals and outputs of the trials, each in a file of its own, are what a spawned process leaves.
  const bool spawn = isolation == "spawn" || (automatic && (resources.keep || subject.launch.driver != DriverChoice::Simulated));
  if (spawn) return std::make_unique<SpawnRunner>(subject, dir, resources);
  return std::make_unique<ForkRunner>(subject, dir, resources, WhyUnfitToFork(subject, rehearsal));
}

}  // namespace cuaudit::harness
