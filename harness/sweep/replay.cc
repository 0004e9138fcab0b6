// SPDX-License-Identifier: MIT
#include "harness/sweep/replay.h"

#include <algorithm>

#include "harness/sweep/findings/outcome.h"
#include "harness/sweep/plan/fault_text.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/spawn_runner.h"

namespace cuaudit::harness {

Status Replay(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults, const JudgeOptions& judge,
              const std::vector<Benign>& benign, const Reproduction& reproduction, report::Run* run, int* interrupted) {
  // Faults addressed by site belong to a program that does not do the same each time.
  const bool by_site = std::any_of(faults.begin(), faults.end(), IsBySite);
  const Result<Rehearsal> rehearsal = Rehearse(subject, dir, by_site ? 2 : 1, interrupted);
  if (!rehearsal.ok()) return rehearsal.status();
  const std::string name = dir.Journal("replay");
  const Subject trials = SubjectOfTrials(subject, *rehearsal);
  const Result<Launch> launch = PrepareRun(trials, name + ".journal", TrialCapacity(trials, rehearsal->run), faults, name + ".log");
  if (!launch.ok()) return launch.status();
  const Result<Ending> ending = RunToEnd(*launch, interrupted);
  if (!ending.ok()) return ending.status();
  const Result<Observation> seen = ReadObservation(name + ".journal", *ending);
  if (!seen.ok()) return {Exit::Failure, seen.status().message()};
  SiteTexts sites;
  TrialResult trial = JudgeBesideAll(0, faults, {}, Tables(*rehearsal), *seen, judge, &sites);
  ApplyBenign(benign, &trial);
  run->mode = report::Mode::Replay;
  DescribeRun(rehearsal->run, run);
  DescribeHostOfTrial(*seen, run);
  trial.host_left_out = Reason::None;  // the report has it from DescribeHostOfTrial
  Groups groups;
  AddTrials({&trial, 1}, reproduction, benign, &groups, run);
  groups.defects.Find(run);
  SetOutcome({&trial, 1}, 1, dir.path(), run);
  return {};
}

}  // namespace cuaudit::harness
