// SPDX-License-Identifier: MIT
// Programs whose fault-free runs differ, early or late, and programs whose threads take turns: the sweep goes on by call stack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::drift_test {
namespace {

using ::testing::HasSubstr;
using Command = std::vector<std::string>;

Audit Sweep(const std::string& isolation, const Command& program, const Command& options = {}) {
  Command arguments = {"sweep", "--isolation=" + isolation};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return RunAudit(arguments, program);
}

std::string Isolation(const Audit& audit) { return audit.report.is_null() ? "no report" : audit.report["totals"]["isolation"].dump(); }

TEST(Drift, FaultsAreAddressedByCallStackAndTheCaseIsReported) {
  const std::string counter = TemporaryDirectory() + "/counter";
  const Audit audit = Sweep("auto", {Program("drifting"), counter}, {"--jobs", "1", "--depth", "1", "--orphans=finding"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_THAT(audit.outcome.err, HasSubstr("two fault-free runs differ at call 3: cuEventCreate, then cuStreamCreate"));
  EXPECT_THAT(audit.findings(), HasSubstr("orphaned stream 1"));
  EXPECT_THAT(audit.report["findings"][0]["reproduce"].get<std::string>(), HasSubstr("--fault 'cuEventCreate@site="));
  bool noted = false;
  for (const nlohmann::json& note : audit.report["notes"]) noted = noted || note["rule"] == "drifting";
  EXPECT_TRUE(noted);
  EXPECT_THAT(Isolation(audit), HasSubstr("spawn: the fault is addressed by site"));
}

bool NotesDrift(const Audit& audit, const std::string& where) {
  for (const nlohmann::json& note : audit.report["notes"]) {
    if (note["rule"] == "drifting") return note["where"].get<std::string>().find(where) != std::string::npos;
  }
  return false;
}

std::uint64_t MadeAgain(const Audit& audit) {
  const nlohmann::json& skipped = audit.report["totals"]["skipped"];
  return skipped.value("attempts that missed their fault, each made again", std::uint64_t{0});
}

std::uint64_t NotCompared(const Audit& audit) {
  const nlohmann::json& skipped = audit.report["totals"]["skipped"];
  return skipped.value("drifting: calls from the first that differs on, whose order was not compared", std::uint64_t{0});
}

// Only late calls differ: the sweep goes on by call stack, and the report counts the calls that were not compared one by one.
TEST(Drift, LateInARunEndsNoSweep) {
  const std::string counter = TemporaryDirectory() + "/late";
  const Audit loses = Sweep("auto", {Program("drifting"), counter, "40"}, {"--depth", "1", "--prune", "all", "--orphans=finding"});
  EXPECT_EQ(loses.outcome.exit, 1) << loses.outcome.err;
  EXPECT_TRUE(NotesDrift(loses, "call 83: cuEventCreate, then cuStreamCreate"));
  EXPECT_THAT(loses.findings(), HasSubstr("orphaned stream 1"));
  EXPECT_EQ(NotCompared(loses), 7U) << "of the run that makes two calls more";
}

TEST(Drift, InAnotherOrderEachTimeEndsNoSweep) {
  const std::string counter = TemporaryDirectory() + "/shuffled";
  const Audit clean = Sweep("auto", {Program("drifting"), counter, "40", "shuffles"}, {"--depth", "1"});
  EXPECT_EQ(clean.outcome.exit, 0) << clean.outcome.err << clean.findings();
  EXPECT_TRUE(NotesDrift(clean, "call "));
  EXPECT_EQ(clean.report["totals"]["fired"], clean.report["totals"]["trials"]);
  EXPECT_GT(clean.report["totals"]["trials"], 80);
  EXPECT_GT(NotCompared(clean), 12U);
}

// The workers take turns in another order in every other run. Each fault still hits its intended place at the first attempt.
TEST(Drift, ThreadsThatTakeTurnsInAnotherOrderAreAddressedByCallStack) {
  const std::string counter = TemporaryDirectory() + "/turns";
  const Audit clean = Sweep("auto", {Program("turns"), counter, "clean", "2"}, {"--depth", "1"});
  EXPECT_EQ(clean.outcome.exit, 0) << clean.outcome.err << clean.findings();
  EXPECT_EQ(clean.result(), "clean");
  EXPECT_TRUE(NotesDrift(clean, "call 3: cuCtxPushCurrent from another call stack"));
  EXPECT_EQ(clean.report["totals"]["fired"], clean.report["totals"]["trials"]);
  EXPECT_EQ(MadeAgain(clean), 0U);
  EXPECT_EQ(clean.report["coverage"]["not_reached"].dump(), "[]");

  const Audit loses = Sweep("auto", {Program("turns"), counter, "loses", "2"}, {"--depth", "1"});
  EXPECT_EQ(loses.outcome.exit, 1) << loses.outcome.err;
  EXPECT_EQ(loses.findings(), "orphaned device_memory 1");
  const std::string finding = loses.report["findings"][0].dump();
  EXPECT_THAT(finding, HasSubstr("cuEventCreate@site="));
  EXPECT_THAT(loses.report["findings"][0]["acquired"].dump(), HasSubstr("\"right\""));
  EXPECT_THAT(loses.report["findings"][0]["acquired"].dump(), ::testing::Not(HasSubstr("\"left\"")));
  EXPECT_EQ(loses.report["totals"]["fired"], loses.report["totals"]["trials"]);
  EXPECT_EQ(MadeAgain(loses), 0U);
}

TEST(Drift, ThreadsWithoutCallStacksAreAddressedByCountAndThatIsSaid) {
  const std::string counter = TemporaryDirectory() + "/turns";
  const Audit audit = Sweep("auto", {Program("turns"), counter, "clean", "1"}, {"--depth", "1", "--stacks", "0", "--limit", "3"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["skipped"]["several threads make calls: faults are addressed by count, since there are no call stacks"],
            1);
}

// Of two faults the second one is for the thread that the first one hit, and counts from there.
TEST(Drift, TheWayBackOfOneThreadIsFailedWhateverTheOtherOneDoes) {
  const std::string counter = TemporaryDirectory() + "/turns";
  const Audit audit = Sweep("auto", {Program("turns"), counter, "stops", "1"}, {"--call", "cuEventCreate", "--call", "cuMemFree"});
  EXPECT_EQ(audit.findings(), "orphaned stream 1, orphaned stream 1, orphaned stream 1, orphaned stream 1")
      << "refused and carried out, on the left and on the right";
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_THAT(finding["reproduce"].get<std::string>(), HasSubstr("#+1=INVALID_CONTEXT,"));
  }
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
  EXPECT_EQ(MadeAgain(audit), 0U);
  const std::string line = audit.report["findings"][0]["reproduce"];
  EXPECT_EQ(RunCommand({"/bin/sh", "-c", line}).exit, 1) << line;
}

// Only some runs make certain calls, and a thread makes more of them in some. What cannot be addressed for sure is reported, not clean.
TEST(Drift, WhatOnlySomeRunsMakeIsTriedAndCounted) {
  const std::string counter = TemporaryDirectory() + "/turns";
  const Audit audit = Sweep("auto", {Program("turns"), counter, "sometimes", "1"}, {"--jobs", "1", "--depth", "1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "orphaned stream 1");
  EXPECT_THAT(audit.report["findings"][0].dump(), HasSubstr("\"sometimes\""));
  EXPECT_TRUE(NotesDrift(audit, "call ")) << "which call differs first depends on the run";
  EXPECT_EQ(audit.report["totals"]["skipped"]["first faults: not every fault-free run comes to the place that often"], 1);
  EXPECT_GT(MadeAgain(audit), 0U);
}

TEST(Drift, AFaultThatFollowsNeedsOneBeforeIt) {
  const Outcome refused =
      RunCommand({Tool(), "replay", "--driver=sim", "--fault", "cuMemFree#+1=INVALID_CONTEXT,refuse", "--", Program("defective")});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_EQ(LineCount(refused.err), 1U) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("expected a fault before one that counts from it"));
}

TEST(Drift, AFaultAddressedBySiteNeedsCallStacks) {
  const Outcome refused = RunCommand({Tool(), "replay", "--driver=sim", "--stacks", "0", "--fault",
                                      "cuEventCreate@site=0123456789abcdef#1=OUT_OF_MEMORY,refuse", "--", Program("defective")});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_EQ(LineCount(refused.err), 1U) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("--stacks"));
  const Audit elsewhere =
      RunAudit({"replay", "--fault", "cuEventCreate@site=0123456789abcdef#1=OUT_OF_MEMORY,refuse"}, {Program("defective")});
  EXPECT_EQ(elsewhere.outcome.exit, 3) << "nothing calls from there: " << elsewhere.outcome.err;
}

}  // namespace
}  // namespace cuaudit::e2e::drift_test
