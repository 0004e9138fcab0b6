// SPDX-License-Identifier: MIT
// Second faults, recovery, what programs say, benign faults, fault coverage and shrinking: one lifecycle, one thing wrong at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::depth_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Audit Sweep(const std::string& mode, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "sweep");
  return RunAudit(std::move(more), {Program("reports"), mode});
}

std::uint64_t Count(const Audit& audit, const char* map, const std::string& key) {
  return audit.report.is_null() ? 0 : audit.report["totals"][map].value(key, std::uint64_t{0});
}

TEST(SecondFaults, FindWhatOnlyTheWayBackFromAFailureLoses) {
  const Audit first = Sweep("twice", {"--depth", "1"});
  EXPECT_EQ(first.outcome.exit, 0) << first.findings();
  const Audit second = Sweep("twice");
  EXPECT_EQ(second.outcome.exit, 1) << second.outcome.err;
  ASSERT_EQ(second.findings(), "orphaned device_memory 1");
  const nlohmann::json& finding = second.report["findings"][0];
  EXPECT_EQ(finding["fault"]["call"], "cuMemsetD8Async");
  ASSERT_THAT(finding["then"], SizeIs(1));
  EXPECT_EQ(finding["then"][0]["call"], "cuStreamSynchronize");
  EXPECT_THAT(finding["then"][0]["stack"].dump(), HasSubstr("\"give_back\""));

  const Audit replay =
      RunAudit({"replay", "--fault", finding["fault"]["text"], "--fault", finding["then"][0]["text"]}, {Program("reports"), "twice"});
  EXPECT_EQ(replay.findings(), second.findings());
  EXPECT_EQ(replay.report["findings"][0]["fingerprint"], finding["fingerprint"]);
}

TEST(SecondFaults, AreCountedWhereOneStandsForMany) {
  const Audit pruned = Sweep("honest", {"--prune=all"});
  EXPECT_EQ(pruned.outcome.exit, 0) << pruned.findings();
  EXPECT_GT(Count(pruned, "pruned", "first faults: same place and state as an earlier one"), 0U);
  EXPECT_GT(Count(pruned, "pruned", "second faults: same place and state as an earlier one"), 0U);
  const Audit all = Sweep("honest", {"--no-prune"});
  EXPECT_EQ(all.outcome.exit, 0) << all.findings();
  EXPECT_FALSE(all.report["totals"].contains("pruned"));
  EXPECT_GT(all.report["totals"]["trials"], pruned.report["totals"]["trials"]);
}

TEST(SecondFaults, ALoopIsNotTriedTurnByTurnWhenAskedFor) {
  const Audit few = RunAudit({"sweep", "--prune=all"}, {Program("reports"), "honest", "10"});
  const Audit many = RunAudit({"sweep", "--prune=all"}, {Program("reports"), "honest", "100"});
  EXPECT_EQ(few.report["totals"]["trials"], many.report["totals"]["trials"]);
  EXPECT_GT(many.calls(), 5 * few.calls());
}

TEST(SecondFaults, GoOnWhereAKilledSweepStoppedWithEqualBytes) {
  const std::string directory = TemporaryDirectory();
  const auto sweep = [&](const std::string& work, const std::string& output) {
    return RunCommand({Tool(), "sweep", "--driver=sim", "--work-dir", directory + "/" + work, "--format", "json", "--output",
                       directory + "/" + output, "--", Program("reports"), "twice"},
                      {{"SOURCE_DATE_EPOCH=1"}});
  };
  EXPECT_EQ(sweep("sweep", "whole.json").exit, 1);
  const std::string log = directory + "/sweep/trials.jsonl";
  const std::string lines = ReadFile(log);
  const std::string whole = ReadFile(directory + "/whole.json");
  ASSERT_GT(LineCount(lines), 20U);
  // Cut at a quarter, a half and three quarters: in the first round, in the second, and in the middle of a line.
  for (const std::size_t size : {lines.size() / 4, lines.size() / 2, lines.size() * 3 / 4}) {
    WriteFile(log, lines.substr(0, size));
    const CommandResult again = sweep("sweep", "again.json");
    EXPECT_EQ(again.exit, 1) << again.err;
    EXPECT_THAT(again.err, HasSubstr("going on: "));
    EXPECT_EQ(ReadFile(directory + "/again.json"), whole) << size;
  }
  WriteFile(log, lines);
  const CommandResult other =
      RunCommand({Tool(), "sweep", "--driver=sim", "--depth", "1", "--work-dir", directory + "/sweep", "--", Program("reports"), "twice"});
  EXPECT_EQ(other.exit, 2) << "another depth is another plan";
}

