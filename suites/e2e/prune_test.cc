// SPDX-License-Identifier: MIT
// What a sweep leaves out because another fault stands for it: nothing of the first order by default, never silently, and never what data
// can tell apart that no journal holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "suites/support/tool.h"

namespace cuaudit::e2e::prune_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

Audit Sweep(const std::string& mode, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "sweep");
  return RunAudit(std::move(more), {Program("equal_states"), mode});
}

std::uint64_t Pruned(const Audit& audit) { return audit.report.is_null() ? 0 : audit.report["coverage"]["pruned"].get<std::uint64_t>(); }

std::string Message(const Audit& audit) { return audit.report.is_null() ? "no report" : audit.report.value("message", ""); }

class EqualStates : public ::testing::TestWithParam<const char*> {};

TEST_P(EqualStates, AreAllTriedAsFirstFaults) {
  const Audit audit = Sweep(GetParam());
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_THAT(audit.report["findings"], SizeIs(1)) << audit.findings();
  EXPECT_FALSE(audit.report["findings"][0].contains("then"));
  EXPECT_EQ(Sweep("careful").outcome.exit, 0);
}

// The bet that the option is: lost here, and said.
TEST_P(EqualStates, ArePrunedOnlyWhenAskedForAndThatIsSaid) {
  const Audit audit = Sweep(GetParam(), {"--prune=all"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  EXPECT_GT(Pruned(audit), 0U);
  EXPECT_THAT(Message(audit), StartsWith("clean for "));
  EXPECT_THAT(Message(audit), EndsWith(" planned faults, " + std::to_string(Pruned(audit)) + " pruned as equal (--no-prune tries them)"));
  EXPECT_THAT(audit.outcome.err, HasSubstr(std::to_string(Pruned(audit)) + " pruned as equal (--no-prune tries them)"));
}

INSTANTIATE_TEST_SUITE_P(Modes, EqualStates, ::testing::Values("item", "planes", "cycles"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST(Pruning, ACopyOfALibraryIsTriedToo) {
  const std::string directory = TemporaryDirectory();
  const std::string library = ReadFile(Program("libe2e_equal_states_library.so"));
  std::vector<std::string> program = {Program("equal_states"), "library"};
  for (const char* const name : {"/one.so", "/other.so"}) {
    WriteFile(directory + name, library);
    program.push_back(directory + name);
  }
  const Audit audit = RunAudit({"sweep"}, program);
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "orphaned event 1");
}

TEST(Pruning, NoWayBackStandsForThatOfAnotherTurn) {
  const Audit audit = Sweep("back");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "orphaned stream 1, orphaned stream 1") << "the event's release fails in two ways";
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_EQ(finding["fault"]["text"], "cuEventRecord#2=INVALID_CONTEXT,refuse");
    ASSERT_THAT(finding["then"], SizeIs(1));
    EXPECT_EQ(finding["then"][0]["call"], "cuEventDestroy");
  }
}

TEST(Pruning, WhatIsNotTriedIsNeverCalledClean) {
  const Audit pruned = RunAudit({"sweep"}, {Program("reports"), "honest", "6"});
  const Audit all = RunAudit({"sweep", "--no-prune"}, {Program("reports"), "honest", "6"});
  EXPECT_EQ(pruned.outcome.exit, 0) << pruned.findings();
  EXPECT_EQ(all.outcome.exit, 0) << all.findings();
  if (Pruned(pruned) == 0) {
    EXPECT_EQ(Message(pruned), "");
    EXPECT_EQ(pruned.report["totals"]["trials"], all.report["totals"]["trials"]);
  } else {
    EXPECT_THAT(Message(pruned), HasSubstr(" pruned as equal "));
    EXPECT_LT(pruned.report["totals"]["trials"], all.report["totals"]["trials"]);
  }
  EXPECT_EQ(Pruned(all), 0U);
  EXPECT_THAT(Message(all), Not(HasSubstr("pruned")));
  EXPECT_EQ(pruned.report["coverage"]["reachable"], all.report["coverage"]["reachable"]) << "pruning makes nothing unreachable";
}

TEST(Pruning, APrunedFaultIsReachedOnlyWhereOneThatStandsForItFired) {
  EXPECT_EQ(Sweep("careful", {"--prune=all", "--coverage-at-least", "100"}).outcome.exit, 0);
  const Audit cut = Sweep("careful", {"--prune=all", "--coverage-at-least", "100", "--limit", "4"});
  EXPECT_EQ(cut.outcome.exit, 3) << cut.outcome.err;
  EXPECT_GT(Pruned(cut), 0U);
}

// Second faults that an equal unwinding stands for.
std::uint64_t Unwindings(const Audit& audit) {
  std::uint64_t pruned = 0;
  if (audit.report.is_null()) return pruned;
  for (const auto& [reason, count] : audit.report["totals"]["pruned"].items()) {
    if (reason.find("unwinding") != std::string::npos) pruned += count.get<std::uint64_t>();
  }
  return pruned;
}

Audit SweepFrames(const std::string& mode, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "sweep");
  return RunAudit(std::move(more), {Program("frames"), mode, "24"});
}

const Audit& SoundFrames() {
  static const Audit audit = SweepFrames("sound");
  return audit;
}

