// SPDX-License-Identifier: MIT
// A sweep by fork is linear in the calls of the program and of its unwindings: counted in records, since clocks depend on the machine.
#include <gtest/gtest.h>

#include "harness/sweep/runners/fork_runner.h"
#include "harness/sweep/sweep_engine.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::fork_cost_test {
namespace {

using harness::Rehearsal;
using harness::Result;
using harness::Status;

struct Cost {
  std::size_t trials = 0;
  harness::ForkRunner::Work work;
};

// Every first and second fault of a lifecycle of that many calls, nothing pruned.
Cost SweepOf(int calls) {
  Cost cost;
  harness::Subject subject;
  subject.command = {Program("steps"), std::to_string(calls)};
  subject.program = *harness::ResolveProgram(subject.command.front());
  subject.environment = *harness::CurrentEnvironment();
  subject.launch.drop_in_dir = DropInDirectory();
  subject.record_capacity = 1U << 16;
  subject.deadline_ms = kDeadlineMs;
  const Result<harness::WorkDir> dir = harness::WorkDir::Open("", true);
  EXPECT_TRUE(dir.ok());
  int interrupted = 0;
  Result<Rehearsal> rehearsal = harness::Rehearse(subject, *dir, 1, &interrupted);
  EXPECT_TRUE(rehearsal.ok()) << rehearsal.status().message();
  if (!dir.ok() || !rehearsal.ok()) return cost;
  {
    harness::ForkRunner runner(subject, *dir, {2, false, subject.record_capacity}, *rehearsal);
    harness::SweepOptions options;
    options.plan.prune = harness::Prune::None;
    harness::SiteTexts sites;
    harness::SweepEngine engine(&runner, nullptr, options, {}, &sites);
    Status status = engine.Prepare(std::move(*rehearsal), 0);
    while (status.ok() && !engine.Finished()) status = engine.Step();
    EXPECT_TRUE(status.ok()) << status.message();
    cost = {engine.done(), runner.work()};
  }
  dir->Remove();
  return cost;
}

TEST(ForkCost, ATrialCostsWhatComesAfterItsFaultHoweverLongTheProgramIs) {
  const Cost brief = SweepOf(16);
  const Cost lengthy = SweepOf(56);
  ASSERT_EQ(brief.trials, 103U);
  ASSERT_EQ(lengthy.trials, 463U);
  const auto a_trial = [](std::uint64_t records, const Cost& cost) {
    return static_cast<double>(records) / static_cast<double>(cost.trials);
  };
  // Folding and copying from the beginning for each trial makes this 2.2 times as much.
  EXPECT_LT(a_trial(lengthy.work.folded, lengthy), 1.5 * a_trial(brief.work.folded, brief));
  EXPECT_LT(a_trial(lengthy.work.copied, lengthy), 1.5 * a_trial(brief.work.copied, brief));
  EXPECT_GT(brief.work.folded, brief.trials) << "every trial has records of its own";
}

}  // namespace
}  // namespace cuaudit::e2e::fork_cost_test
