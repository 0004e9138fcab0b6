// SPDX-License-Identifier: MIT
// Hostile programs (hostile_rows.h): each ends in a truthful verdict or in one clear line, in either form, and leaves no process behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "suites/e2e/hostile_rows.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::adversaries {

void PrintTo(const Row& row, std::ostream* out) { *out << row.program << " " << row.mode << ": " << row.does; }

namespace {

using ::testing::HasSubstr;

constexpr int kNotAllowed = 77;  // of programs/hostile/hostile_story.h

bool MountsPossible() {
  static const bool possible = RunCommand({"unshare", "-r", "-m", "mount", "-t", "tmpfs", "tmpfs", TemporaryDirectory()}).exit == 0;
  return possible;
}

bool AllAsked() {
  const char* const asked = std::getenv("CUAUDIT_ADVERSARIES");
  return asked != nullptr && std::string(asked) == "all";
}

std::vector<std::string> CommandOf(const Row& row, const std::string& directory) {
  std::vector<std::string> words = Words(row.command);
  if (words.front() == kSweep) {
    const std::vector<std::string> more = Words(kSweepOptions);
    words.insert(words.end(), more.begin(), more.end());
  }
  for (std::string& word : words) {
    const std::size_t at = word.find("$DIR");
    if (at != std::string::npos) word.replace(at, 4, directory);
  }
  return words;
}

Audit AuditOf(const Row& row, bool loses) {
  const std::string directory = TemporaryDirectory();
  mkdir((directory + "/disk").c_str(), 0700);
  if (row.needs == Needs::Copy) std::filesystem::copy(Program(row.program), directory);
  std::vector<std::string> command;
  if (row.around[0] != '\0') command = {"/bin/sh", "-c", row.around, "sh"};
  command.push_back(Tool());
  for (const std::string& word : CommandOf(row, directory)) command.push_back(word);
  for (const std::string& word :
       {std::string("--driver=sim"), std::string("--format=json"), "--output=" + directory + "/report", std::string("--")})
    command.push_back(word);
  command.push_back(row.needs == Needs::Copy ? directory + "/" + row.program : Program(row.program));
  for (const std::string& word : Words(row.mode)) command.push_back(word);
  if (loses) command.emplace_back("loses");
  Audit audit;
  How how{.environment = {"DIR=" + directory}};
  if (row.needs == Needs::Time) how.deadline_ms *= 10;
  audit.outcome = RunCommand(command, how);
  audit.report = nlohmann::json::parse(ReadFile(directory + "/report"), nullptr, false);
  if (audit.report.is_discarded()) audit.report = nullptr;
  return audit;
}

std::set<std::string> NotesOf(const Audit& audit) {
  std::set<std::string> rules;
  for (const nlohmann::json& note : audit.report.is_null() ? nlohmann::json::array() : audit.report["notes"]) rules.insert(note["rule"]);
  return rules;
}

bool IsPlain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); });
}

// The machine refuses what the program does where nothing of cuaudit is in the process; the driver is that of programs/late_library.c.
bool RefusedWithoutCuaudit(const Row& row) {
  std::vector<std::string> command = {Program(row.program)};
  for (const std::string& word : Words(row.mode)) command.push_back(word);
  return RunCommand(command, {.environment = {"LD_LIBRARY_PATH=" + Program("other")}}).exit == kNotAllowed;
}

// Processes that a row leaves behind become children of this process.
void ExpectNobodyLeft(const Row& row) {
  int ended = 0;
  while (waitpid(-1, nullptr, 0) > 0) ++ended;
  EXPECT_LE(ended, row.allows == Allows::Child ? 1 : 0);
}

void ExpectSaid(const Row& row, const Said& said, bool loses) {
  if (said.exit < 0) return;
  const Audit audit = AuditOf(row, loses);
  ExpectNobodyLeft(row);
  const std::string form = loses ? "loses its stream: " : "gives everything back: ";
  EXPECT_FALSE(audit.outcome.timed_out) << form;
  EXPECT_EQ(audit.outcome.signal, 0) << form;
  EXPECT_EQ(audit.outcome.exit, said.exit) << form << audit.outcome.err;
  EXPECT_EQ(audit.report.is_null() ? "" : audit.result(), said.outcome) << form << audit.outcome.err;
  EXPECT_EQ(audit.report.is_null() ? "" : audit.findings(), said.findings) << form << audit.outcome.err;
  const std::string message = audit.report.is_null() ? std::string() : audit.report.value("message", std::string());
  EXPECT_THAT(audit.outcome.err + message, HasSubstr(said.line)) << form;
  EXPECT_TRUE(said.note[0] == '\0' || NotesOf(audit).count(said.note) != 0) << form << audit.report["notes"].dump();
  EXPECT_TRUE(IsPlain(audit.outcome.err)) << form << audit.outcome.err;
}

class Adversaries : public ::testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
};

