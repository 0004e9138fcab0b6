// SPDX-License-Identifier: MIT
// A sweep that ends before its second faults are shrunk: what is known already shrinks them all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/sweep/sweep_engine.h"
#include "suites/unit/sweep/scripted_runner.h"

namespace cuaudit::harness::ended_early_test {
namespace {

using driver::CallId;
using testing::SizeIs;

// When its second memory cannot be had, it gives back the first one and forgets its stream, whatever else fails on the way back.
class Forgets : public sweep_tests::Scripted {
 public:
  Forgets() : Scripted(false) {}

 private:
  int Script(JournalBuilder& journal) override {
    for (const std::uint32_t stack : {1U, 2U, 3U, 4U, 5U, 6U, 7U}) journal.StackIn(stack, "/usr/bin/program");
    if (!Do(journal, CallId::StreamCreate, 0x10, 1)) return 1;
    if (!Do(journal, CallId::MemAlloc_v2, 0x2000, 2)) {
      Do(journal, CallId::StreamDestroy_v2, 0x10, 7);
      return 1;
    }
    const bool memory = Do(journal, CallId::MemAlloc_v2, 0x1000, 3);
    Do(journal, CallId::StreamSynchronize, 0x10, 4);
    if (memory) Do(journal, CallId::MemFree_v2, 0x1000, 5);
    Do(journal, CallId::MemFree_v2, 0x2000, 6);
    if (!memory) return 1;
    Do(journal, CallId::StreamDestroy_v2, 0x10, 7);
    return 0;
  }
};

constexpr std::size_t kFirstFaults = 7;

// Ends the sweep after so many trials; 0: not.
report::Run SweptUntil(std::size_t trials) {
  Forgets runner;
  Rehearsal rehearsal;
  rehearsal.run = runner.Run({});
  SiteTexts sites;
  SweepEngine engine(&runner, nullptr, {}, {"replay", "run", "program"}, &sites);
  EXPECT_TRUE(engine.Prepare(std::move(rehearsal), 1).ok());
  while (!engine.Finished() && (trials == 0 || engine.done() < trials)) EXPECT_TRUE(engine.Step().ok());
  engine.EndHere();
  report::Run run;
  engine.Report(&run);
  return run;
}

std::size_t WithTwoFaults(const report::Run& run) {
  return static_cast<std::size_t>(
      std::count_if(run.findings.begin(), run.findings.end(), [](const report::Finding& one) { return !one.then.empty(); }));
}

TEST(EndedEarly, SecondFaultsThatShowWhatTheFirstOneShowsAreNoDefectOfTheirOwn) {
  const report::Run whole = SweptUntil(0);
  ASSERT_THAT(whole.defects, SizeIs(1));
  EXPECT_EQ(WithTwoFaults(whole), 0U);
  ASSERT_GT(whole.totals.trials, kFirstFaults) << "second ones, too";
  for (std::size_t trials = 1; trials < whole.totals.trials; ++trials) {
    const report::Run cut = SweptUntil(trials);
    EXPECT_LE(cut.defects.size(), 1U) << trials;
    EXPECT_EQ(cut.totals.trials, trials);
    EXPECT_TRUE(trials < kFirstFaults || WithTwoFaults(cut) == 0) << trials;
  }
}

}  // namespace
}  // namespace cuaudit::harness::ended_early_test
