// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/make_runner.h"

#include "harness/sweep/runners/cycle_runner.h"
#include "harness/sweep/runners/fork_runner.h"

namespace cuaudit::harness {

std::unique_ptr<Runner> MakeRunner(Isolation wished, const Subject& subject, const WorkDir& dir, const SpawnOptions& resources,
                                   const Rehearsal& rehearsal) {
  const bool automatic = wished == Isolation::Unknown;
  const bool simulated = subject.launch.driver == DriverKind::Simulated;
  // --keep asks for a journal and an output file of each trial, which only spawned processes leave.
  const bool spawn = wished == Isolation::Spawn || (automatic && resources.keep);
  const bool cycles = wished == Isolation::Cycle || (automatic && subject.launch.driver == DriverKind::Genuine && !resources.keep &&
                                                     WhyUnfitForCycles(rehearsal) == Reason::None);
  std::unique_ptr<Runner> runner;
  if (wished == Isolation::Fork || (simulated && !spawn)) {
    runner = std::make_unique<ForkRunner>(subject, dir, resources, rehearsal);  // says on a genuine driver why it spawns
  } else {
    runner = std::make_unique<SpawnRunner>(subject, dir, resources);
  }
  if (!cycles) return runner;
  return std::make_unique<CycleRunner>(subject, dir, resources, rehearsal, std::move(runner));
}

}  // namespace cuaudit::harness
