// SPDX-License-Identifier: MIT
// How a plan is cut, and what its files refuse.
#include "harness/shards/shard_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/process/files.h"
#include "harness/shards/run_digest.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness {
namespace {

using ::testing::HasSubstr;

PlannedCase CaseOf(const std::string& name, std::uint64_t trials, std::uint64_t weight) {
  PlannedCase one;
  one.name = name;
  one.options.program = {"./program", "2"};
  one.trials = trials;
  one.weight = weight;
  return one;
}

ShardPlan PlanOf(std::vector<PlannedCase> cases, std::uint64_t shards) {
  ShardPlan plan;
  plan.tool = std::string(ToolVersion());
  plan.shards = shards;
  plan.cases = std::move(cases);
  return plan;
}

TEST(ShardPieces, HaveEachTrialOnceInOrderAndAboutTheSameWeight) {
  const std::vector<PlannedCase> cases = {CaseOf("a", 1000, 1), CaseOf("b", 0, 5), CaseOf("c", 3, 400), CaseOf("d", 77, 13)};
  const std::uint64_t whole = 1000 + 1200 + 1001;
  for (const std::uint64_t shards : {1U, 2U, 7U, 100U, 5000U}) {
    ShardPlan plan = PlanOf(cases, shards);
    for (PlannedCase& one : plan.cases) one.first = 40;  // of a later round
    std::vector<std::uint64_t> next(cases.size(), 40);
    for (std::uint64_t number = 0; number < shards; ++number) {
      std::uint64_t weight = 0;
      for (const Piece& piece : PiecesOf(plan, number)) {
        EXPECT_EQ(piece.from, next[piece.in_case]);
        EXPECT_NE(piece.trials, 0U);
        next[piece.in_case] += piece.trials;
        weight += piece.trials * cases[piece.in_case].weight;
      }
      EXPECT_LE(weight, whole / shards + 401) << shards;  // a trial belongs to one shard as a whole
    }
    for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(next[i], 40 + cases[i].trials) << shards;
  }
}

TEST(ShardPieces, LargeWeightsDoNotOverflow) {
  const std::uint64_t large = std::uint64_t{1} << 40U;
  const ShardPlan plan = PlanOf({CaseOf("a", large, large), CaseOf("b", large, large)}, kMostShards);
  const std::vector<Piece> last = PiecesOf(plan, kMostShards - 1);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last.front().from + last.front().trials, large);
}

TEST(ShardPlanFile, ComesBackAsItWas) {
  ShardPlan plan = PlanOf({CaseOf("a", 10, 3), CaseOf("b", 20, 4)}, 8);
  plan.cases[0].options.how = "refuse,after";
  plan.cases[0].options.environment = {"A=\"b\"\n\t"};
  plan.cases[0].options.deadline_ms = 1234;
  plan.cases[0].options.no_prune = true;
  plan.cases[1].cycles = "1,10";
  plan.cases[1].runs = {{"rehearsal-1.journal", 7}, {"rehearsal-2.journal", 8}};
  const Result<ShardPlan> read = ParseShardPlan(FormatShardPlan(plan), "round-1.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(FormatShardPlan(*read), FormatShardPlan(plan));
  plan.Seal();
  EXPECT_EQ(read->digest, plan.digest);
  EXPECT_EQ(read->cases[0].options.environment, plan.cases[0].options.environment);
  EXPECT_TRUE(read->cases[0].options.no_prune);
  EXPECT_EQ(read->cases[1].runs, plan.cases[1].runs);
  plan.cases[0].options.how = "after";
  plan.Seal();
  EXPECT_NE(read->digest, plan.digest);
}

TEST(ShardPlanFile, RefusesWhatItIsNot) {
  const std::string whole = FormatShardPlan(PlanOf({CaseOf("a", 10, 3)}, 8));
  const auto with = [&](const std::string& old, const std::string& fresh) {
    std::string text = whole;
    text.replace(text.find(old), old.size(), fresh);
    return text;
  };
  const std::string long_name(10000, 'x');
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string(100000, '['), whole.substr(0, whole.size() / 2),
        with("\"shards\": 8", "\"shards\": 0"), with("\"shards\": 8", "\"shards\": -1"), with("\"shards\": 8", "\"shards\": 1e30"),
        with("\"name\": \"a\"", "\"name\": \"../a\""), with("\"name\": \"a\"", "\"name\": \"" + long_name + "\""),
        with("\"weight\": 3", "\"weight\": 0"), with("\"runs\": {}", "\"runs\": {\"a\": \"12\"}"), with("\"runs\": {}", "\"runs\": [1]"),
        with("\"options\": {}", "\"options\": {\"unknown\": 1}"), with("\"options\": {}", "\"options\": {\"depth\": 9}"),
        with("\"options\": {}", "\"options\": {\"how\": 1}"), with("cuaudit.plan/1", "cuaudit.plan/2"),
        with("\"before\": \"0000", "\"before\": \"zzzz"), with("\"./program\"", "\"\xff\"")}) {
    const Result<ShardPlan> read = ParseShardPlan(text, "round-1.json");
    ASSERT_FALSE(read.ok()) << text.substr(0, 300);
    EXPECT_EQ(read.status().exit(), Exit::Usage);
    EXPECT_THAT(read.status().message(), HasSubstr("round-1.json: expected "));
    EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
  }
}