struct Said {
  const char* mode;
  const char* rule;
  const char* verdict;
};
void PrintTo(const Said& said, std::ostream* out) { *out << said.mode; }

class WhatIsSaid : public ::testing::TestWithParam<Said> {};

TEST_P(WhatIsSaid, IsHeldAgainstWhatHappened) {
  // The first cycle will do: what the second one says in mode spurious is wrong after a fault, too.
  const Audit audit = Sweep(GetParam().mode, {"--depth", "1", "--prune=all"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  ASSERT_FALSE(audit.report["findings"].empty());
  for (const nlohmann::json& finding : audit.report["findings"]) EXPECT_EQ(finding["rule"], GetParam().rule) << finding.dump(1);
  EXPECT_GT(Count(audit, "verdicts", GetParam().verdict), 0U) << audit.verdicts();
}

INSTANTIATE_TEST_SUITE_P(Every, WhatIsSaid,
                         ::testing::Values(Said{"swallow", "swallowed", "misreported"}, Said{"wrong", "wrong_code", "misreported"},
                                           Said{"output", "output_on_failure", "misreported"}, Said{"spurious", "spurious_failure", "pass"},
                                           Said{"stuck", "not_recovered", "not_recovered"}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(Recovery, IsCheckedAndCountedWhereCyclesAreMarked) {
  const Audit marked = Sweep("honest");
  EXPECT_EQ(marked.outcome.exit, 0) << marked.findings();
  EXPECT_GT(marked.report["totals"]["recovery_checked"], 0);
  const Audit unmarked = RunAudit({"sweep"}, {Program("client_linked")});
  EXPECT_FALSE(unmarked.report["totals"].contains("recovery_checked"));
  EXPECT_EQ(Count(unmarked, "skipped", "recovery not checked: the program marks no cycles"), unmarked.report["totals"]["trials"]);
}

TEST(Recovery, ARetryThatSucceedsIsAbsorbed) {
  const Audit audit = Sweep("retry");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  EXPECT_GT(Count(audit, "verdicts", "absorbed"), 0U);
}

TEST(Recovery, WhatIsKeptAndReleasedLaterIsRetainedForRetry) {
  const Audit keeps = Sweep("keeps");
  EXPECT_EQ(keeps.outcome.exit, 0) << keeps.findings();
  EXPECT_GT(Count(keeps, "verdicts", "retained_for_retry"), 0U) << keeps.verdicts();
  const Audit honest = Sweep("honest");
  EXPECT_EQ(Count(honest, "verdicts", "retained_for_retry"), 0U) << "it forgets the stream";
  EXPECT_GT(Count(honest, "verdicts", "release_refused"), 0U);
}

TEST(Benign, AnUndeclaredOptionalFeatureIsSwallowed) {
  const Audit audit = Sweep("optional", {"--depth", "1"});
  EXPECT_EQ(audit.findings(), "swallowed  1");
}

TEST(Benign, ADeclaredOneIsReportedApart) {
  for (const char* const declared : {"cuMemPoolCreate", "cuMemPoolCreate@make_pool", "cuMemPoolCreate@reports!make_pool"}) {
    const Audit audit = Sweep("optional", {"--depth", "1", "--benign", declared});
    EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << declared;
    EXPECT_EQ(Count(audit, "verdicts", "benign"), 3U) << audit.verdicts();
  }
  const Audit both = Sweep("optional", {"--benign", "cuMemPoolCreate"});
  EXPECT_EQ(both.outcome.exit, 0) << "second faults after a benign one are judged by themselves: " << both.findings();
}

TEST(Benign, ADeclarationThatIsNotAbsorbedIsAFinding) {
  const Audit audit = Sweep("honest", {"--depth", "1", "--benign", "cuMemAlloc@allocate"});
  EXPECT_EQ(audit.findings(), "benign_not_absorbed  1");
}

TEST(Benign, ADeclarationThatNothingHitsIsAFinding) {
  const Audit audit = Sweep("honest", {"--depth", "1", "--benign", "cuMemPoolCreate@make_pool"});
  EXPECT_EQ(audit.findings(), "benign_never_fired  1");
  const Audit narrowed = Sweep("honest", {"--depth", "1", "--call", "cuMemAlloc", "--benign", "cuMemPoolCreate@make_pool"});
  EXPECT_EQ(narrowed.outcome.exit, 0) << "not all was tried: " << narrowed.findings();
}

TEST(Benign, NamesWhatIsWrongWithADeclaration) {
  for (const char* const wrong : {"cuMemPoolCreate_v2", "make_pool", "cuMemPoolCreate@", "cuMemPoolCreate@!f", "cuMemPoolCreate@m!"}) {
    const Audit audit = Sweep("honest", {"--benign", wrong});
    EXPECT_EQ(audit.outcome.exit, 2) << wrong;
    EXPECT_THAT(audit.outcome.err, HasSubstr("--benign: '")) << wrong;
  }
}

TEST(Swallowed, AnExitStatusIsAPromiseWhenAskedFor) {
  const Audit relaxed = RunAudit({"sweep", "--call", "cuMemAllocManaged"}, {Program("silent"), "optional"});
  EXPECT_EQ(relaxed.outcome.exit, 0) << relaxed.findings();
  const Audit strict = RunAudit({"sweep", "--strict-exit", "--call", "cuMemAllocManaged"}, {Program("silent"), "optional"});
  EXPECT_EQ(strict.findings(), "swallowed  1");
  const Audit retry = RunAudit({"sweep", "--strict-exit", "--depth", "1", "--call", "cuMemAlloc"}, {Program("silent"), "retry"});
  EXPECT_EQ(retry.outcome.exit, 0) << "it got what it wanted: " << retry.findings();
}

TEST(Coverage, IsWholeWhereEverythingWasTried) {
  const Audit audit = Sweep("honest", {"--coverage-at-least", "100"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings();
  EXPECT_EQ(audit.report["coverage"]["reached"], audit.report["coverage"]["reachable"]);
  EXPECT_EQ(audit.report["coverage"]["percent"], 100.0);
  EXPECT_TRUE(audit.report["coverage"]["not_reached"].empty());
}

TEST(Coverage, SaysWhatWasNotReachedAndWhy) {
  const Audit audit = Sweep("honest", {"--call", "cuMemAlloc", "--coverage-at-least", "50.5"});
  EXPECT_EQ(audit.outcome.exit, 3) << audit.result();
  EXPECT_THAT(audit.report["message"].get<std::string>(), HasSubstr("wanted at least 50.5 % (--coverage-at-least)"));
  ASSERT_FALSE(audit.report["coverage"]["not_reached"].empty());
  for (const nlohmann::json& row : audit.report["coverage"]["not_reached"]) EXPECT_EQ(row["why"], "not chosen by --call");
  EXPECT_EQ(Sweep("honest", {"--call", "cuMemAlloc", "--coverage-at-least", "1"}).outcome.exit, 0);
}

TEST(Coverage, TakesAPercentage) {
  for (const char* const wrong : {"101", "-1", "9.55", "x", "1000.0", "."}) {
    const Audit audit = Sweep("honest", {"--coverage-at-least", wrong});
    EXPECT_EQ(audit.outcome.exit, 2) << wrong;
    EXPECT_THAT(audit.outcome.err, HasSubstr("expected a percentage")) << wrong;
  }
}

TEST(Shrink, ABurstBecomesAsShortAsItMayBe) {
  const Audit audit = RunAudit({"sweep", "--depth", "1", "--call", "cuMemsetD8Async", "--how", "burst:5"}, {Program("reports"), "swallow"});
  EXPECT_EQ(audit.findings(), "swallowed  1");
  const nlohmann::json& finding = audit.report["findings"][0];
  EXPECT_EQ(finding["fault"]["how"], "refuse");
  EXPECT_THAT(finding["shrunk_from"], ElementsAre("cuMemsetD8Async#1=INVALID_CONTEXT,refuse,burst=5"));
  EXPECT_THAT(finding["reproduce"].get<std::string>(), HasSubstr("#1=INVALID_CONTEXT,refuse'"));
  EXPECT_GT(audit.report["totals"]["shrinking_runs"], 0);
}

TEST(Shrink, IsLeftOutWhenAskedFor) {
  const Audit audit =
      RunAudit({"sweep", "--no-shrink", "--depth", "1", "--call", "cuMemsetD8Async", "--how", "burst:5"}, {Program("reports"), "swallow"});
  EXPECT_EQ(audit.report["findings"][0]["fault"]["how"], "refuse,burst=5");
  EXPECT_FALSE(audit.report["totals"].contains("shrinking_runs"));
}

TEST(Shrink, WhatOneFaultShowsIsNotToldOfTwo) {
  const Audit audit = RunAudit({"sweep"}, {Program("defective")});
  EXPECT_EQ(audit.findings(), "orphaned event 1, orphaned stream 1");
  for (const nlohmann::json& finding : audit.report["findings"]) EXPECT_FALSE(finding.contains("then")) << finding.dump(1);
}

}  // namespace
}  // namespace cuaudit::e2e::depth_test
