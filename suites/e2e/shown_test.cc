// SPDX-License-Identifier: MIT
// --progress of every command that has it: lines with plain, no bar without a terminal, nothing with none; and the bar is gone when
// anything else is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "suites/e2e/audited_project.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::shown_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Line = std::vector<std::string>;

// The files that commands read.
struct Files {
  std::string folder = TemporaryDirectory();
  std::string recording = folder + "/field.journal";
  std::string report = folder + "/report.json";
  Project project = Project(CaseOf("a", "defective") + CaseOf("b", "defective"));
  std::string fingerprint;
  std::string of_recording;  // a fingerprint

  Files() {
    EXPECT_EQ(RunCommand({Tool(), "record", "--driver=sim", "--journal", recording, "--", Program("recorded"), "grow"}).exit, 0);
    EXPECT_EQ(RunCommand({Tool(), "sweep", "--driver=sim", "--format=json=" + report, "--", Program("defective")}).exit, 1);
    EXPECT_EQ(project.Audit().exit, 1);
    const nlohmann::json found = nlohmann::json::parse(ReadFile(report), nullptr, false);
    fingerprint = found["defects"][0]["fingerprint"].get<std::string>();
    const std::string grown = folder + "/grown.json";
    EXPECT_EQ(RunCommand({Tool(), "cycles", "--from-journal", recording, "--format=json=" + grown}).exit, 1);
    const nlohmann::json cycles = nlohmann::json::parse(ReadFile(grown), nullptr, false);
    of_recording = cycles["defects"][0]["fingerprint"].get<std::string>();
  }
};

constexpr char kPlan[] = "PLAN";    // stands for a new plan of one shard
constexpr char kShard[] = "SHARD";  // the same, with what its shard found

std::string NewPlan(bool carried_out) {
  const std::string plan = TemporaryDirectory() + "/plan";
  EXPECT_EQ(RunCommand({Tool(), "plan", "--driver=sim", "--shards=1", "--to", plan, "--", Program("defective")}).exit, 0);
  if (carried_out) {
    EXPECT_EQ(RunCommand({Tool(), "run-shard", plan, "0"}).exit, 0);
  }
  return plan;
}

// `line` begins with a command, behind which --progress belongs.
CommandResult OutcomeOf(const Line& line, const std::string& progress) {
  Line command = {Tool(), line.front()};
  if (!progress.empty()) command.push_back("--progress=" + progress);
  for (auto word = line.begin() + 1; word != line.end(); ++word)
    command.push_back(*word == kPlan || *word == kShard ? NewPlan(*word == kShard) : *word);
  return RunCommand(command, {.environment = {"CUAUDIT_TODAY=2026-11-26"}, .directory = TemporaryDirectory(), .deadline_ms = 120000});
}

struct Row {
  Line line;
  int exit;
  const char* shown;  // with plain
};

std::vector<Row> Rows(const Files& files) {
  const auto of_program = [](Line line) {
    line.insert(line.end(), {"--driver=sim", "--", Program("defective")});
    return line;
  };
  return {
      {of_program({"run"}), 0, "cuaudit: reading the records\n"},
      {of_program({"sweep"}), 1, "cuaudit: 2 of 2 fault-free runs so far\n"},
      {{"cycles", "--driver=sim", "--", Program("defective"), "{n}"}, 0, "cuaudit: 1 of 2 runs so far\n"},
      {of_program({"replay", "--fault=cuMemAlloc#1"}), 1, "cuaudit: 1 of 1 fault-free runs so far\n"},
      {of_program({"init"}), 0, "cuaudit: 2 of 2 fault-free runs so far\n"},
      {of_program({"plan", "--shards=2"}), 0, "cuaudit: 2 of 2 fault-free runs so far\n"},
      {{"plan", "--shards=2", "--config", files.project.file}, 0, "cuaudit: 1 of 2 cases so far\n"},
      {{"run-shard", kPlan, "0"}, 0, "cuaudit: 1 of 1 fault-free runs so far\n"},
      {{"merge", kShard}, 1, "cuaudit: [0-9]+ of [0-9]+ trials so far\n"},
      {{"record", "--driver=sim", "--", Program("recorded"), "keep"}, 0, "cuaudit: reading cuaudit.journal\n"},
      {{"record", "--pack", files.recording}, 0, "cuaudit: reading field.journal\n"},
      {{"explain", files.recording}, 1, "cuaudit: reading field.journal\n"},
      {{"explain", "--every-record", files.recording}, 0, "cuaudit: reading field.journal\n"},
      {{"cycles", "--from-journal", files.recording}, 1, "cuaudit: reading field.journal\n"},
      {{"compare", files.project.out, files.project.out},
       0,
       "cuaudit: results: 1 of 2 reports so far\ncuaudit: results: 1 of 2 reports so far\n"},
      {{"compare", files.report, files.report}, 0, "cuaudit: comparing\n"},
      {{"report", files.report, "--format=text", "--format=html=page.html"}, 0, "cuaudit: writing the result\n"},
      {{"baseline", "write", files.project.out}, 0, "cuaudit: results: 1 of 2 reports so far\n"},
      {{"suppress", files.fingerprint, "--reason=r", "--owner=o", "--until=2027-01-02", "--report", files.project.out},
       0,
       "cuaudit: results: 1 of 2 reports so far\n"},
      {{"reduce", files.fingerprint, files.report}, 0, "cuaudit: pass 1, [0-9]+ of [0-9]+ calls left: [0-9]+ of [0-9]+ lists so far\n"},
      {{"reduce", files.of_recording, files.recording}, 0, "cuaudit: reading field.journal\n.*cuaudit: pass 1, "},
      {{"audit", "--config", files.project.file}, 1, "cuaudit: 2 of 2: b: 2 of 2 fault-free runs so far\n"},
  };
}