TEST(EqualUnwindings, StandForEachOtherAndThatIsSaid) {
  const Audit& audit = SoundFrames();
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  EXPECT_GT(Unwindings(audit), 100U);
  EXPECT_THAT(Message(audit), EndsWith(" planned faults, " + std::to_string(Pruned(audit)) + " pruned as equal (--no-prune tries them)"));
  const Audit lost = SweepFrames("gives_up");
  EXPECT_EQ(lost.outcome.exit, 1) << lost.outcome.err;
  EXPECT_GT(Unwindings(lost), 100U);
  ASSERT_THAT(lost.report["defects"], SizeIs(1)) << lost.findings();
}

// Frames of the first half release the same objects by the same calls and lose nothing.
TEST(EqualUnwindings, OneThatFindsSomethingOfItsOwnHasAllOfThemTried) {
  const Audit& sound = SoundFrames();
  const Audit audit = SweepFrames("later");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_THAT(audit.report["defects"], SizeIs(1)) << audit.findings();
  EXPECT_GT(audit.report["totals"]["trials"], sound.report["totals"]["trials"]);
  EXPECT_LT(Unwindings(audit), Unwindings(sound) / 2);
}

TEST(EqualUnwindings, ThoseThatReleaseOtherObjectsAreNotEqual) {
  const Audit audit = SweepFrames("two_kinds");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_GT(Unwindings(audit), 100U);
  ASSERT_THAT(audit.report["defects"], SizeIs(1)) << audit.findings();
}

TEST(EqualUnwindings, ShortProgramsAreTriedInFull) {
  const Audit audit = RunAudit({"sweep"}, {Program("defective")});
  EXPECT_EQ(Unwindings(audit), 0U);
  EXPECT_EQ(Pruned(SweepFrames("sound", {"--no-prune", "--call", "cuMemAlloc"})), 0U);
}

TEST(EqualUnwindings, TheReportHasEqualBytesWhateverFinishesFirstAndHoweverOftenItWasKilled) {
  const std::string directory = TemporaryDirectory();
  const auto sweep = [&](const std::string& work, const std::string& jobs) {
    const CommandResult outcome =
        RunCommand({Tool(), "sweep", "--driver=sim", "--work-dir", directory + "/" + work, "--jobs", jobs, "--format", "json", "--output",
                    directory + "/report.json", "--", Program("frames"), "later", "24"},
                   {{"SOURCE_DATE_EPOCH=1"}});
    EXPECT_EQ(outcome.exit, 1) << outcome.err;
    return ReadFile(directory + "/report.json");
  };
  const auto without_command = [](const std::string& report) {
    nlohmann::json json = nlohmann::json::parse(report);
    json.erase("header");
    json.erase("command");
    return json.dump();
  };
  const std::string whole = sweep("one", "1");
  EXPECT_EQ(without_command(sweep("many", "4")), without_command(whole));
  const std::string log = directory + "/one/trials.jsonl";
  const std::string lines = ReadFile(log);
  EXPECT_LE(lines.size(), 200 * static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n')))
      << "a trial takes 200 bytes at most";
  // In the first faults, in the samples of second ones, and in what they made necessary.
  for (const std::size_t size : {lines.size() / 3, lines.size() * 2 / 3, lines.size() * 9 / 10}) {
    WriteFile(log, lines.substr(0, size));
    EXPECT_EQ(sweep("one", "1"), whole) << size;
  }
}

TEST(Pruning, TakesOneWordOrNone) {
  EXPECT_EQ(Sweep("careful", {"--prune=first"}).outcome.exit, 2);
  const Audit both = Sweep("careful", {"--prune=all", "--no-prune"});
  EXPECT_EQ(both.outcome.exit, 2);
  EXPECT_THAT(both.outcome.err, HasSubstr("expected --prune or --no-prune, not both"));
}

class Interpreted : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifdef CUAUDIT_INSTRUMENTED
    GTEST_SKIP() << "an instrumented drop-in cannot enter a plain interpreter";
#endif
    if (access(kPython, X_OK) != 0) GTEST_SKIP() << "no " << kPython;
  }
  static constexpr const char* kPython = "/usr/bin/python3";
};

TEST_P(Interpreted, CodeIsNotTakenForOneLine) {
  const Audit audit = RunAudit({"sweep"}, {kPython, CUAUDIT_EQUAL_STATES_PY, GetParam()});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  bool lost = false;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    lost = lost || (finding["kind"] == "stream" && finding.contains("then") == (GetParam() == std::string("back")) &&
                    finding["fault"]["call"] == "cuEventCreate" && finding["fault"]["occurrence"] == 2);
  }
  EXPECT_TRUE(lost) << audit.findings();
}

TEST_P(Interpreted, CodeIsNotPrunedInTheFirstOrderEvenWhenAskedFor) {
  const Audit audit = RunAudit({"sweep", "--prune=all", "--depth=1"}, {kPython, CUAUDIT_EQUAL_STATES_PY, GetParam()});
  EXPECT_EQ(audit.outcome.exit, GetParam() == std::string("first") ? 1 : 0) << audit.outcome.err;
  EXPECT_EQ(Pruned(audit), 0U);
  EXPECT_EQ(audit.report["totals"]["trials"], audit.calls());
}

INSTANTIATE_TEST_SUITE_P(Modes, Interpreted, ::testing::Values("first", "back"), [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace cuaudit::e2e::prune_test
