// SPDX-License-Identifier: MIT
// `cuaudit plan`, `run-shard`, `merge` and `slurm`: many machines write the report that one writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "suites/e2e/sharded_sweep.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::shards_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Shards, AnyNumberOfThemWritesTheReportOfOneMachine) {  // hundred_shards_test.py has more of them
  const Report local = Local();
  ASSERT_EQ(local.exit, 1) << local.err;
  for (const int shards : {1, 7}) {
    const std::string plan = TemporaryDirectory() + "/plan";
    const CommandResult planned = Plan(plan, {"--shards", std::to_string(shards)});
    ASSERT_EQ(planned.exit, 0) << planned.err;
    RunAll(plan, shards);
    const Report merged = Merge(plan);
    EXPECT_EQ(merged.exit, 1) << merged.err;
    EXPECT_EQ(merged.bytes, local.bytes) << shards;
    EXPECT_EQ(merged.trials, local.trials) << shards;
  }
}

TEST(Shards, APlanIsTheSameTwice) {
  const std::string directory = TemporaryDirectory();
  ASSERT_EQ(Plan(directory + "/a", {"--shards", "3"}).exit, 0);
  ASSERT_EQ(Plan(directory + "/b", {"--shards", "3"}).exit, 0);
  const auto plan_of = [&](const std::string& name) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(ReadFile(directory + name));
    for (auto& one : json["cases"]) EXPECT_FALSE(std::exchange(one["runs"], nullptr).empty());  // two runs differ in their times
    return json.dump(1);
  };
  EXPECT_EQ(plan_of("/a/round-1.json"), plan_of("/b/round-1.json"));
  EXPECT_EQ(ReadFile(directory + "/a/round-1/program.trials"), ReadFile(directory + "/b/round-1/program.trials"));
}

TEST(Shards, WithoutAPlanForThemTheMergeTriesSecondFaultsItself) {
  const std::string plan = TemporaryDirectory() + "/plan";
  ASSERT_EQ(Plan(plan, {"--shards", "2"}).exit, 0);
  for (const char* const i : {"0", "1"}) ASSERT_EQ(Cuaudit({"run-shard", plan, i}).exit, 0);
  const Report merged = Merge(plan);
  EXPECT_THAT(merged.err, HasSubstr("are run here"));
  EXPECT_EQ(merged.bytes, Local().bytes);
}

TEST(Shards, AProgramThatDriftsIsJudgedBesideTheRunsOfThePlan) {
  const std::string directory = TemporaryDirectory();
  const std::string plan = directory + "/plan";
  WriteFile(directory + "/counter", "");
  ASSERT_EQ(Plan(plan, {"--shards", "3", "--orphans=finding"}, {Program("drifting"), directory + "/counter"}).exit, 0);
  RunAll(plan, 3);
  const Report merged = Merge(plan);
  EXPECT_EQ(merged.exit, 1) << merged.err;
  EXPECT_THAT(merged.bytes, AllOf(HasSubstr("\"drifting\""), HasSubstr("\"orphaned\"")));
  EXPECT_EQ(Merge(plan).bytes, merged.bytes);
}

TEST(Shards, AGapInTheSecondRoundLeavesTheFirstOne) {
  const std::string plan = TemporaryDirectory() + "/plan";
  ASSERT_EQ(Plan(plan, {"--shards", "2"}).exit, 0);
  RunAll(plan, 2);
  std::filesystem::remove(Shard(plan, 2, 1));
  const Report second = Merge(plan);
  EXPECT_EQ(second.exit, 1);
  EXPECT_THAT(second.err, AllOf(HasSubstr("shard 1 of round 2: missing"), Not(HasSubstr("are run here"))));
  EXPECT_THAT(second.bytes,
              AllOf(HasSubstr("trials of shards that were not there to be merged"), HasSubstr("shard 1 of round 2 is missing, with ")));
  std::filesystem::remove(Shard(plan, 1, 0));
  const Report first = Merge(plan);
  EXPECT_THAT(first.err, AllOf(HasSubstr("shard 0 of round 1: missing"), Not(HasSubstr("are run here"))));
  EXPECT_NE(first.exit, 0);
}