TEST(ShardPlanFile, RefusesWordsThatJsonCannotHold) {
  PlannedCase one = CaseOf("a", 1, 1);
  EXPECT_TRUE(CanBeWritten(one));
  one.options.program[1] = "\xff";
  EXPECT_FALSE(CanBeWritten(one));
}

TEST(FaultFreeRuns, AChangedMissingOrFurtherFileIsNamed) {
  const TemporaryDir dir;
  const std::string one = dir.path() + "/rehearsal-1.journal";
  const std::string two = dir.path() + "/rehearsal-2.journal";
  std::string bytes(300000, '\0');
  bytes[5] = 'a';
  bytes[200000] = 'b';
  std::ofstream(one) << bytes;
  std::ofstream(two) << "";
  std::filesystem::resize_file(two, 1 << 20);  // nothing but a hole
  const Result<RunDigests> planned = DigestRuns(dir.path());
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  EXPECT_EQ(planned->size(), 2U);
  std::ofstream(dir.path() + "/rehearsal-1.log") << "logs do not count";
  std::ofstream(two) << std::string(1 << 20, '\0');
  EXPECT_TRUE(CheckRuns(dir.path(), *planned).ok()) << "a copy without holes";
  const auto refused = [&] { return CheckRuns(dir.path(), *planned).message(); };
  for (const std::size_t at : {std::size_t{5}, std::size_t{65536}, std::size_t{200000}, bytes.size() - 1}) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    std::ofstream(one) << flipped;
    EXPECT_THAT(refused(), HasSubstr("rehearsal-1.journal: changed after the plan was made: expected digest ")) << at;
  }
  std::ofstream(one) << bytes << '\0';
  EXPECT_THAT(refused(), HasSubstr("rehearsal-1.journal: changed"));
  std::ofstream(one) << bytes;
  std::ofstream(dir.path() + "/rehearsal-3.journal") << bytes;
  EXPECT_THAT(refused(), HasSubstr("rehearsal-3.journal: expected only files that the plan was made with"));
  std::filesystem::remove(one);
  EXPECT_THAT(refused(), HasSubstr("rehearsal-1.journal: missing"));
  EXPECT_THAT(CheckRuns(dir.path() + "/none", *planned).message(), HasSubstr("cannot read the fault-free runs"));
}

class TrialFile : public ::testing::Test {
 protected:
  static PlannedTrial TrialOf(std::vector<std::string> faults) {
    PlannedTrial trial;
    trial.sites.assign(faults.size(), 0x1234);
    trial.faults = std::move(faults);
    return trial;
  }
  void Write(const std::vector<PlannedTrial>& trials) {
    one_.first = 5;
    one_.trials = trials.size();
    const Result<std::uint64_t> digest = TrialLines::Write(path_, trials);
    ASSERT_TRUE(digest.ok());
    one_.digest = *digest;
  }

  const TemporaryDir dir_;
  const std::string path_ = dir_.path() + "/round-2/a.trials";
  PlannedCase one_ = CaseOf("a", 0, 1);
};

TEST_F(TrialFile, GivesAShardItsTrials) {
  std::vector<PlannedTrial> trials = {TrialOf({"cuInit#1=NOT_INITIALIZED,refuse"}),
                                      TrialOf({"cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuMemFree#+1=INVALID_VALUE,after"}),
                                      TrialOf({"malloc#3=host_oom"})};
  trials[2].shrinks = true;
  Write(trials);
  const Result<std::vector<PlannedTrial>> read = TrialLines::Read(path_, one_, {0, 6, 2});
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].faults, trials[1].faults);
  EXPECT_EQ((*read)[0].sites, trials[1].sites);
  EXPECT_FALSE((*read)[0].shrinks);
  EXPECT_TRUE((*read)[1].shrinks);
}

TEST_F(TrialFile, NamesAFolderThatCannotBeMade) {
  std::ofstream(dir_.path() + "/round-2") << "a file";
  const Status written = TrialLines::Write(path_, {TrialOf({"cuInit#1=NOT_INITIALIZED,refuse"})}).status();
  EXPECT_EQ(written.exit(), Exit::Usage);
  EXPECT_THAT(written.message(), HasSubstr("/round-2: cannot create the directory: "));
}

TEST_F(TrialFile, IsRefusedWhenItIsAnother) {
  Write({TrialOf({"cuInit#1=NOT_INITIALIZED,refuse"}), TrialOf({"cuInit#1=NOT_INITIALIZED,after"})});
  const std::string whole = *ReadFile(path_);
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() / 2 + 3), whole + whole, std::string("\x01\xff\n"),
                                  "x site=0000000000001234\n" + whole, std::string(10000, 'a') + "\n" + whole}) {
    std::ofstream(path_) << text;
    const Result<std::vector<PlannedTrial>> read = TrialLines::Read(path_, one_, {0, 5, 2});
    ASSERT_FALSE(read.ok()) << text.substr(0, 100);
    EXPECT_THAT(read.status().message(), HasSubstr("a.trials"));
    EXPECT_THAT(read.status().message(), HasSubstr("expected "));
  }
}

}  // namespace
}  // namespace cuaudit::harness