TEST_P(Adversaries, EndInATruthfulVerdictOrInOneClearLine) {
  const Row& row = GetParam();
  if (access(Program(row.program).c_str(), X_OK) != 0) GTEST_SKIP() << row.program << " cannot be built here";
  if (row.needs == Needs::Mounts && !MountsPossible()) GTEST_SKIP() << "no mounts in a user namespace here";
  if (row.allows == Allows::Refusal && RefusedWithoutCuaudit(row)) GTEST_SKIP() << "this machine does not allow it";
  if (row.needs == Needs::Time && !AllAsked()) GTEST_SKIP() << "takes many seconds: CUAUDIT_ADVERSARIES=all";
  ExpectSaid(row, row.careful, false);
  ExpectSaid(row, row.loses, true);
}

// "hostile_files_12_closes_all": by its number in docs/ADVERSARIES.md.
std::string NameOf(const ::testing::TestParamInfo<Row>& test) {
  return std::string(test.param.program) + "_" + std::to_string(test.index + 1) + (test.param.mode[0] == '\0' ? "" : "_") + test.param.mode;
}

INSTANTIATE_TEST_SUITE_P(Every, Adversaries, ::testing::ValuesIn(kRows), &NameOf);

// Nine calls fail in turn. One of these trials removes its journal; the other eight are judged and reported nevertheless.
TEST(LostJournal, CostsNoOtherTrial) {
  const Audit audit = RunAudit({"sweep", "--isolation=spawn", "--depth", "1"}, {Program("hostile_files"), "journal_removed_later"});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["trials"], 9);
  EXPECT_EQ(audit.report["totals"]["fired"], 8);
  EXPECT_EQ(audit.report["totals"]["skipped"].value("trials in which the program removed or overwrote its journal", 0), 1);
}

std::string Cell(const Said& said) {
  if (said.exit < 0) return "";
  std::string text = std::to_string(said.exit) + (said.outcome[0] == '\0' ? "" : std::string(", ") + said.outcome);
  std::string found = said.findings;
  for (std::size_t at = found.find("  "); at != std::string::npos; at = found.find("  ")) found.erase(at, 1);
  if (!found.empty()) text += ": " + found;
  if (said.note[0] != '\0') text += std::string("; note `") + said.note + "`";
  if (said.line[0] != '\0') text += std::string("; `") + said.line + "`";
  return text;
}

std::string Page() {
  std::string page =
      "# Hostile programs\n\n"
      "Programs that do what a debugger, a profiler or an audit least expects, and what `cuaudit` must say of each: a truthful verdict, or "
      "one\n"
      "clear line. It must not crash, hang, call clean what is not, or lose a trial that has finished.\n\n"
      "Most tell one story: a reference to the primary context, a stream, and an event that is refused. In the *careful* form the program "
      "gives\n"
      "everything back, so that nothing may be found. In the other one it *loses its stream*, which must be found. An empty cell: the form "
      "makes\n"
      "no difference. `sweep` has the options `" +
      std::string(kSweepOptions) +
      "`. A cell is the exit status, the outcome, what was\n"
      "found, and what is said.\n\n"
      "This page is generated from `suites/e2e/hostile_rows.h`. The test `e2e_adversaries_test` runs every row on the simulated driver and "
      "holds\n"
      "the page to the rows; `CUAUDIT_UPDATE_GOLDEN=1 build/dev/bin/e2e_adversaries_test --gtest_filter='Page.*'` writes it anew. Rows "
      "that\n"
      "need what a machine does not allow (user namespaces) are skipped visibly. The one with 1,000,000 objects runs with "
      "`CUAUDIT_ADVERSARIES=all`.\n\n"
      "| # | program | it | command | careful | loses its stream |\n| --- | --- | --- | --- | --- | --- |\n";
  std::size_t number = 0;
  for (const Row& row : kRows) {
    page += "| " + std::to_string(++number) + " | `" + row.program + (row.mode[0] == '\0' ? "" : " ") + row.mode + "` | " + row.does +
            " | `" + row.command + "` | " + Cell(row.careful) + " | " + Cell(row.loses) + " |\n";
  }
  page += "\nOther tests of `suites/e2e` have programs of the same sort. They:\n\n";
  for (const Elsewhere& other : kElsewhere) page += std::string("- ") + other.does + " (`" + other.test + "`)\n";
  return page;
}

TEST(Page, IsWhatTheRowsSay) {
  if (std::getenv("CUAUDIT_UPDATE_GOLDEN") != nullptr) WriteFile(CUAUDIT_ADVERSARIES_PAGE, Page());
  EXPECT_TRUE(ReadFile(CUAUDIT_ADVERSARIES_PAGE) == Page()) << "CUAUDIT_UPDATE_GOLDEN=1 writes docs/ADVERSARIES.md anew";
}

}  // namespace
}  // namespace cuaudit::e2e::adversaries