TEST(Shards, SuppressedFindingsWithAGapAreNotClean) {
  const std::string directory = TemporaryDirectory();
  const std::string plan = directory + "/plan";
  setenv("CUAUDIT_TODAY", "2026-11-26", 1);
  WriteFile(directory + "/s.toml", "[[suppression]]\nrule = '*ed'\nreason = 'r'\nowner = 'o'\nuntil = 2027-03-31\n");
  ASSERT_EQ(Plan(plan, {"--shards", "5", "--depth", "1", "--suppressions", directory + "/s.toml"}).exit, 0);
  for (const char* const i : {"0", "1", "2", "3", "4"}) ASSERT_EQ(Cuaudit({"run-shard", plan, i}).exit, 0);
  EXPECT_EQ(Merge(plan).exit, 0);
  for (int gap = 0; gap < 5; ++gap) {
    std::filesystem::rename(Shard(plan, 1, gap), directory + "/kept");
    const Report merged = Merge(plan);
    EXPECT_EQ(merged.exit, 3) << gap << merged.err;
    EXPECT_THAT(merged.bytes,
                AllOf(HasSubstr("\"outcome\": \"not_exercised\""), HasSubstr("shard " + std::to_string(gap) + " of round 1 is missing")));
    std::filesystem::rename(directory + "/kept", Shard(plan, 1, gap));
  }
  unsetenv("CUAUDIT_TODAY");
}

TEST(Shards, AChangedRunWithoutFaultsIsRefused) {
  const std::string plan = TemporaryDirectory() + "/plan";
  ASSERT_EQ(Plan(plan, {"--shards", "1", "--depth", "1"}).exit, 0);
  ASSERT_EQ(Cuaudit({"run-shard", plan, "0"}).exit, 0);
  const std::string journal = plan + "/cases/program/rehearsal-1.journal";
  {
    std::fstream file(journal, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(4000);
    const int byte = file.get();
    file.seekp(4000);
    file.put(static_cast<char>(byte ^ 1));
  }
  const Report merged = Merge(plan);
  EXPECT_EQ(merged.exit, 2);
  EXPECT_THAT(merged.err, HasSubstr("rehearsal-1.journal: changed after the plan was made"));
  std::filesystem::remove(Shard(plan, 1, 0));
  const CommandResult ran = Cuaudit({"run-shard", plan, "0"});
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("rehearsal-1.journal: changed after the plan was made"));
}

TEST(Shards, ThePlanHoldsRunsWithoutFaultsAsLargeAsTheirContent) {
  const std::string plan = TemporaryDirectory() + "/plan";
  ASSERT_EQ(Plan(plan, {"--shards", "1"}).exit, 0);
  for (const char* const name : {"rehearsal-1.journal", "rehearsal-2.journal"}) {
    const std::string journal = plan + "/cases/program/" + name;
    EXPECT_LT(std::filesystem::file_size(journal), 1U << 20U) << "a fresh journal has room for four million records";
    const CommandResult explained = Cuaudit({"explain", journal});
    EXPECT_EQ(explained.exit, 0) << explained.err;
    EXPECT_THAT(explained.out, AllOf(HasSubstr("cuCtxPopCurrent"), HasSubstr("process reached exit"), Not(HasSubstr("the file is cut"))));
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(plan + "/cases/program")) files.push_back(entry.path().extension());
  EXPECT_THAT(files, ::testing::Each(::testing::AnyOf("", ".journal", ".log")));  // no log of trials, and no plan of a sweep
}

TEST(Shards, WhereNothingIsLeftNoRoundIsPlanned) {
  const std::string plan = TemporaryDirectory() + "/plan";
  ASSERT_EQ(Plan(plan, {"--shards", "2", "--depth", "1"}).exit, 0);
  for (const char* const i : {"0", "1"}) ASSERT_EQ(Cuaudit({"run-shard", plan, i}).exit, 0);
  const CommandResult next = Cuaudit({"plan", plan});
  EXPECT_EQ(next.exit, 0) << next.err;
  EXPECT_THAT(next.out, HasSubstr("nothing left to plan"));
  EXPECT_FALSE(std::filesystem::exists(plan + "/round-2.json"));
  EXPECT_FALSE(std::filesystem::exists(plan + "/round-2"));
  // The script for Slurm has an array of the second round in any case, and its merge misses none of it.
  EXPECT_THAT(Cuaudit({"plan", plan, "--round", "2"}).out, HasSubstr("nothing left to plan"));
  EXPECT_EQ(Cuaudit({"run-shard", plan, "0", "--round", "2"}).exit, 0);
  const Report merged = Merge(plan);
  EXPECT_THAT(merged.err, Not(HasSubstr("missing")));
  EXPECT_EQ(merged.bytes, Local({"--depth", "1"}).bytes);
}

