// SPDX-License-Identifier: MIT
// `cuaudit sweep --trials=FILE`: each trial as one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <utility>

#include "suites/support/tool.h"

namespace cuaudit::e2e::trials_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Trials {
  nlohmann::json header;
  std::vector<nlohmann::json> rows;
};

Trials Read(const std::string& file) {
  Trials trials;
  std::istringstream lines(ReadFile(file));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    if (trials.header.is_null()) {
      trials.header = std::move(json);
    } else {
      trials.rows.push_back(std::move(json));
    }
  }
  return trials;
}

// False where nobody can say: the schema needs python3-jsonschema.
bool IsValid(const std::string& file) {
  constexpr const char* kCheck =
      "import json, sys, jsonschema\nschema = json.load(open(sys.argv[2]))\n"
      "for line in open(sys.argv[1]): jsonschema.validate(json.loads(line), schema)";
  const Outcome outcome = RunCommand({"/usr/bin/python3", "-c", kCheck, file, CUAUDIT_TRIALS_SCHEMA});
  if (outcome.err.find("No module named 'jsonschema'") != std::string::npos) return false;
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return true;
}

TEST(Trials, EachTrialIsALineAndTheyAddUpToTheReport) {
  const std::string file = TemporaryDirectory() + "/trials.ndjson";
  const Audit audit = RunAudit({"sweep", "--trials", file}, {Program("defective"), "2"});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  const Trials trials = Read(file);
  EXPECT_EQ(trials.header["schema"], "cuaudit.trials/1");
  EXPECT_EQ(trials.header["command"], audit.report["command"]);
  EXPECT_EQ(trials.header["trials"], trials.rows.size());
  EXPECT_EQ(trials.header["whole"], true);
  EXPECT_EQ(trials.rows.size(), audit.report["totals"]["trials"]);
  std::map<std::string, int> verdicts;
  std::map<std::string, std::string> differs;  // by the faults
  for (const auto& row : trials.rows) {
    ++verdicts[row["verdict"]];
    const bool wrong = row["verdict"] == "leak" || row["verdict"] == "misuse" || row["verdict"] == "crash" || row["verdict"] == "abort" ||
                       row["verdict"] == "hang" || row["verdict"] == "misreported" || row["verdict"] == "not_recovered";
    EXPECT_EQ(wrong, !row["differs"].empty()) << row.dump();
    for (const auto& fault : row["faults"]) differs[fault] += row["differs"].dump();
  }
  EXPECT_EQ(nlohmann::json(verdicts), audit.report["totals"]["verdicts"]);
  for (const auto& finding : audit.report["findings"]) {
    if (finding["fault"].is_null()) continue;
    EXPECT_THAT(differs[finding["fault"]["text"]],
                AllOf(HasSubstr("\"rule\":" + finding["rule"].dump()), HasSubstr("\"kind\":" + finding["kind"].dump())));
  }
  if (!IsValid(file)) GTEST_SKIP() << "python3-jsonschema is not installed: nobody held the lines to their schema";
}

TEST(Trials, HaveTheSameBytesWhateverEndsFirst) {
  const std::string directory = TemporaryDirectory();
  const auto swept = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"sweep", "--trials", directory + "/trials"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    (void)RunAudit(arguments, {Program("defective"), "1"});
    return ReadFile(directory + "/trials");
  };
  const std::string one = swept({"--jobs=1"});
  EXPECT_GT(LineCount(one), 10U);
  EXPECT_EQ(swept({"--jobs=4"}), one);
  EXPECT_EQ(swept({"--isolation=spawn"}), one);
  EXPECT_EQ(swept({"--work-dir", directory + "/work"}), one);
  EXPECT_EQ(swept({"--work-dir", directory + "/work"}), one) << "all from the log";
}

TEST(Trials, SayHowTheProgramEnded) {
  const std::string file = TemporaryDirectory() + "/trials";
  (void)RunAudit({"sweep", "--depth=1", "--trials", file}, {Program("hostile"), "crash"});
  std::string ends;
  for (const auto& row : Read(file).rows) {
    if (row.contains("signal")) ends += row["signal"].get<std::string>() + " ";
    EXPECT_NE(row.contains("signal"), row.contains("exit")) << row.dump();
  }
  EXPECT_THAT(ends, HasSubstr("SIGSEGV"));
  (void)RunAudit({"sweep", "--depth=1", "--deadline-ms=1000", "--trials", file}, {Program("hostile"), "hang"});
  int hung = 0;
  for (const auto& row : Read(file).rows) {
    if (row.contains("hung")) ++hung;
    EXPECT_EQ(row.contains("hung"), row["verdict"] == "hang") << row.dump();
  }
  EXPECT_EQ(hung, 1);
}

