// SPDX-License-Identifier: MIT
// A sweep by fork is linear in the calls of the program and of its unwindings: counted in records, since clocks depend on the machine.
#include <gtest/gtest.h>

#include <algorithm>

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

harness::Subject Steps(int calls) {
  harness::Subject subject;
  subject.command = {Program("steps"), std::to_string(calls)};
  subject.program = *harness::ResolveProgram(subject.command.front());
  subject.environment = *harness::CurrentEnvironment();
  subject.launch.drop_in_dir = DropInDirectory();
  subject.record_capacity = 1U << 16;
  subject.deadline_ms = kDeadlineMs;
  return subject;
}

// Every first and second fault of a lifecycle of that many calls, nothing pruned.
Cost SweepOf(int calls) {
  Cost cost;
  const harness::Subject subject = Steps(calls);
  const Result<harness::WorkDir> dir = harness::WorkDir::Open("", true);
  EXPECT_TRUE(dir.ok());
  int interrupted = 0;
  Result<Rehearsal> rehearsal = harness::Rehearse(subject, *dir, 1, &interrupted);
  EXPECT_TRUE(rehearsal.ok()) << rehearsal.status().message();
  if (!dir.ok() || !rehearsal.ok()) return cost;
  {
    harness::ForkRunner runner(subject, *dir, {2, false, subject.record_capacity}, *rehearsal);
    harness::EngineOptions options;
    options.plan.prune = harness::Pruning::None;
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

// Before each fork the drop-in reads what /proc says of the process. Records of that would be in the journals of all later trials.
TEST(ForkCost, WhatTheDropInOpensInOrderToForkIsInNoJournal) {
  harness::Subject subject = Steps(16);
  subject.launch.host_probes = harness::HostProbes::Basic;
  const Result<harness::WorkDir> dir = harness::WorkDir::Open("", true);
  ASSERT_TRUE(dir.ok());
  int interrupted = 0;
  const Result<Rehearsal> rehearsal = harness::Rehearse(subject, *dir, 1, &interrupted);
  ASSERT_TRUE(rehearsal.ok()) << rehearsal.status().message();
  const auto descriptors = [](const harness::Observation& run) {
    return std::count_if(run.ledger.objects.begin(), run.ledger.objects.end(),
                         [](const harness::Object& object) { return object.kind == driver::Kind::FileDescriptor; });
  };
  {
    harness::ForkRunner runner(subject, *dir, {2, false, subject.record_capacity}, *rehearsal);
    Status status = runner.Give({{0, {"cuMemAlloc#1=OUT_OF_MEMORY,refuse"}},
                                 {1, {"cuMemFree#1=ILLEGAL_ADDRESS,refuse"}},
                                 {2, {"cuCtxSynchronize#1=ILLEGAL_ADDRESS,refuse"}}});
    ASSERT_TRUE(status.ok()) << status.message();
    for (int trial = 0; trial < 3; ++trial) {
      const Result<harness::TrialSeen> seen = runner.Next();
      ASSERT_TRUE(seen.ok()) << seen.status().message();
      EXPECT_EQ(seen->isolation, harness::Isolation::Fork);
      EXPECT_TRUE(seen->seen.saw_host());
      EXPECT_EQ(descriptors(seen->seen), descriptors(rehearsal->run)) << "trial " << seen->index;
    }
  }
  dir->Remove();
}

}  // namespace
}  // namespace cuaudit::e2e::fork_cost_test
