// SPDX-License-Identifier: MIT
#include "reports/audit_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "reports/json_writer.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::audit_reader_test {
namespace {

namespace fs = std::filesystem;

std::string Written(const report::Run& run) {
  std::ostringstream out;
  EXPECT_TRUE(WriteJson(run, out));
  return out.str();
}

constexpr char kTail[] =
    R"(, "unused_suppressions": ["s.toml:3"], "header": {"generated": "2026-01-02T03:04:05Z", "tool_version": "0.1.0"}})";

class AuditReader : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(testing::TempDir()) / ("audit_reader_" + std::to_string(getpid()));
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    Put("player.sweep.json", Written(suites::SweepWithFindings()));
    Put("player.cycles.json", Written(suites::CyclesWithGrowth()));
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Put(const std::string& name, const std::string& text) { std::ofstream(dir_ / name, std::ios::binary) << text; }
  void PutCases(const std::string& cases) { Put("audit.json", R"({"schema": 1, "cases": [)" + cases + "]" + kTail); }
  // What was expected, without the directory.
  std::string Expected() {
    Audit audit;
    std::string line = ReadAudit(dir_.string(), &audit);
    const std::string dir = dir_.string() + "/";
    return line.starts_with(dir) ? line.substr(dir.size()) : line;
  }

  fs::path dir_;
};

TEST_F(AuditReader, ADirectoryHasTheReportsOfItsCases) {
  PutCases(R"({"name": "player", "tags": ["fast"], "reports": ["player.sweep.json", "player.cycles.json"]},
              {"name": "gone", "tags": [], "reports": [], "not_run": "left out by --tag"})");
  for (const fs::path& path : {dir_, dir_ / "audit.json"}) {
    Audit audit;
    ASSERT_EQ(ReadAudit(path.string(), &audit), "");
    ASSERT_EQ(audit.cases.size(), 2U);
    EXPECT_EQ(audit.cases[0].tags, std::vector<std::string>{"fast"});
    ASSERT_EQ(audit.cases[0].runs.size(), 2U);
    EXPECT_EQ(Written(audit.cases[0].runs[0]), Written(suites::SweepWithFindings()));
    EXPECT_EQ(audit.cases[1].not_run, "left out by --tag");
    EXPECT_EQ(audit.unused_suppressions, std::vector<std::string>{"s.toml:3"});
    EXPECT_EQ(audit.tool_version, "0.1.0");
  }
}

TEST_F(AuditReader, AComparisonIsReadBack) {
  Put("audit.json",
      R"({"schema": 1, "cases": [], "comparison": {"base": "1.0", "gone": [{"change": "not_run", "because": "the case is gone",
      "case": "a", "mode": "cycles", "fingerprint": "v2-1", "rule": "growth", "title": "growth: 1 stream"}], "base_guid": "g", "fail_on": ["new", "not_run"],
      "not_run": [{"case": "b", "mode": "sweep", "because": "the case is gone"}]})" +
          std::string(kTail));
  Audit audit;
  ASSERT_EQ(ReadAudit(dir_.string(), &audit), "");
  ASSERT_TRUE(audit.comparison);
  ASSERT_EQ(audit.comparison->gone.size(), 1U);
  EXPECT_EQ(audit.comparison->gone[0].mode, Mode::Cycles);
  EXPECT_EQ(audit.comparison->gone[0].because, "the case is gone");
  ASSERT_EQ(audit.comparison->not_run.size(), 1U);
  EXPECT_EQ(audit.comparison->not_run[0].case_name, "b");
  EXPECT_EQ(audit.comparison->base_guid, "g");
  EXPECT_EQ(audit.comparison->fail_on, (std::set<Change>{Change::New, Change::NotRun}));
  for (const auto& [wrong, expected] :
       {std::pair(R"("fail_on": ["newer"])", "fail_on[0]: expected new, changed, unchanged, fixed or not_run"),
        std::pair(R"("fail_on": 3)", "fail_on: expected a list"),
        std::pair(R"("not_run": [{"case": "b", "mode": "sw", "because": ""}])", "not_run[0].mode: expected sweep, cycles, run or replay"),
        std::pair(R"("base_guid": 7)", "base_guid: expected a string")}) {
    Put("audit.json",
        R"({"schema": 1, "cases": [], "comparison": {"base": "1.0", "gone": [], )" + std::string(wrong) + "}" + std::string(kTail));
    EXPECT_EQ(Expected(), std::string("audit.json: comparison.") + expected);
  }
}

TEST_F(AuditReader, OneReportIsACaseWithoutAName) {
  Audit audit;
  ASSERT_EQ(ReadAudit((dir_ / "player.sweep.json").string(), &audit), "");
  ASSERT_EQ(audit.cases.size(), 1U);
  EXPECT_EQ(audit.cases[0].name, "");
  EXPECT_EQ(audit.cases[0].runs.size(), 1U);
  EXPECT_EQ(audit.generated, suites::SweepWithFindings().generated);
}

TEST_F(AuditReader, SaysWhichFileAndWhatWasExpected) {
  EXPECT_EQ(Expected(), "audit.json: no such file");
  Put("audit.json", "{");
  EXPECT_EQ(Expected(), "audit.json: line 1, column 2: expected JSON");
  Put("audit.json", R"({"schema": 2})");
  EXPECT_EQ(Expected(), "audit.json: schema: expected 1: a result of cuaudit audit");
  PutCases(R"({"name": "a b", "tags": [], "reports": []})");
  EXPECT_EQ(Expected(), "audit.json: cases[0].name: expected letters, digits, '.', '_' and '-'");
  PutCases(R"({"name": "a", "tags": [], "reports": []}, {"name": "a", "tags": [], "reports": []})");
  EXPECT_EQ(Expected(), "audit.json: cases[1].name: expected another name in each case");
  PutCases(R"({"name": "a", "tags": [], "reports": ["a.sweep.json"]})");
  EXPECT_EQ(Expected(), "a.sweep.json: no such file");
  Put("a.sweep.json", Written(suites::SweepWithFindings()).substr(0, 400));
  EXPECT_NE(Expected().find("a.sweep.json: line "), std::string::npos) << Expected();
}

// A result that was sent by somebody else cannot name files outside of it.
TEST_F(AuditReader, NoReportOutsideTheDirectory) {
  for (const char* const name : {"../x.json", "/etc/passwd", "..", ".", "", "a\\u0000b"}) {
    PutCases(R"({"name": "a", "tags": [], "reports": [")" + std::string(name) + "\"]}");
    EXPECT_EQ(Expected(), "audit.json: cases[0].reports[0]: expected the name of a file in the same directory") << name;
  }
}

TEST_F(AuditReader, WhatIsNoFileIsRefused) {
  Audit audit;
  EXPECT_EQ(ReadAudit("/dev/zero", &audit), "/dev/zero: expected a regular file");
  EXPECT_EQ(ReadAudit("", &audit), ": no such file");
}

}  // namespace
}  // namespace cuaudit::report::audit_reader_test
