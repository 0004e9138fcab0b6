// SPDX-License-Identifier: MIT
// The result of a shard: what comes back, and what is refused. suites/e2e/shards_test.cc has the commands.
#include "harness/shards/shard_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness {
namespace {

using ::testing::HasSubstr;

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
  const Result<std::vector<TrialResult>> trials = ReadPiece(*shard, shard->pieces.front());
  ASSERT_TRUE(trials.ok()) << trials.status().message();
  ASSERT_EQ(trials->size(), 3U);
  EXPECT_EQ(trials->at(2).faults, TrialOf(2).faults);
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
  const Result<std::vector<TrialResult>> trials = ReadPiece(*shard, shard->pieces.front());
  ASSERT_FALSE(trials.ok());
  EXPECT_THAT(trials.status().message(), HasSubstr("1.shard: at byte 0: expected trial 0"));
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
