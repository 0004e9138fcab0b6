// SPDX-License-Identifier: MIT
#include "harness/sweep/sweep_digest.h"

#include "harness/process/files.h"
#include "harness/process/program.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/run/subject_content.h"

namespace cuaudit::harness {

std::uint64_t OptionsHash(const SweepOptions& options, std::uint64_t hash) {
  hash = HashNumber(static_cast<std::uint64_t>(options.depth), hash);
  hash = HashNumber(static_cast<std::uint64_t>(options.plan.prune), hash);
  hash = HashNumber((options.judge.exit_is_said ? 1U : 0U) + (options.judge.own_orphans_count ? 2U : 0U), hash);
  for (const Benign& benign : options.benign) hash = HashText(benign.text, hash);
  for (const std::string& call : options.plan.calls) hash = HashText(call, hash);
  return HashNumber(options.plan.limit, hash);
}

std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& word : subject.command) hash = HashText(word, hash);
  hash = HashText(OptionsText(subject.launch, "", {}), hash);
  hash = HashNumber(subject.launch.stack_depth, hash);
  hash = HashNumber(static_cast<std::uint64_t>(subject.expected_exit), hash);
  hash = HashNumber(judge.abandoned_is_leak ? 1 : 0, hash);
  hash = HashNumber(SubjectContent(subject, rehearsal), hash);
  // A program that never does the same twice is only identified by its command line and its content.
  return rehearsal.same_work ? HashNumber(TraceHash(rehearsal.run.evidence()), hash) : hash;
}

bool HoldsPlanOf(const WorkDir& dir, const SweepOptions& options, std::uint64_t subject) {
  const Result<std::string> text = ReadFile(dir.File("plan.txt"));
  if (!text.ok()) return false;
  const Result<PlanFile> plan = ParsePlan(*text, "plan.txt");
  return plan.ok() && plan->subject == OptionsHash(options, subject);
}

}  // namespace cuaudit::harness
