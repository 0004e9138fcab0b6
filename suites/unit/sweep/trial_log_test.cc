// SPDX-License-Identifier: MIT
#include "harness/sweep/trial_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/sweep/temporary_dir.h"

namespace cuaudit::harness {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const std::vector<std::string> kPlan = {"cuInit#1=INVALID_VALUE,refuse", "cuMemAlloc#1=OUT_OF_MEMORY,refuse",
                                        "cuMemAlloc#2=OUT_OF_MEMORY,refuse"};

TrialResult Sample(std::size_t index) {
  TrialResult trial;
  trial.index = index;
  trial.faults = {kPlan[index]};
  trial.verdict = "leak";
  trial.fired = true;
  trial.ending = {3, 0, false};
  trial.fault_key = 0xfedcba9876543210U;
  trial.fault_site = {"cuMemAlloc", {{"prog", "Init()", "a \"b\".c", 12, 0xabc}}};
  TrialFindingText finding;
  finding.rule = "leak";
  finding.kind = "stream";
  finding.count = 2;
  finding.bytes = 64;
  finding.acquired_key = 7;
  finding.where_key = 8;
  finding.acquired = {"cuStreamCreate", {{"prog", "Open", "", 0, 1}, {"libc.so.6", "", "", 0, 2}}};
  finding.other_key = 9;
  finding.other = {"cuMemsetD8Async", {{"prog", "Clear", "", 0, 3}}};
  trial.findings = {finding, finding};
  trial.notes = {finding};
  return trial;
}

TEST(TrialLog, RoundTrips) {
  const std::string line = FormatTrial(Sample(1));
  const Result<TrialLogContent> read = ParseTrialLog(line, kPlan, "trials.jsonl");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(read->trials, SizeIs(1));
  // The text form holds every field, so equal texts are equal trials.
  EXPECT_EQ(FormatTrial(read->trials.front()), line);
  EXPECT_EQ(read->trials.front().findings.front().acquired.stack.front().function, "Open");
  EXPECT_EQ(read->trials.front().findings.front().other.stack.front().function, "Clear");
  EXPECT_EQ(read->trials.front().findings.front().other_key, 9u);
  EXPECT_EQ(read->trials.front().fault_key, 0xfedcba9876543210U);
}

TEST(TrialLog, KeepsWholeLinesOfALogCutAtAnyByte) {
  const std::string first = FormatTrial(Sample(0));
  const std::string all = first + FormatTrial(Sample(2));
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const Result<TrialLogContent> read = ParseTrialLog(all.substr(0, size), kPlan, "trials.jsonl");
    ASSERT_TRUE(read.ok()) << size << ": " << read.status().message();
    EXPECT_THAT(read->trials, SizeIs(size == all.size() ? 2U : size >= first.size() ? 1U : 0U)) << size;
  }
}

TEST(TrialLog, CutsOffAnUnfinishedLineBeforeItAppends) {
  const TemporaryDir dir;
  const std::string path = dir.File("trials.jsonl");
  ASSERT_TRUE(WriteFile(path, FormatTrial(Sample(0)) + "{\"trial\":1,\"fau", Exit::Failure).ok());
  {
    Result<TrialLog> log = TrialLog::Open(path, kPlan);
    ASSERT_TRUE(log.ok()) << log.status().message();
    ASSERT_THAT(log->trials(), SizeIs(1));
    ASSERT_TRUE(log->Append(Sample(1)).ok());
  }
  Result<TrialLog> again = TrialLog::Open(path, kPlan);
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_THAT(again->trials(), SizeIs(2));
  EXPECT_EQ(again->trials()[1].index, 1U);
}

TEST(TrialLog, NamesTheLineThatMakesNoSense) {
  const std::string good = FormatTrial(Sample(0));
  for (const std::string& bad : {std::string("nonsense\n"), std::string("{}\n"), std::string("\n"), std::string("{\"trial\":\"1\"}\n")}) {
    const Result<TrialLogContent> read = ParseTrialLog(good + bad, kPlan, "trials.jsonl");
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_THAT(read.status().message(), HasSubstr("trials.jsonl:2: expected one finished trial")) << bad;
  }
}

TEST(TrialLog, RefusesTrialsOfAnotherPlan) {
  std::vector<std::string> other = kPlan;
  other[1] = "cuMemAlloc#1=OUT_OF_MEMORY,after";
  EXPECT_FALSE(ParseTrialLog(FormatTrial(Sample(1)), other, "trials.jsonl").ok());
  EXPECT_FALSE(ParseTrialLog(FormatTrial(Sample(2)), {kPlan[0]}, "trials.jsonl").ok());
}

TEST(TrialLog, KeepsAttemptsThatMissed) {
  TrialResult stray = Sample(1);
  stray.stray = true;
  stray.missed = Missed::Elsewhere;
  TrialResult last = Sample(1);
  last.attempt = 2;
  last.missed = Missed::Unfired;
  last.unfired = last.faults;
  const Result<TrialLogContent> read = ParseTrialLog(FormatTrial(stray) + FormatTrial(last), kPlan, "trials.jsonl");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(read->trials, SizeIs(2));
  EXPECT_EQ(read->trials[0].missed, Missed::Elsewhere);
  EXPECT_TRUE(read->trials[0].stray);
  EXPECT_EQ(FormatTrial(read->trials[1]), FormatTrial(last));
  // The same attempt again, or a second one that counts, is no log of ours.
  EXPECT_FALSE(ParseTrialLog(FormatTrial(stray) + FormatTrial(stray), kPlan, "trials.jsonl").ok());
  EXPECT_FALSE(ParseTrialLog(FormatTrial(Sample(1)) + FormatTrial(last), kPlan, "trials.jsonl").ok());
}

TEST(TrialLog, RefusesATrialThatStandsTwice) {
  const std::string line = FormatTrial(Sample(1));
  const Result<TrialLogContent> read = ParseTrialLog(line + line, kPlan, "trials.jsonl");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr(":2: expected each trial once"));
}

}  // namespace
}  // namespace cuaudit::harness
