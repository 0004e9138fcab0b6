// SPDX-License-Identifier: MIT
// What a program leaves when nothing fails, and what it gives back that it never took.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "suites/support/tool.h"

namespace cuaudit::e2e::left_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// `cuaudit run`: what a program leaves when nothing fails is never clean, unless it is accepted.

Audit Stays(const std::vector<std::string>& words, std::vector<std::string> options = {}) {
  options.insert(options.begin(), "run");
  std::vector<std::string> program = {Program("stays")};
  program.insert(program.end(), words.begin(), words.end());
  return RunAudit(options, program);
}

// "2 stream of open_stream", one for each finding; all findings are left_at_exit.
std::vector<std::string> Left(const Audit& audit) {
  std::vector<std::string> left;
  if (audit.report.is_null()) return {"no report: " + audit.outcome.err};
  for (const auto& finding : audit.report["findings"]) {
    EXPECT_EQ(finding["rule"], "left_at_exit") << finding.dump();
    left.push_back(std::to_string(finding["count"].get<int>()) + " " + finding["kind"].get<std::string>() + " of " +
                   finding["acquired"]["stack"][0]["function"].get<std::string>());
  }
  return left;
}

std::string Text(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void ExpectClean(const Audit& audit) {
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
}

TEST(Left, ObjectsGoneWithTheirContextAreLeft) {
  const Audit audit = Stays({"stream", "stream", "released", "event"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "left");
  EXPECT_THAT(Left(audit), ElementsAre("2 stream of open_stream", "1 event of open_event"));
  for (const auto& finding : audit.report["findings"]) EXPECT_EQ(finding["detail"], "gone with its context");
  EXPECT_EQ(audit.report["defects"].size(), 2U);
  EXPECT_THAT(audit.report["message"].get<std::string>(), AllOf(HasSubstr("2 stream acquired by cuStreamCreate < open_stream "),
                                                                HasSubstr("1 event acquired by cuEventCreate < open_event ")));
}

TEST(Left, ObjectsOfAContextThatStaysAreLeftWithIt) {
  const Audit audit = Stays({"stream", "held"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_THAT(Left(audit), UnorderedElementsAre("1 primary_context of start", "1 stream of open_stream"));
  for (const auto& finding : audit.report["findings"]) EXPECT_FALSE(finding.contains("detail")) << finding.dump();
}

TEST(Left, NothingLeftIsClean) { ExpectClean(Stays({"released"})); }

TEST(Left, EveryFormatSaysSo) {
  const std::string file = TemporaryDirectory() + "/junit.xml";
  const CommandResult text = RunCommand({Tool(), "run", "--driver=sim", "--format", "text", "--format", "junit=" + file, "--",
                                         Program("stays"), "stream", "stream", "event"});
  EXPECT_EQ(text.exit, 1) << text.err;
  EXPECT_THAT(
      text.out,
      StartsWith("cuaudit run on the simulated driver: left: 3 objects, 2 defects\n  2 stream acquired by cuStreamCreate < open_stream "));
  EXPECT_THAT(text.out,
              HasSubstr("  1. left_at_exit: 2 stream\n     never released: gone with its context\n     open_stream acquired it\n"));
  const std::string junit = Text(file);
  EXPECT_THAT(junit, AllOf(HasSubstr("tests=\"3\" failures=\"2\" errors=\"0\""), HasSubstr("<property name=\"outcome\" value=\"left\" />"),
                           HasSubstr("classname=\"cuaudit.run.left_at_exit\"")));
}

TEST(Left, IsAllowedWhenAsked) {
  const Audit audit = Stays({"stream", "held"}, {"--allow-left"});
  ExpectClean(audit);
  ASSERT_EQ(audit.report["notes"].size(), 2U);
  for (const auto& note : audit.report["notes"]) EXPECT_EQ(note["rule"], "process_lifetime");
}

TEST(Left, IsAllowedWhereItIsSuppressed) {
  const std::string directory = TemporaryDirectory();
  const std::string report = directory + "/report.json";
  const std::string accepted = directory + "/accepted.toml";
  const How how = {.environment = {"CUAUDIT_TODAY=2031-01-01"}};
  const Audit audit = Stays({"stream"});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  WriteFile(report, audit.report.dump());
  const CommandResult written = RunCommand({Tool(), "suppress", audit.report["defects"][0]["fingerprint"].get<std::string>(), "--report",
                                            report, "--reason=kept", "--owner=ann", "--until=2031-01-31", "--suppressions", accepted},
                                           how);
  ASSERT_EQ(written.exit, 0) << written.err;
  ExpectClean(RunAudit({"run", "--suppressions", accepted}, {Program("stays"), "stream"}, how));
  const Audit more = RunAudit({"run", "--suppressions", accepted}, {Program("stays"), "stream", "event"}, how);
  EXPECT_EQ(more.outcome.exit, 1) << more.outcome.err;
  EXPECT_EQ(more.result(), "left");
}

// Of a program that failed it is unknown what it would have released.
TEST(Left, AProgramThatFailsIsNoRunToJudge) {
  const Audit audit = Stays({"stream", "fails"});
  EXPECT_EQ(audit.outcome.exit, 3);
  EXPECT_EQ(audit.result(), "error");
  EXPECT_THAT(audit.report["findings"], IsEmpty());
  EXPECT_EQ(Stays({"stream", "fails"}, {"--expect-exit=3"}).result(), "left");
}

TEST(Left, WhatIsWrongComesFirst) {
  const Audit audit = RunAudit({"run"}, {Program("misuse"), "wrong_order"});
  EXPECT_EQ(audit.outcome.exit, 1);
  EXPECT_EQ(audit.result(), "findings");
}

TEST(Left, AChildThatWasKilledLeavesWhatItHeld) {
  const Audit audit = Stays({"child"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_THAT(Left(audit), UnorderedElementsAre("1 primary_context of start", "1 stream of open_stream"));
  for (const auto& finding : audit.report["findings"])
    EXPECT_EQ(finding["detail"], "held by a child process that still ran, or ended by exec or by a signal") << finding.dump();
}

TEST(Threads, ThatStillRunAtExitAreToldWithWhatTheyHold) {
  const Audit audit = Stays({"daemon", "held"}, {"--allow-left"});
  ExpectClean(audit);
  const Audit left = Stays({"daemon", "ended"});
  EXPECT_EQ(left.result(), "left");
  EXPECT_THAT(Left(left), ElementsAre("1 event of hold_event", "1 event of hold_event"));
  EXPECT_EQ(left.report["findings"][0]["detail"], "gone with its context; acquired by a thread that still ran when the program exited");
  EXPECT_EQ(left.report["findings"][1]["detail"], "gone with its context");
  const CommandResult text = RunCommand({Tool(), "run", "--driver=sim", "--", Program("stays"), "daemon"});
  EXPECT_THAT(text.out, HasSubstr("acquired by a thread that still ran when the program exited"));
}

TEST(Threads, ThatWereJoinedDoNotStillRun) {
  for (int turn = 0; turn < 10; ++turn) {
    const Audit left = Stays({"ended"});
    ASSERT_THAT(Left(left), ElementsAre("1 event of hold_event"));
    EXPECT_EQ(left.report["findings"][0]["detail"], "gone with its context");
  }
}

TEST(Lifetime, ATableThatWasWrittenAllowsTheSameRun) {
  const std::string file = TemporaryDirectory() + "/keeps";
  const Audit first = Stays({"stream", "event", "stream"}, {"--write-lifetime", file});
  EXPECT_EQ(first.outcome.exit, 1) << "a run is not clean because a table was written";
  EXPECT_EQ(first.result(), "left");
  EXPECT_THAT(Text(file), AllOf(StartsWith("# "), HasSubstr("\n2 stream v2-"), HasSubstr("  cuStreamCreate < open_stream\n"),
                                HasSubstr("\n1 event v2-"), HasSubstr("  cuEventCreate < open_event\n")));
  const Audit again = Stays({"stream", "event", "stream"}, {"--lifetime", file});
  ExpectClean(again);
  ASSERT_EQ(again.report["notes"].size(), 2U);
  for (const auto& note : again.report["notes"]) {
    EXPECT_EQ(note["rule"], "process_lifetime");
    EXPECT_THAT(note["detail"].get<std::string>(), HasSubstr("kept on purpose (--lifetime)"));
  }
}

TEST(Lifetime, ANewLeakIsSeenBesideWhatIsKept) {
  const std::string file = TemporaryDirectory() + "/keeps";
  (void)Stays({"stream"}, {"--write-lifetime", file});
  const Audit elsewhere = Stays({"stream", "event"}, {"--lifetime", file});
  EXPECT_EQ(elsewhere.outcome.exit, 1);
  EXPECT_THAT(Left(elsewhere), ElementsAre("1 event of open_event"));
  const Audit more = Stays({"stream", "stream"}, {"--lifetime", file});
  EXPECT_EQ(more.outcome.exit, 1);
  EXPECT_THAT(Left(more), ElementsAre("2 stream of open_stream"));
  EXPECT_EQ(more.report["findings"][0]["detail"], "gone with its context; 2 are left here, and --lifetime allows 1");
  ExpectClean(Stays({"stream"}, {"--lifetime", file}));
  const Audit less = Stays({"released"}, {"--lifetime", file});
  ExpectClean(less);
  EXPECT_THAT(less.outcome.err, HasSubstr("--lifetime: " + file + ": line 2: nothing of it was left"));
}

TEST(Lifetime, ABadTableIsOneLine) {
  const std::string directory = TemporaryDirectory();
  const auto said = [&](const std::string& text) {
    std::ofstream(directory + "/keeps") << text;
    const CommandResult outcome = RunCommand({Tool(), "run", "--driver=sim", "--lifetime", directory + "/keeps", "--", Program("stays")});
    EXPECT_EQ(outcome.exit, 2) << text;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(said("# kept\n\ntwo stream v2-0123456789abcdef\n"), HasSubstr("keeps: line 3: expected a number of objects"));
  EXPECT_THAT(said("2 steam v2-0123456789abcdef\n"), HasSubstr("line 1: expected a kind of object"));
  EXPECT_THAT(said("2 stream 0123456789abcdef"), HasSubstr("line 1: expected the fingerprint of a place"));
  EXPECT_THAT(said("18446744073709551615 stream v2-0123456789abcdef\n18446744073709551615 stream v2-0123456789abcdef\n"),
              HasSubstr("line 1: expected a number of objects (at most 1000000000)"));
  const CommandResult endless = RunCommand({Tool(), "run", "--driver=sim", "--lifetime", "/dev/zero", "--", Program("stays")});
  EXPECT_EQ(endless.exit, 2);
  EXPECT_THAT(endless.err, HasSubstr("--lifetime: /dev/zero: expected a regular file"));
  const CommandResult none = RunCommand({Tool(), "run", "--driver=sim", "--lifetime", directory + "/none", "--", Program("stays")});
  EXPECT_EQ(none.exit, 2);
  EXPECT_THAT(none.err, HasSubstr(directory + "/none"));
  const CommandResult both =
      RunCommand({Tool(), "run", "--driver=sim", "--allow-left", "--write-lifetime", directory + "/x", "--", Program("stays")});
  EXPECT_EQ(both.exit, 2);
  EXPECT_THAT(both.err, HasSubstr("not both"));
}

TEST(Lifetime, NoTableIsWrittenForAProgramThatFailed) {
  const std::string directory = TemporaryDirectory();
  const Audit audit = Stays({"stream", "fails"}, {"--write-lifetime", directory + "/keeps"});
  EXPECT_EQ(audit.outcome.exit, 3);
  EXPECT_THAT(audit.outcome.err, HasSubstr("--write-lifetime: nothing was written, because the program failed"));
  EXPECT_FALSE(std::ifstream(directory + "/keeps").is_open());
  const CommandResult outcome =
      RunCommand({Tool(), "run", "--driver=sim", "--write-lifetime", directory + "/none/keeps", "--", Program("stays")});
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--write-lifetime: "), HasSubstr("no such directory")));
}

TEST(Lifetime, ATableThatCannotBeWrittenCostsNothingOfTheReport) {
  const Audit audit = Stays({"stream", "event"}, {"--write-lifetime=/dev/full"});
  EXPECT_EQ(audit.outcome.exit, 125);
  EXPECT_EQ(audit.result(), "left");
  EXPECT_THAT(Left(audit), ElementsAre("1 stream of open_stream", "1 event of open_event"));
  EXPECT_THAT(audit.outcome.err, HasSubstr("cuaudit: --write-lifetime: /dev/full: cannot write: No space left on device\n"));
}

// Deficits: programs that give back on a failing path what they did not take (programs/deficit.c), and the same programs
// repaired. The repaired ones are silent.

struct Way {
  const char* mode;
  const char* finding;
  const char* call;   // the call that gives back too much
  const char* fault;  // the fault that shows it
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.mode; }

class Deficit : public ::testing::TestWithParam<Way> {
 protected:
  static Audit Sweep(const char* form, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"sweep", "--host"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return RunAudit(arguments, {Program("deficit"), GetParam().mode, form});
  }
};

TEST_P(Deficit, IsFoundAtTheCallThatGivesBackTooMuch) {
  const Audit audit = Sweep("wrong", {"--depth", "1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  ASSERT_EQ(audit.report["defects"].size(), 1U) << audit.report["defects"].dump(1);
  EXPECT_THAT(audit.findings(), ::testing::StartsWith(GetParam().finding));
  for (const nlohmann::json& finding : audit.report["findings"]) EXPECT_EQ(finding["where"], GetParam().call);
  EXPECT_EQ(audit.report["findings"][0]["fault"]["call"], GetParam().fault);
}

TEST_P(Deficit, TheRepairedProgramIsSilent) {
  const Audit audit = Sweep("right");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  const Audit other = Sweep("right", {"--how", "after,persist,burst:2"});
  EXPECT_EQ(other.outcome.exit, 0) << other.outcome.err << other.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, Deficit,
                         ::testing::Values(Way{"pop", "deficit context_stack_entry 1", "cuCtxPopCurrent", "cuCtxPushCurrent"},
                                           Way{"pop_twice", "deficit context_stack_entry 1", "cuCtxPopCurrent", "cuMemAlloc"},
                                           Way{"release", "deficit primary_context 1", "cuDevicePrimaryCtxRelease",
                                               "cuDevicePrimaryCtxRetain"},
                                           Way{"release_twice", "deficit primary_context 1", "cuDevicePrimaryCtxRelease", "cuMemAlloc"},
                                           Way{"null", "null_released graph 1", "cuGraphDestroy", "cuStreamCreate"},
                                           Way{"close_given", "deficit file_descriptor 1", "close", "cuMemAlloc"},
                                           Way{"close_again", "deficit file_descriptor 1", "close", "cuMemAlloc"},
                                           Way{"close_anothers", "deficit file_descriptor 1", "close", "cuMemAlloc"}),
                         [](const auto& test) { return std::string(test.param.mode); });

// A program that pops its own context on a failing path, by a helper that also pops others, and works that pop it by mistake.
class Leaves : public ::testing::TestWithParam<const char*> {
 protected:
  static Audit Sweep(const char* form, const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"sweep"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return RunAudit(arguments, {Program("leaves"), GetParam(), form});
  }
};

TEST_P(Leaves, ItsOwnContextByRight) {
  const Audit audit = Sweep("right", {});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  const Audit other = Sweep("right", {"--how", "after,persist,burst:2"});
  EXPECT_EQ(other.outcome.exit, 0) << other.outcome.err << other.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, Leaves, ::testing::Values("destroys", "tears_down", "works_on"));

using LeavesByMistake = Leaves;

TEST_P(LeavesByMistake, WhatItsCallerMade) {
  const Audit audit = Sweep("wrong", {"--depth", "1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  ASSERT_EQ(audit.report["defects"].size(), 1U) << audit.report["defects"].dump(1);
  EXPECT_EQ(audit.findings(), "deficit context_stack_entry 1");
  EXPECT_EQ(audit.report["findings"][0]["where"], "cuCtxPopCurrent");
}

TEST_P(LeavesByMistake, AndNothingOnceRepaired) {
  const Audit audit = Sweep("right", {});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, LeavesByMistake, ::testing::Values("failed_push", "own_pop", "twice"));

}  // namespace
}  // namespace cuaudit::e2e::left_test
