// SPDX-License-Identifier: MIT
// What is said of single trials and calls: in the file of trials, in reports and in the HTML form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::trials_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// `cuaudit sweep --trials=FILE`: each trial as one line.

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
  const CommandResult outcome = RunCommand({"/usr/bin/python3", "-c", kCheck, file, CUAUDIT_TRIALS_SCHEMA});
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
    const CommandResult outcome = RunCommand(command);
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
    const CommandResult outcome = RunCommand({Tool(), "sweep", "--driver=sim", option, "--", "/bin/true"});
    EXPECT_EQ(outcome.exit, 2) << option;
    EXPECT_EQ(LineCount(outcome.err), 1U) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(said) + "expected a file")) << option;
  }
  const CommandResult run = RunCommand({Tool(), "run", "--driver=sim", "--write-lifetime=-", "--", "/bin/true"});
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

// What reports say of the calls of a sweep and of the way back of each defect, and the HTML form of the real program.

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "cuMemAlloc" for each of those calls of the fault-free run.
std::vector<std::string> Named(const json& report, const json& calls) {
  std::vector<std::string> names;
  for (const json& call : calls) {
    const auto place = report["sequence"]["calls"][call.get<std::size_t>()][0].get<std::size_t>();
    names.push_back(report["sequence"]["places"][place][0]);
  }
  return names;
}

std::vector<std::string> Steps(const json& report, const json& unwinding) {
  std::vector<std::string> names;
  for (const json& step : unwinding["steps"]) {
    const auto result = step[1].get<std::string>();
    names.push_back(report["sequence"]["places"][step[0].get<std::size_t>()][0].get<std::string>() + (result.empty() ? "" : "=" + result));
  }
  return names;
}

TEST(WayBack, TheMissingReleasesAreNamedBesideWhatTheTrialDid) {
  const Audit audit = RunAudit({"sweep", "--depth", "1"}, {Program("defective")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  ASSERT_EQ(audit.report["defects"].size(), 1U) << audit.findings();
  const json& back = audit.report["defects"][0]["unwinding"];
  ASSERT_TRUE(back.is_object());
  EXPECT_THAT(Named(audit.report, back["held"]),
              ElementsAre("cuEventDestroy", "cuStreamDestroy", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"));
  EXPECT_THAT(Named(audit.report, back["missing"]), ElementsAre("cuEventDestroy", "cuStreamDestroy"));
  EXPECT_THAT(Steps(audit.report, back), ElementsAre("cuMemAlloc=OUT_OF_MEMORY", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"));
  EXPECT_EQ(back["more"], 0);
}

TEST(WayBack, EachTrialNamesTheCallThatItMadeFailAndTheDefectsThatItShows) {
  const Audit audit = RunAudit({"sweep"}, {Program("defective")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  const json& sequence = audit.report["sequence"];
  EXPECT_EQ(sequence["calls"].size(), audit.report["totals"]["calls"]);
  EXPECT_EQ(sequence["trials"].size(), audit.report["totals"]["trials"]);
  std::size_t shown = 0;
  for (const json& trial : sequence["trials"]) {
    const auto fault = sequence["faults"][trial[2][0].get<std::size_t>()].get<std::string>();
    ASSERT_GE(trial[0].get<int>(), 0) << fault;
    EXPECT_EQ(Named(audit.report, {trial[0]}).front(), fault.substr(0, fault.find_first_of("#@")));
    if (!trial[4].empty()) ++shown;
    if (trial[2].size() > 1) {
      EXPECT_EQ(trial[3].size(), trial[2].size() - 1) << fault;
    }
  }
  EXPECT_GE(shown, audit.report["defects"][0]["trials"].get<std::size_t>());
}

TEST(WayBack, AForkAndASpawnedProcessTellTheSame) {
  const Audit forked = RunAudit({"sweep", "--isolation", "fork"}, {Program("defective")});
  const Audit spawned = RunAudit({"sweep", "--isolation", "spawn"}, {Program("defective")});
  ASSERT_FALSE(forked.report.is_null() || spawned.report.is_null());
  EXPECT_EQ(forked.report["sequence"], spawned.report["sequence"]);
  EXPECT_EQ(forked.report["defects"], spawned.report["defects"]);
}

TEST(WayBack, ASweepThatGoesOnTellsWhatTheFirstOneTold) {
  const std::string directory = TemporaryDirectory() + "/work";
  const Audit first = RunAudit({"sweep", "--work-dir", directory}, {Program("defective")});
  const Audit again = RunAudit({"sweep", "--work-dir", directory}, {Program("defective")});
  ASSERT_FALSE(first.report.is_null() || again.report.is_null()) << again.outcome.err;
  EXPECT_EQ(first.report["sequence"], again.report["sequence"]);
  EXPECT_EQ(first.report["defects"], again.report["defects"]);
  EXPECT_TRUE(again.report["defects"][0].contains("unwinding"));
}

TEST(WayBack, AReplayTellsOfItsOneTrial) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("defective")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_EQ(audit.report["sequence"]["trials"].size(), 1U);
  EXPECT_THAT(Named(audit.report, audit.report["defects"][0]["unwinding"]["missing"]), ElementsAre("cuEventDestroy", "cuStreamDestroy"));
}

TEST(Html, IsWrittenBesideAnotherForm) {
  const std::string page = TemporaryDirectory() + "/page.html";
  const std::string here = std::filesystem::path(__FILE__).parent_path().string();
  const Audit audit = RunAudit({"sweep", "--source-root", here, "--format", "html=" + page}, {Program("defective")});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  const std::string text = ReadFile(page);
  EXPECT_THAT(text, HasSubstr("<!DOCTYPE html>"));
  const std::string opens = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = text.find(opens) + opens.size();
  const json data = json::parse(text.substr(from, text.find("</script", from) - from), nullptr, false);
  ASSERT_FALSE(data.is_discarded());
  EXPECT_EQ(data["defects"].size(), audit.report["defects"].size());
  EXPECT_EQ(data["runs"][0]["sequence"]["trials"], audit.report["sequence"]["trials"]);
  // The program was built here, so its source is where its debug information says.
  EXPECT_THAT(data["sources"].dump(), HasSubstr("cuMemAlloc(&work->buffer, 4096)"));
}

}  // namespace
}  // namespace cuaudit::e2e::trials_test
