// SPDX-License-Identifier: MIT
#include "harness/sweep/run/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::trial_test {
namespace {

using driver::CallId;
using testing::ElementsAre;

const std::vector<std::string> kOne = {"cuMemAlloc#1=OUT_OF_MEMORY,refuse"};

class TrialTest : public testing::Test {
 protected:
  TrialTest() {
    rehearsal_.Call(CallId::Init);
    trial_.Call(CallId::Init);
  }
  std::uint64_t Fire(CallId call) {
    faults::Record& record = trial_.Call(call);
    record.fault = 1;
    record.result = CUDA_ERROR_OUT_OF_MEMORY;
    return SiteKey(trial_.Read().journal, SiteOf(record));
  }
  TrialResult Trial(std::uint64_t site, const std::vector<std::string>& faults = kOne, const Ending& ending = {}) {
    return JudgeTrial(0, faults, std::vector<std::uint64_t>{site}, Rehearsed(rehearsal_.Read().evidence()), trial_.Read(ending),
                      JudgeOptions(), &sites_);
  }

  TemporaryDir dir_;
  JournalBuilder rehearsal_{dir_.File("rehearsal")};
  JournalBuilder trial_{dir_.File("trial")};
  SiteTexts sites_;
};

TEST_F(TrialTest, FiredWhereItWasPlanned) {
  const std::uint64_t site = Fire(CallId::MemAlloc_v2);
  for (const std::uint64_t planned : {site, std::uint64_t{0}}) {
    const TrialResult trial = Trial(planned);
    EXPECT_TRUE(trial.fired);
    EXPECT_EQ(trial.missed, Missed::Nothing);
    EXPECT_NE(trial.verdict, Verdict::NotExercised);
  }
}

TEST_F(TrialTest, FaultThatHitAnotherSiteIsNotExercisedButKeepsItsFindings) {
  trial_.Call(CallId::StreamCreate).argument[0] = 0x51;
  const std::uint64_t site = Fire(CallId::MemAlloc_v2);
  trial_.Call(CallId::MemFree_v2).argument[0] = 0x99;  // something is done after the fault, so nothing was merely abandoned
  const TrialResult trial = Trial(site + 1);
  EXPECT_EQ(trial.missed, Missed::Elsewhere);
  EXPECT_FALSE(trial.fired);
  EXPECT_EQ(trial.verdict, Verdict::NotExercised);
  EXPECT_FALSE(trial.findings.empty());
}

TEST_F(TrialTest, OverflowAndFullDiskAreResultsOfTheTrial) {
  Fire(CallId::MemAlloc_v2);
  trial_.header().flags.fetch_or(faults::kRecordsDropped);
  EXPECT_EQ(Trial(0).missed, Missed::Overflow);
  EXPECT_EQ(Trial(0).verdict, Verdict::NotExercised);
  EXPECT_EQ(Trial(0, kOne, {0, 9, true}).verdict, Verdict::Hang) << "it filled the journal on the way";
  trial_.header().flags.fetch_or(faults::kNoSpace);
  EXPECT_EQ(Trial(0).missed, Missed::NoSpace);
}

TEST_F(TrialTest, EveryFaultOfSeveralMustHaveFired) {
  const std::vector<std::string> two = {kOne[0], "cuMemAlloc#9=OUT_OF_MEMORY,refuse"};
  Fire(CallId::MemAlloc_v2);
  trial_.header().fired[0].store(1);
  TrialResult trial = Trial(0, two);
  EXPECT_THAT(trial.unfired, ElementsAre(1U));
  EXPECT_FALSE(trial.fired);
  trial_.header().fired[1].store(1);
  EXPECT_TRUE(Trial(0, two).fired);
}

TEST_F(TrialTest, IsNoPassWhereTheHostWasAskedForAndNotSeen) {
  rehearsal_.Host(faults::HostCall::Looking, 0);
  Fire(CallId::MemAlloc_v2);
  for (const std::uint32_t shown : {std::uint32_t{faults::kHeapLeftOut}, 0U}) {
    rehearsal_.header().flags.store(faults::kHostProbesActive | shown);
    const TrialResult trial = Trial(0);
    EXPECT_EQ(trial.missed, shown != 0 ? Missed::Nothing : Missed::Unseen);
    EXPECT_EQ(trial.fired, shown != 0);
    EXPECT_EQ(trial.verdict == Verdict::NotExercised, shown == 0) << Name(trial.verdict);
    EXPECT_NE(trial.host_left_out, Reason::None) << "counted in any case";
  }
  const TrialResult crash = Trial(0, kOne, {0, 11, false});
  EXPECT_EQ(crash.verdict, Verdict::Crash) << "a finding is one whoever looked";
  trial_.Host(faults::HostCall::Looking, 0);
  EXPECT_EQ(Trial(0).missed, Missed::Nothing);
}

TEST_F(TrialTest, ADeadlineThatComesFirstIsNotTheProgramsChoice) {
  EXPECT_EQ(Trial(0).missed, Missed::Unfired);
  EXPECT_EQ(Trial(0, kOne, {0, 9, true}).missed, Missed::Late);
  EXPECT_EQ(Trial(0, kOne, {0, 9, true}).verdict, Verdict::NotExercised);
}

TEST_F(TrialTest, CrashHasNoKindAndNoObject) {
  Fire(CallId::MemAlloc_v2);
  const TrialResult trial = Trial(0, kOne, {0, 11, false});
  ASSERT_EQ(trial.findings.size(), 1U);
  EXPECT_EQ(trial.findings[0].rule, Rule::Crash);
  EXPECT_EQ(trial.findings[0].kind, driver::Kind::None);
  EXPECT_EQ(trial.findings[0].acquired->call, "");
}

}  // namespace
}  // namespace cuaudit::harness::trial_test