class BrokenShards : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Plan(plan_, {"--shards", "4", "--depth", "1"}).exit, 0);
    for (const char* const i : {"0", "1", "2", "3"}) ASSERT_EQ(Cuaudit({"run-shard", plan_, i}).exit, 0);
    ASSERT_EQ(Merge(plan_).bytes, Local({"--depth", "1"}).bytes);
  }
  // What the merge says when there is a gap: its line, and the report counts what was not tried.
  void ExpectGap(const std::string& line) {
    const Report merged = Merge(plan_);
    EXPECT_THAT(merged.err, HasSubstr(line));
    EXPECT_NE(merged.exit, 0);
    EXPECT_THAT(merged.bytes, HasSubstr("trials of shards that were not there to be merged"));
  }

  const std::string plan_ = TemporaryDirectory() + "/plan";
};

TEST_F(BrokenShards, AMissingOneIsNamed) {
  std::filesystem::remove(Shard(plan_, 1, 2));
  ExpectGap("shard 2 of round 1: missing");
  const CommandResult next = Cuaudit({"plan", plan_});
  EXPECT_EQ(next.exit, 3);
  EXPECT_FALSE(std::filesystem::exists(plan_ + "/round-2.json"));
}

TEST_F(BrokenShards, NothingIsCleanWithAGap) {
  const std::string plan = TemporaryDirectory() + "/clean";
  ASSERT_EQ(Plan(plan, {"--shards", "2", "--depth", "1"}, {Program("client_linked"), "2"}).exit, 0);
  for (const char* const i : {"0", "1"}) ASSERT_EQ(Cuaudit({"run-shard", plan, i}).exit, 0);
  EXPECT_EQ(Merge(plan).exit, 0);
  const Report part = Merge(plan, {Shard(plan, 1, 0)});
  EXPECT_EQ(part.exit, 3) << part.err;
  EXPECT_THAT(part.bytes, HasSubstr("not exercised: shard 1 of round 1 is missing"));
  const Report none = Merge(plan, {Shard(plan, 2, 0)});
  EXPECT_EQ(none.exit, 3) << none.err;
}

TEST_F(BrokenShards, ADuplicatedOneIsNamed) {
  const std::string copy = plan_ + "/shards/copy.shard";
  std::filesystem::copy_file(Shard(plan_, 1, 1), copy);
  const Report same = Merge(plan_);
  EXPECT_THAT(same.err, AllOf(HasSubstr("copy.shard: duplicated: shard 1 of round 1 is also "), HasSubstr("with the same trials")));
  EXPECT_EQ(same.bytes, Local({"--depth", "1"}).bytes);
}

TEST_F(BrokenShards, ATruncatedOneIsNamed) {
  const std::string file = Shard(plan_, 1, 3);
  const std::string whole = ReadFile(file);
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    WriteFile(file, whole.substr(0, size));
    ExpectGap("1-0003.shard: truncated");
  }
  // The shard is run again.
  EXPECT_EQ(Cuaudit({"run-shard", plan_, "3"}).exit, 0);
  EXPECT_EQ(ReadFile(file).size() > 100, true);
}

TEST_F(BrokenShards, AChangedOneIsNamed) {
  const std::string file = Shard(plan_, 1, 3);
  std::string bytes = ReadFile(file);
  const std::size_t at = bytes.find("\"trial\":") + 8;
  bytes[at] = bytes[at] == '1' ? '2' : '1';
  WriteFile(file, bytes);
  ExpectGap("1-0003.shard: changed after it was written");
}