TEST(Trials, OfAnInterruptedSweepAreThoseThatEnded) {
  const std::string directory = TemporaryDirectory();
  const std::string work = directory + "/work";
  ASSERT_EQ(RunCommand({"mkdir", work}).exit, 0);
  const int watch = inotify_init1(IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(watch, work.c_str(), IN_MODIFY), 0);
  Spawned sweep({Tool(), "sweep", "--driver=sim", "--deadline-ms=600000", "--depth=1", "--jobs=1", "--work-dir", work,
                 "--trials=" + directory + "/trials", "--", Program("hostile"), "hang"});
  ASSERT_TRUE(WaitForWrites(watch, "trials.jsonl", 1)) << "the trial log never grew";
  EXPECT_EQ(ReadFile(directory + "/trials"), "") << "written at the end, whole";
  sweep.Kill(SIGINT);
  EXPECT_EQ(sweep.Wait().exit, 130);
  close(watch);
  const Trials trials = Read(directory + "/trials");
  EXPECT_EQ(trials.header["whole"], false);
  EXPECT_EQ(trials.header["trials"], trials.rows.size());
  EXPECT_GE(trials.rows.size(), 1U);
  EXPECT_LT(trials.rows.size(), 7U);
}

TEST(Trials, ABadPathIsOneLine) {
  const auto said = [](const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> command = {Tool(), "sweep", "--driver=sim", "--trials=" + file};
    command.insert(command.end(), more.begin(), more.end());
    for (const char* const word : {"--", "/bin/true"}) command.emplace_back(word);
    const Outcome outcome = RunCommand(command);
    EXPECT_EQ(outcome.exit, 2) << outcome.out;
    EXPECT_EQ(LineCount(outcome.err), 1U) << outcome.err;
    return outcome.err;
  };
  const std::string directory = TemporaryDirectory();
  EXPECT_THAT(said(directory + "/none/trials"), AllOf(HasSubstr("--trials: "), HasSubstr("no such directory")));
  EXPECT_THAT(said(directory), AllOf(HasSubstr("--trials: "), HasSubstr("is a directory")));
  EXPECT_THAT(said(directory + "/x", {"--format=json=" + directory + "/x"}), HasSubstr("--trials: two results for " + directory + "/x"));
}

// stdout belongs to the report, and nobody means a file of this name.
TEST(Trials, NoOutputIsAFileNamedDash) {
  constexpr std::pair<const char*, const char*> kOptions[] = {
      {"--trials=-", "--trials: -: "}, {"--output=-", "--output: -: "}, {"--format=json=-", "--format: -: "}};
  for (const auto& [option, said] : kOptions) {
    const Outcome outcome = RunCommand({Tool(), "sweep", "--driver=sim", option, "--", "/bin/true"});
    EXPECT_EQ(outcome.exit, 2) << option;
    EXPECT_EQ(LineCount(outcome.err), 1U) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(said) + "expected a file")) << option;
  }
  const Outcome run = RunCommand({Tool(), "run", "--driver=sim", "--write-lifetime=-", "--", "/bin/true"});
  EXPECT_EQ(run.exit, 2);
  EXPECT_THAT(run.err, HasSubstr("--write-lifetime: -: expected a file"));
  EXPECT_NE(access("-", F_OK), 0);
}

TEST(Trials, ThatCannotBeWrittenCostNothingOfTheReport) {
  const std::string file = TemporaryDirectory() + "/trials";
  const Audit good = RunAudit({"sweep", "--depth=1", "--trials", file}, {Program("defective"), "2"});
  const Audit full = RunAudit({"sweep", "--depth=1", "--trials=/dev/full"}, {Program("defective"), "2"});
  EXPECT_EQ(good.outcome.exit, 1) << good.outcome.err;
  EXPECT_EQ(full.outcome.exit, 125);
  EXPECT_EQ(full.result(), "findings");
  EXPECT_EQ(full.report["defects"], good.report["defects"]);
  EXPECT_THAT(full.outcome.err, HasSubstr("cuaudit: --trials: /dev/full: cannot write: No space left on device\n"));
}

}  // namespace
}  // namespace cuaudit::e2e::trials_test
