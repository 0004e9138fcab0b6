// SPDX-License-Identifier: MIT
// How a plan is cut into shards, and what its files refuse. suites/e2e/shards_test.cc has the commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/files.h"
#include "harness/shards/shard_file.h"
#include "harness/shards/shard_plan.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness {
namespace {

// How a plan is cut, and what its files refuse.

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
  return {.tool = std::string(ToolVersion()), .shards = shards, .cases = std::move(cases)};
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

TEST_F(TrialFile, IsNotLeftBehindUnfinished) {
  const std::string partial = path_ + ".partial";
  {
    Result<TrialLines> lines = TrialLines::Open(path_);
    ASSERT_TRUE(lines.ok());
    const TrialLines moved = std::move(*lines);
    EXPECT_TRUE(std::filesystem::exists(partial));
  }
  EXPECT_FALSE(std::filesystem::exists(partial));
  std::filesystem::create_symlink("/dev/full", partial);
  const Status full = TrialLines::Write(path_, {TrialOf({"cuInit#1=NOT_INITIALIZED,refuse"})}).status();
  EXPECT_THAT(full.message(), HasSubstr("a.trials.partial: "));
  EXPECT_FALSE(std::filesystem::is_symlink(partial));
  EXPECT_FALSE(std::filesystem::exists(path_));
  Write({TrialOf({"cuInit#1=NOT_INITIALIZED,refuse"})});
  EXPECT_TRUE(std::filesystem::exists(path_));
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

TEST(SlurmScript, AsksForAGpuWhereACaseRunsOnARealDriver) {
  const SlurmRequest request{"/bin/cuaudit", "/plan", "/here", {}};
  ShardPlan plan = PlanOf({CaseOf("a", 1, 1), CaseOf("b", 1, 1)}, 2);
  for (PlannedCase& one : plan.cases) one.options.driver = "sim";
  EXPECT_THAT(SlurmScript(plan, request), ::testing::Not(HasSubstr("--gpus")));
  plan.cases.back().options.driver = "real";
  EXPECT_THAT(SlurmScript(plan, request), HasSubstr(" --gpus=1"));
}

// The result of a shard: what comes back, and what is refused. suites/e2e/shards_test.cc has the commands.

class ShardFile : public ::testing::Test {
 protected:
  void SetUp() override {
    ShardPlan plan;
    plan.tool = std::string(ToolVersion());
    plan.shards = 2;
    for (const char* const name : {"a", "b"}) {
      PlannedCase& one = plan.cases.emplace_back();
      one.name = name;
      one.options.program = {"./program"};
      one.trials = 3;
    }
    plan.Seal();
    rounds_.push_back(plan);
    path_ = Write(0, "0.shard");
  }

  static TrialResult TrialOf(std::uint64_t index) {
    TrialResult trial;
    trial.index = index;
    trial.fired = true;
    trial.verdict = Verdict::Pass;
    trial.faults = {"cuInit#" + std::to_string(index + 1) + "=NOT_INITIALIZED,refuse"};
    return trial;
  }

  std::string Write(std::uint64_t number, const std::string& name, std::uint64_t skip = 0) const {
    const std::string path = dir_.path() + "/" + name;
    Result<ShardWriter> writer = ShardWriter::Open(path, rounds_.front(), number);
    EXPECT_TRUE(writer.ok());
    for (const Piece& piece : PiecesOf(rounds_.front(), number)) {
      std::vector<TrialResult> trials;
      for (std::uint64_t i = skip; i < piece.trials; ++i) trials.push_back(TrialOf(piece.from + i));
      EXPECT_TRUE(writer->Add(piece, trials, piece.trials, 3000).ok());
    }
    EXPECT_FALSE(ReadFile(path).ok()) << "an unfinished shard has its name";
    EXPECT_TRUE(writer->Finish().ok());
    return path;
  }

  const TemporaryDir dir_;
  Rounds rounds_;
  std::string path_;
};

TEST_F(ShardFile, ComesBackPieceByPiece) {
  const Result<Shard> shard = OpenShard(path_, rounds_);
  ASSERT_TRUE(shard.ok()) << shard.status().message();
  ASSERT_EQ(shard->pieces.size(), 1U);
  std::vector<TrialResult> trials;
  const Status read = ReadPiece(*shard, shard->pieces.front(), &trials);
  ASSERT_TRUE(read.ok()) << read.message();
  ASSERT_EQ(trials.size(), 3U);
  EXPECT_EQ(trials.at(2).faults, TrialOf(2).faults);
  EXPECT_EQ(MicrosecondsOfTrial(dir_.path(), "a"), 1000.0);
  EXPECT_EQ(MicrosecondsOfTrial(dir_.path(), "b"), std::nullopt);
}

TEST_F(ShardFile, IsRefusedAfterTheLeastChange) {
  const std::string whole = *ReadFile(path_);
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    std::string text = whole;
    text[i] = static_cast<char>(text[i] ^ 1);
    std::ofstream(path_) << text;
    const Result<Shard> shard = OpenShard(path_, rounds_);
    ASSERT_FALSE(shard.ok()) << i << ": " << text.substr(i < 20 ? 0 : i - 20, 40);
    EXPECT_EQ(shard.status().message().find('\n'), std::string::npos);
  }
  for (std::size_t size = 0; size < whole.size(); size += 5) {
    std::ofstream(path_) << whole.substr(0, size);
    EXPECT_FALSE(OpenShard(path_, rounds_).ok()) << size;
  }
  for (const std::string& text : {std::string("{\"end\":{}}\n"), std::string("{\"end\":[]}\n"), std::string(100000, '[') + "\n",
                                  "\x01\xff\n" + whole, std::string("\n"), whole + "\n"}) {
    std::ofstream(path_) << text;
    const Result<Shard> shard = OpenShard(path_, rounds_);
    ASSERT_FALSE(shard.ok());
    EXPECT_THAT(shard.status().message(), HasSubstr("0.shard: "));
  }
}

TEST_F(ShardFile, LacksNoTrial) {
  const std::string path = Write(1, "1.shard", 1);
  const Result<Shard> shard = OpenShard(path, rounds_);
  ASSERT_TRUE(shard.ok()) << shard.status().message();
  std::vector<TrialResult> trials;
  const Status read = ReadPiece(*shard, shard->pieces.front(), &trials);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.message(), HasSubstr("1.shard: at byte 0: expected trial 0"));
}