// Whether nothing but another bar, or its end, is written behind a bar.
bool IsRemoved(const std::string& text) {
  const std::string end = "\033[K";
  for (std::size_t at = text.find(end); at != std::string::npos; at = text.find(end, at + 1)) {
    const bool removed = at > 0 && text[at - 1] == '\r';
    if (!removed && text.substr(at + end.size(), 1) != "\r") return false;
  }
  return true;
}

TEST(Shown, EveryCommandThatMayTakeLong) {
  const Files files;
  for (const Row& row : Rows(files)) {
    const std::string name = ::testing::PrintToString(row.line);
    const CommandResult plain = OutcomeOf(row.line, "plain");
    EXPECT_EQ(plain.exit, row.exit) << name << plain.err;
    EXPECT_THAT(plain.err, ContainsRegex(row.shown)) << name;
    EXPECT_THAT(plain.err, Not(HasSubstr(" steps so far\n"))) << name << ": a step has a name";
    const CommandResult none = OutcomeOf(row.line, "none");
    EXPECT_EQ(none.exit, row.exit) << name;
    EXPECT_THAT(none.err, AllOf(Not(HasSubstr(" so far\n")), Not(ContainsRegex(row.shown)))) << name;
    EXPECT_THAT(OutcomeOf(row.line, "").err, Not(HasSubstr("\r"))) << name << ": no bar without a terminal";
    const CommandResult loud = OutcomeOf(row.line, "loud");
    EXPECT_EQ(loud.exit, 2) << name;
    EXPECT_THAT(loud.err, HasSubstr("--progress")) << name;
  }
}

// Who starts the tool with a pipe and waits for its end before reading. The bars would fill the pipe.
TEST(Shown, AReaderThatTakesNothingHoldsNothingUp) {
  How how = {.stderr_room = 8192};
  const CommandResult outcome = RunCommand(
      {Tool(), "sweep", "--driver=sim", "--progress=bar", "--codes=all", "--depth=2", "--no-prune", "--", Program("defective")}, how);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("] 0/2 fault-free runs"), HasSubstr("first found"), HasSubstr(" fired")))
      << "what must be said has room";
}

// What takes --progress has a row above. What prints a table, or gives its place to another program, has no time to show.
TEST(Shown, EachCommandThatTakesItHasARow) {
  const Files files;
  std::set<std::string> rows;
  for (const Row& row : Rows(files)) rows.insert(row.line.front());
  std::set<std::string> commands;
  std::istringstream help(RunCommand({Tool(), "--help"}).out);
  std::string line;
  while (std::getline(help, line) && line != "Subcommands:") continue;
  while (std::getline(help, line) && line.starts_with("  ")) commands.insert(Words(line.substr(2)).front());
  EXPECT_GE(commands.size(), 20U);
  for (const std::string& command : commands) {
    const bool takes = RunCommand({Tool(), command, "--help"}).out.find("--progress") != std::string::npos;
    EXPECT_EQ(rows.contains(command), takes) << command;
  }
}

// A bar stays out of what the program and the command write.
TEST(Shown, TheBarIsGoneBeforeAnythingElseIsWritten) {
  const Files files;
  std::vector<Row> rows = Rows(files);
  rows.push_back({{"record", "--pack", files.report}, 2, ""});
  rows.push_back({{"explain", files.report}, 2, ""});
  for (const Row& row : rows) {
    const CommandResult bar = OutcomeOf(row.line, "bar");
    EXPECT_EQ(bar.exit, row.exit) << ::testing::PrintToString(row.line);
    EXPECT_THAT(bar.err, HasSubstr("\rcuaudit: ")) << ::testing::PrintToString(row.line);
    EXPECT_TRUE(IsRemoved(bar.err)) << ::testing::PrintToString(row.line) << ": " << bar.err;
  }
}

}  // namespace
}  // namespace cuaudit::e2e::shown_test