TEST_F(BrokenShards, AForeignOneIsNamed) {
  const std::string file = Shard(plan_, 1, 0);
  const std::string whole = ReadFile(file);
  const std::string other = TemporaryDirectory() + "/other";
  ASSERT_EQ(Plan(other, {"--shards", "4", "--depth", "1"}, {Program("steps"), "56", "leaking"}).exit, 0);
  ASSERT_EQ(Cuaudit({"run-shard", other, "0"}).exit, 0);
  WriteFile(file, ReadFile(Shard(other, 1, 0)));
  ExpectGap("foreign: of another program, build or settings of program");
  const std::string five = TemporaryDirectory() + "/five";
  ASSERT_EQ(Plan(five, {"--shards", "5", "--depth", "1"}).exit, 0);
  ASSERT_EQ(Cuaudit({"run-shard", five, "0"}).exit, 0);
  WriteFile(file, ReadFile(Shard(five, 1, 0)));
  ExpectGap("foreign: of another plan");
  std::string bytes = whole;
  const std::size_t end = bytes.rfind("{\"end\"");
  const std::size_t tool = bytes.find("\"tool\":\"", end) + 8;
  bytes.insert(tool, "9");
  WriteFile(file, bytes);
  ExpectGap("foreign: written by cuaudit 9");
}

TEST(Shards, AnotherProgramRefusesThePlan) {
  const std::string directory = TemporaryDirectory();
  const std::string program = directory + "/program";
  std::filesystem::copy_file(Program("steps"), program);
  ASSERT_EQ(Plan(directory + "/plan", {"--shards", "2"}, {program, "2"}).exit, 0);
  std::filesystem::copy_file(Program("client_linked"), program, std::filesystem::copy_options::overwrite_existing);
  const CommandResult ran = Cuaudit({"run-shard", directory + "/plan", "0"});
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("another program, build or settings than those of the plan"));
  EXPECT_FALSE(std::filesystem::exists(Shard(directory + "/plan", 1, 0)));
}

TEST(Shards, OneThatIsKilledGoesOnWhereItWas) {
  const std::string plan = TemporaryDirectory() + "/plan";
  ASSERT_EQ(Plan(plan, {"--shards", "1", "--depth", "1"}).exit, 0);
  const std::string work = plan + "/work/1-0000/program";
  std::filesystem::create_directories(work);
  const int watch = inotify_init1(IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(watch, work.c_str(), IN_MODIFY), 0);
  {
    Spawned run({Tool(), "run-shard", plan, "0", "--jobs", "1"});
    ASSERT_TRUE(WaitForWrites(watch, "trials.jsonl", 3));
    run.Kill(SIGKILL);
    (void)run.Wait();
  }
  close(watch);
  const bool ended = std::filesystem::exists(Shard(plan, 1, 0));  // it was quicker
  const CommandResult again = Cuaudit({"run-shard", plan, "0"});
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr(ended ? "is done" : "going on: "));
  EXPECT_EQ(Merge(plan).bytes, Local({"--depth", "1"}).bytes);
  EXPECT_FALSE(std::filesystem::exists(plan + "/work/1-0000"));
}

TEST(Shards, TheNumberComesFromSlurmOrFromGoogleTest) {
  const std::string plan = TemporaryDirectory() + "/plan";
  ASSERT_EQ(Plan(plan, {"--shards", "3", "--depth", "1"}).exit, 0);
  EXPECT_EQ(Cuaudit({"run-shard", plan}, {{"SLURM_ARRAY_TASK_ID=2"}}).exit, 0);
  EXPECT_TRUE(std::filesystem::exists(Shard(plan, 1, 2)));
  const std::string sign = plan + "/sign";
  const CommandResult of_test =
      Cuaudit({"run-shard", plan}, {{"GTEST_TOTAL_SHARDS=3", "GTEST_SHARD_INDEX=1", "GTEST_SHARD_STATUS_FILE=" + sign}});
  EXPECT_EQ(of_test.exit, 0) << of_test.err;
  EXPECT_TRUE(std::filesystem::exists(Shard(plan, 1, 1)));
  EXPECT_TRUE(std::filesystem::exists(sign));
  const CommandResult others = Cuaudit({"run-shard", plan}, {{"GTEST_TOTAL_SHARDS=4", "GTEST_SHARD_INDEX=0"}});
  EXPECT_EQ(others.exit, 2);
  EXPECT_THAT(others.err, HasSubstr("GTEST_TOTAL_SHARDS: '4': expected 3, the shards of the plan"));
  for (const char* const wrong : {"3", "-1", "x", ""}) {
    const CommandResult outside = Cuaudit({"run-shard", plan, wrong});
    EXPECT_EQ(outside.exit, 2);
    EXPECT_THAT(outside.err, HasSubstr("expected a number from 0 to 2"));
  }
  EXPECT_THAT(Cuaudit({"run-shard", plan}).err, HasSubstr("expected the number of a shard"));
}