TEST_F(ShardFile, NobodyNeedsOneWithoutWork) {
  Rounds rounds = rounds_;
  ShardPlan& plan = rounds.front();
  plan.shards = 20;  // of 6 trials
  std::size_t needed = 0;
  for (std::uint64_t number = 0; number < plan.shards; ++number) needed += PiecesOf(plan, number).empty() ? 0 : 1;
  EXPECT_EQ(needed, 6U);
  EXPECT_EQ(CollectShards({}, rounds).faults.size(), needed);
  EXPECT_FALSE(CollectShards({}, rounds).Whole(plan));
  for (PlannedCase& one : plan.cases) one.trials = 0;
  EXPECT_TRUE(CollectShards({}, rounds).Whole(plan));
  plan.cases[1].cycles = "1,10";  // the first shard has them
  EXPECT_THAT(CollectShards({}, rounds).faults, ::testing::ElementsAre("shard 0 of round 1: missing"));
}

TEST_F(ShardFile, OfManyTheWrongAndTheMissingOnesAreNamed) {
  const ShardSet missing = CollectShards({path_}, rounds_);
  EXPECT_FALSE(missing.Whole(rounds_.front()));
  EXPECT_THAT(missing.faults, ::testing::ElementsAre("shard 1 of round 1: missing"));
  const std::string second = Write(1, "1.shard");
  EXPECT_TRUE(CollectShards({path_, second}, rounds_).faults.empty());
  const ShardSet twice = CollectShards({path_, second, path_}, rounds_);
  EXPECT_TRUE(twice.Whole(rounds_.front()));
  ASSERT_EQ(twice.faults.size(), 1U);
  EXPECT_THAT(twice.faults.front(), HasSubstr("duplicated: shard 0 of round 1"));
  const std::string other = Write(0, "other.shard", 1);
  const ShardSet unlike = CollectShards({path_, second, other}, rounds_);
  EXPECT_FALSE(unlike.Whole(rounds_.front()));
  EXPECT_THAT(unlike.faults, ::testing::Contains(HasSubstr("with other trials, and neither is used")));
}

TEST_F(ShardFile, OfAnotherPlanIsForeign) {
  Rounds others = rounds_;
  others.front().shards = 3;
  others.front().Seal();
  EXPECT_THAT(OpenShard(path_, others).status().message(), HasSubstr("foreign: of another plan"));
  others = rounds_;
  others.front().cases.front().subject = 7;
  EXPECT_THAT(OpenShard(path_, others).status().message(), HasSubstr("foreign: of another program, build or settings of a"));
  others = rounds_;
  others.front().tool = "0.0";
  EXPECT_THAT(OpenShard(path_, others).status().message(), HasSubstr("foreign: written by cuaudit "));
}

}  // namespace
}  // namespace cuaudit::harness
