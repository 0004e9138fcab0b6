// SPDX-License-Identifier: MIT
// --progress of every command that has it: lines with plain, no bar without a terminal, nothing with none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "suites/e2e/audited_project.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::shown_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Line = std::vector<std::string>;

// `line` begins with a command, behind which --progress belongs.
std::string ErrOf(const Line& line, const std::string& progress) {
  Line command = {Tool(), line.front()};
  if (!progress.empty()) command.push_back("--progress=" + progress);
  command.insert(command.end(), line.begin() + 1, line.end());
  return RunCommand(command, {.environment = {"CUAUDIT_TODAY=2026-11-26"}, .directory = TemporaryDirectory(), .deadline_ms = 120000}).err;
}

// The files that commands read.
struct Files {
  std::string folder = TemporaryDirectory();
  std::string recording = folder + "/field.journal";
  std::string report = folder + "/report.json";
  Project project = Project(CaseOf("a", "defective") + CaseOf("b", "defective"));
  std::string plan = folder + "/plan";
  std::string fingerprint;

  Files() {
    EXPECT_EQ(RunCommand({Tool(), "record", "--driver=sim", "--journal", recording, "--", Program("recorded"), "grow"}).exit, 0);
    EXPECT_EQ(RunCommand({Tool(), "sweep", "--driver=sim", "--format=json=" + report, "--", Program("defective")}).exit, 1);
    EXPECT_EQ(project.Audit().exit, 1);
    EXPECT_EQ(RunCommand({Tool(), "plan", "--driver=sim", "--shards=1", "--to", plan, "--", Program("defective")}).exit, 0);
    const nlohmann::json found = nlohmann::json::parse(ReadFile(report), nullptr, false);
    fingerprint = found["defects"][0]["fingerprint"].get<std::string>();
  }
};

TEST(Shown, EveryCommandThatMayTakeLong) {
  const Files files;
  struct Row {
    Line line;
    const char* shown;
  };
  const Line program = {"--", Program("defective")};
  const auto of_program = [&](Line line) {
    line.emplace_back("--driver=sim");
    line.insert(line.end(), program.begin(), program.end());
    return line;
  };
  const std::vector<Row> rows = {
      {of_program({"run"}), "cuaudit: 1 of 2 steps so far\n"},
      {of_program({"sweep"}), "cuaudit: 2 of 2 fault-free runs so far\n"},
      {of_program({"replay", "--fault=cuMemAlloc#1"}), "cuaudit: 1 of 1 fault-free runs so far\n"},
      {of_program({"init"}), "cuaudit: 2 of 2 fault-free runs so far\n"},
      {of_program({"plan", "--shards=2"}), "cuaudit: 2 of 2 fault-free runs so far\n"},
      {{"plan", "--shards=2", "--config", files.project.file}, "cuaudit: 1 of 2 cases so far\n"},
      {{"run-shard", files.plan, "0"}, "cuaudit: 1 of 1 fault-free runs so far\n"},
      {{"record", "--driver=sim", "--", Program("recorded"), "keep"}, "cuaudit: cuaudit.journal: 1 of 2 steps so far\n"},
      {{"record", "--pack", files.recording}, "cuaudit: field.journal: 1 of 2 steps so far\n"},
      {{"explain", files.recording}, "cuaudit: field.journal: 1 of 2 steps so far\n"},
      {{"explain", "--every-record", files.recording}, "cuaudit: field.journal: 1 of 2 steps so far\n"},
      {{"cycles", "--from-journal", files.recording}, "cuaudit: field.journal: 1 of 2 steps so far\n"},
      {{"compare", files.project.out, files.project.out},
       "cuaudit: results: 1 of 2 reports so far\ncuaudit: results: 1 of 2 reports so far\n"},
      {{"compare", files.report, files.report}, "cuaudit: 1 of 2 steps so far\n"},
      {{"report", files.report, "--format=text", "--format=html=page.html"}, "cuaudit: 1 of 2 steps so far\n"},
      {{"baseline", "write", files.project.out}, "cuaudit: results: 1 of 2 reports so far\n"},
      {{"suppress", files.fingerprint, "--reason=r", "--owner=o", "--until=2027-01-02", "--report", files.project.out},
       "cuaudit: results: 1 of 2 reports so far\n"},
      {{"reduce", files.fingerprint, files.report}, "cuaudit: pass 1, [0-9]+ of [0-9]+ calls left: [0-9]+ of [0-9]+ lists so far\n"},
      {{"audit", "--config", files.project.file}, "cuaudit: 2 of 2: b: 2 of 2 fault-free runs so far\n"},
  };
  for (const Row& row : rows) {
    const std::string name = ::testing::PrintToString(row.line);
    EXPECT_THAT(ErrOf(row.line, "plain"), ContainsRegex(row.shown)) << name;
    EXPECT_THAT(ErrOf(row.line, "none"), Not(HasSubstr(" so far\n"))) << name;
    EXPECT_THAT(ErrOf(row.line, ""), Not(HasSubstr("\r"))) << name << ": no bar without a terminal";
    EXPECT_THAT(ErrOf(row.line, "loud"), HasSubstr("--progress")) << name;
  }
}

// What prints a table, or gives its place to another program, has no time to show.
TEST(Shown, OtherCommandsDoNotTakeIt) {
  for (const Line& line : {Line{"doctor"}, Line{"list", "verdicts"}, Line{"env"}, Line{"slurm", "plan"}})
    EXPECT_THAT(ErrOf(line, "plain"), HasSubstr("--progress")) << line.front();
}

// A bar stays out of what the program and the command write.
TEST(Shown, TheBarIsGoneBeforeAnythingElseIsWritten) {
  const Files files;
  for (const Line& line : {Line{"explain", files.recording}, Line{"compare", files.report, files.report}, Line{"report", files.report}}) {
    const std::string bar = ErrOf(line, "bar");
    EXPECT_THAT(bar, HasSubstr("\rcuaudit: ")) << line.front();
    EXPECT_TRUE(bar.ends_with("\r\033[K")) << line.front() << ": " << bar;
  }
}

}  // namespace
}  // namespace cuaudit::e2e::shown_test