TEST(Shards, TheCasesOfAProjectAreMergedIntoOneResult) {
  const std::string directory = TemporaryDirectory();
  WriteFile(directory + "/cuaudit.toml", "[defaults]\ndriver = \"sim\"\n[case.first]\ncommand = [\"" + Program("defective") +
                                             "\", \"2\"]\ntags = [\"a\"]\n[case.cycled]\ncommand = [\"" + Program("client_linked") +
                                             "\", \"{n}\"]\ncycles = [1, 3]\n");
  const How here{{}, directory};
  const CommandResult local = Cuaudit({"audit", "--out", "local"}, here);
  ASSERT_EQ(local.exit, 1) << local.err;
  const CommandResult planned = Cuaudit({"plan", "--shards", "3"}, here);
  ASSERT_EQ(planned.exit, 0) << planned.err;
  RunAll(directory + "/cuaudit-plan", 3);
  const CommandResult merged = Cuaudit({"merge", "cuaudit-plan", "--out", "merged"}, here);
  EXPECT_EQ(merged.exit, 1) << merged.err;
  for (const char* const name : {"audit.json", "first.sweep.json", "cycled.sweep.json", "cycled.cycles.json"}) {
    EXPECT_EQ(WithoutHeader(directory + "/merged/" + name), WithoutHeader(directory + "/local/" + name)) << name;
  }
  EXPECT_EQ(ReadFile(directory + "/merged/first.trials.jsonl"), ReadFile(directory + "/local/first.trials.jsonl"));
  for (const char* const jobs : {"1", "3"}) {
    const std::string out = std::string("merged-") + jobs;
    const CommandResult again = Cuaudit({"merge", "cuaudit-plan", "--out", out, "--jobs", jobs}, here);
    EXPECT_EQ(again.exit, 1) << again.err;
    EXPECT_EQ(again.out.substr(0, again.out.rfind(" in ")), merged.out.substr(0, merged.out.rfind(" in "))) << jobs;
    for (const char* const name : {"audit.json", "first.sweep.json", "cycled.sweep.json", "cycled.cycles.json"}) {
      EXPECT_EQ(WithoutHeader(directory + "/" + out + "/" + name), WithoutHeader(directory + "/merged/" + name)) << name << jobs;
    }
    EXPECT_EQ(ReadFile(directory + "/" + out + "/first.trials.jsonl"), ReadFile(directory + "/merged/first.trials.jsonl"));
  }
  // Nothing is new beside the same audit.
  const CommandResult compared = Cuaudit({"merge", "cuaudit-plan", "--out", "compared", "--base", "local"}, here);
  EXPECT_EQ(compared.exit, 0) << compared.err << compared.out;
  EXPECT_TRUE(std::filesystem::exists(directory + "/compared/comparison.json"));
  EXPECT_EQ(Cuaudit({"merge", "cuaudit-plan", "--out", "again", "--base", "local", "--fail-on", "unchanged"}, here).exit, 1);
  EXPECT_THAT(Cuaudit({"merge", "cuaudit-plan", "--out", "local", "--base", "local"}, here).err,
              HasSubstr("--base: local: expected a result"));
  EXPECT_THAT(Cuaudit({"merge", "cuaudit-plan", "--fail-on", "none"}, here).err, HasSubstr("--fail-on: expected --base beside it"));
}

