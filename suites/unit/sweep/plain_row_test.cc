// SPDX-License-Identifier: MIT
// Lines of a trial log that name only what others have defined, read without JSON: the same trials, and nothing else is taken for one.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "harness/sweep/log_rows.h"

namespace cuaudit::harness::plain_row_test {
namespace {

TrialResult TrialOf(std::size_t index) {
  TrialResult trial;
  trial.index = index;
  trial.fired = true;
  trial.verdict = Verdict::Leak;
  trial.faults = {"cuInit#" + std::to_string(index + 1) + "=NOT_INITIALIZED,refuse", "cuMemFree#+1=INVALID_VALUE,after"};
  trial.unfired = {1};
  trial.fault_key = 5;
  trial.fault_site = PlaceText("cuInit", {{"prog", "Open", "a.c", 3, 4}});
  trial.later_keys = {6};
  trial.later_sites = {trial.fault_site};
  TrialFindingText finding;
  finding.rule = Rule::Leak;
  finding.kind = driver::Kind::Stream;
  finding.count = 2;
  finding.acquired = trial.fault_site;
  finding.detail = "once";
  trial.findings = {finding};
  trial.notes = {finding, finding};
  trial.after = std::make_shared<const AfterFault>(AfterFault{{{trial.fault_site, 2}}, 1, {1}, {}});
  return trial;
}

TEST(PlainRow, SaysTheSameAsTheLineReadAsJson) {
  LogRows writer;
  const std::string first = writer.Write(TrialOf(0));
  const std::string line = writer.Write(TrialOf(11));
  PlainRow row;
  EXPECT_FALSE(ReadPlainRow(first.substr(0, first.size() - 1), &row)) << "it defines rows";
  ASSERT_TRUE(ReadPlainRow(line.substr(0, line.size() - 1), &row)) << line;
  EXPECT_EQ(row.trial, 11U);
  std::string spaced = line;
  spaced.insert(1, " ");  // only a reader of JSON takes it
  ASSERT_FALSE(ReadPlainRow(spaced.substr(0, spaced.size() - 1), &row));
  LogRows plain;
  LogRows json;
  ASSERT_TRUE(plain.Read(first).has_value());
  ASSERT_TRUE(json.Read(first).has_value());
  const std::optional<TrialResult> a = plain.Read(line.substr(0, line.size() - 1));
  const std::optional<TrialResult> b = json.Read(spaced);
  ASSERT_TRUE(a.has_value());
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(LogRows().Write(*a), LogRows().Write(TrialOf(11)));
  EXPECT_EQ(LogRows().Write(*b), LogRows().Write(TrialOf(11)));
}

TEST(PlainRow, IsNothingElse) {
  PlainRow row;
  ASSERT_TRUE(ReadPlainRow(R"({"trial":1,"faults":[2,3],"as":4,"at":[]})", &row));
  for (const char* const line :
       {"", "{}", R"({"trial":01,"faults":[2,3],"as":4,"at":[5]})", R"({"trial":-1,"faults":[2,3],"as":4,"at":[5]})",
        R"({"trial":1,"faults":[2,],"as":4,"at":[5]})", R"({"trial":1,"faults":[2,3],"as":4,"at":[5]} )",
        R"({"trial":1,"faults":[2,3],"as":4.5,"at":[5]})", R"({"trial":1,"faults":[2,3],"as":4,"at":[5)",
        R"({"trial":99999999999999999999,"faults":[2,3],"as":4,"at":[5]})", R"({"trial":1,"faults":[2,3],"as":4,"at":[5],"after":}})",
        R"({"trial":1,"attempt":2,"faults":[2,3],"as":4,"at":[5]})"}) {
    EXPECT_FALSE(ReadPlainRow(line, &row)) << line;
  }
}

TEST(PlainRow, ThatNamesWhatNobodyDefinedIsNoTrial) {
  LogRows writer;
  const std::string first = writer.Write(TrialOf(0));
  for (const char* const line :
       {R"({"trial":1,"faults":[2,3],"as":9,"at":[0]})", R"({"trial":1,"faults":[99,3],"as":0,"at":[0]})",
        R"({"trial":1,"faults":[],"as":0,"at":[0]})", R"({"trial":1,"faults":[0],"as":0,"at":[0]})",
        R"({"trial":1,"faults":[0,1],"as":0,"at":[]})", R"({"trial":1,"faults":[0,1],"as":0,"at":[0,0,0]})",
        R"({"trial":1,"faults":[0,1],"as":0,"at":[0],"findings":[7]})", R"({"trial":1,"faults":[0,1],"as":0,"at":[0],"after":7})",
        R"({"trial":1,"faults":[0,99999999999],"as":0,"at":[0]})"}) {
    LogRows rows;
    ASSERT_TRUE(rows.Read(first).has_value());
    EXPECT_FALSE(rows.Read(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace cuaudit::harness::plain_row_test