TEST(Shards, AKnownDefectHidesNoMissingShard) {
  const How here{{}, TemporaryDirectory()};
  WriteFile(here.directory + "/cuaudit.toml", "[case.a]\ndriver = \"sim\"\ndepth = 1\ncommand = [\"" + Program("defective") + "\"]\n");
  ASSERT_EQ(Cuaudit({"audit", "--out", "old"}, here).exit, 1);
  ASSERT_EQ(Cuaudit({"plan", "--shards", "4"}, here).exit, 0);
  for (const char* const i : {"0", "1", "2", "3"}) ASSERT_EQ(Cuaudit({"run-shard", "cuaudit-plan", i}, here).exit, 0);
  const std::vector<std::string> merge = {"merge", "cuaudit-plan", "--out", "new", "--base", "old"};
  const CommandResult whole = Cuaudit(merge, here);
  EXPECT_EQ(whole.exit, 0) << whole.out << whole.err;
  std::filesystem::remove(Shard(here.directory + "/cuaudit-plan", 1, 0));  // the failure that shows the defect comes later
  const CommandResult part = Cuaudit(merge, here);
  EXPECT_EQ(part.exit, 1) << part.out << part.err;
  EXPECT_THAT(part.out, AllOf(HasSubstr("0 new, 0 changed, 1 not run, 0 fixed, 1 unchanged"),
                              HasSubstr("  a, sweep: in part: shard 0 of round 1 is missing, with ")));
  EXPECT_EQ(Cuaudit({"merge", "cuaudit-plan", "--out", "new", "--base", "old", "--fail-on=new"}, here).exit, 3);
  EXPECT_EQ(Cuaudit({"baseline", "write", "new"}, here).exit, 3) << "it would lack the defects of the shard";
}

TEST(Shards, WrongWordsAreRefused) {
  const std::string directory = TemporaryDirectory();
  EXPECT_THAT(Plan(directory + "/plan", {}).err, HasSubstr("expected either --shards or --minutes"));
  EXPECT_THAT(Plan(directory + "/plan", {"--shards", "2", "--minutes", "3"}).err, HasSubstr("expected either --shards or --minutes"));
  EXPECT_THAT(Cuaudit({"merge", directory}).err, HasSubstr("round-1.json: not found: expected a plan"));
  EXPECT_THAT(Cuaudit({"merge", directory + "/none"}).err, HasSubstr("expected the directory that cuaudit plan made"));
  WriteFile(directory + "/file", "x");
  EXPECT_THAT(Plan(directory, {"--shards", "2"}).err, HasSubstr("expected a new or an empty directory"));
  ASSERT_EQ(Plan(directory + "/plan", {"--minutes", "1"}).exit, 0);
  EXPECT_THAT(Cuaudit({"merge", directory + "/plan", "--base", directory + "/file"}).err,
              HasSubstr("--base: expected the plan of a cuaudit.toml"));
  const std::string round = directory + "/plan/round-1.json";
  const std::string whole = ReadFile(round);
  for (const std::string& bytes : {std::string("{"), whole.substr(0, whole.size() / 2), std::string(5000, '['), std::string("\xff\x01")}) {
    WriteFile(round, bytes);
    const CommandResult refused = Cuaudit({"run-shard", directory + "/plan", "0"});
    EXPECT_EQ(refused.exit, 2);
    EXPECT_THAT(refused.err, HasSubstr("round-1.json: expected "));
    EXPECT_EQ(LineCount(refused.err), 1U) << refused.err;
  }
  WriteFile(round, whole);
  WriteFile(directory + "/plan/round-1/program.trials", "cuInit#1=NOT_INITIALIZED,refuse\n");
  EXPECT_THAT(Cuaudit({"run-shard", directory + "/plan", "0"}).err, HasSubstr("program.trials"));
}

TEST(Shards, SlurmGetsAScript) {
  const std::string plan = TemporaryDirectory() + "/it's a plan";
  ASSERT_EQ(Plan(plan, {"--shards", "8"}).exit, 0);
  const CommandResult printed = Cuaudit({"slurm", plan, "--sbatch=--partition=gpu"});
  ASSERT_EQ(printed.exit, 0) << printed.err;
  EXPECT_THAT(printed.out, AllOf(HasSubstr("--array=0-7"), HasSubstr("--requeue"), HasSubstr("--dependency=\"afterok:$next\""),
                                 HasSubstr("--partition=gpu"), Not(HasSubstr("--gpus"))));
  const CommandResult checked = RunCommand({"/bin/sh", "-n", "-c", printed.out});
  EXPECT_EQ(checked.exit, 0) << checked.err;
}

}  // namespace
}  // namespace cuaudit::e2e::shards_test
