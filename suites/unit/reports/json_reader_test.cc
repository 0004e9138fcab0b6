// SPDX-License-Identifier: MIT
#include "reports/json_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reports/json_writer.h"
#include "reports/text_writer.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::json_reader_test {
namespace {

std::string Written(const report::Run& run) {
  std::ostringstream out;
  EXPECT_TRUE(WriteJson(run, out));
  return out.str();
}

std::string AsText(const report::Run& run) {
  std::ostringstream out;
  EXPECT_TRUE(WriteText(run, out, {.findings = true}));
  return out.str();
}

std::string Expected(std::string_view text) {
  report::Run run;
  return ReadJson(text, &run);
}

// A report with one value changed.
std::string With(const char* pointer, nlohmann::json value) {
  nlohmann::json json = nlohmann::json::parse(Written(suites::SweepWithFindings()));
  json[nlohmann::json::json_pointer(pointer)] = std::move(value);
  return Expected(json.dump());
}

std::string Without(const char* above, const char* key) {
  nlohmann::json json = nlohmann::json::parse(Written(suites::SweepWithFindings()));
  json[nlohmann::json::json_pointer(above)].erase(key);
  return Expected(json.dump());
}

TEST(JsonReader, WhatIsReadIsWrittenAsItWas) {
  for (const suites::Sample& sample : suites::Samples()) {
    const std::string written = Written(sample.run);
    report::Run run;
    EXPECT_EQ(ReadJson(written, &run), "") << sample.name;
    EXPECT_EQ(Written(run), written) << sample.name;
  }
}

// A report read back shows the person the same page. (Frame::once is for blame, and no page has it.)
TEST(JsonReader, TheTextOfWhatIsReadIsTheSame) {
  for (const suites::Sample& sample : suites::Samples()) {
    if (sample.name == "hostile") continue;  // bytes that are no UTF-8 are U+FFFD in JSON
    report::Run run;
    ASSERT_EQ(ReadJson(Written(sample.run), &run), "") << sample.name;
    EXPECT_EQ(AsText(run), AsText(sample.run)) << sample.name;
  }
}

TEST(JsonReader, ComparedAndSuppressedDefectsAreReadBack) {
  report::Run run = suites::SweepWithFindings();
  run.defects[0].change = Change::Changed;
  run.defects[0].was = "stream; calls fail at 1 place: cuMemAlloc";
  run.defects[1].suppressed = {"waits for the driver", "ann", "2027-03-31", true, "suppressions.toml:7"};
  run.coverage = Coverage();
  run.coverage->tried.push_back({"cuMemAlloc", "OUT_OF_MEMORY", "refuse", true, "open", 3});
  report::Run read;
  ASSERT_EQ(ReadJson(Written(run), &read), "");
  EXPECT_EQ(read.defects[0].change, Change::Changed);
  EXPECT_EQ(read.defects[0].was, run.defects[0].was);
  ASSERT_TRUE(read.defects[1].suppressed);
  EXPECT_EQ(read.defects[1].suppressed->owner, "ann");
  EXPECT_TRUE(read.defects[1].suppressed->expired);
  EXPECT_EQ(read.coverage->tried.at(0).function, "open");
  EXPECT_EQ(Written(read), Written(run));
}

TEST(JsonReader, ATextOfAnotherVersionIsKept) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(Written(suites::SweepWithFindings()));
  json["totals"]["skipped"] = {{"a reason of the year 2031", 4}};
  json["totals"]["isolation"] = {{"spawn: a way; of that year", 2}};
  report::Run run;
  ASSERT_EQ(ReadJson(json.dump(), &run), "");
  const auto again = nlohmann::ordered_json::parse(Written(run));
  EXPECT_EQ(again["totals"]["skipped"], json["totals"]["skipped"]);
  EXPECT_EQ(again["totals"]["isolation"], json["totals"]["isolation"]);
}

TEST(JsonReader, EveryBeginningOfAReportIsRefusedInOneLine) {
  const std::string written = Written(suites::SecondFaults());
  for (std::size_t size = 0; size + 2 < written.size(); size += 1 + size / 64) {
    const std::string expected = Expected(std::string_view(written).substr(0, size));
    ASSERT_NE(expected, "") << size;
    ASSERT_EQ(expected.find('\n'), std::string::npos) << expected;
  }
}

TEST(JsonReader, SaysWhereAndWhatWasExpected) {
  EXPECT_EQ(Expected("{\n  \"schema\": \"cuaudit.report/1\",\n  \"mode\": }"), "line 3, column 11: expected JSON");
  EXPECT_EQ(Expected("[]"), "expected an object");
  EXPECT_EQ(Expected("{}"), "schema: expected this key");
  EXPECT_EQ(With("/schema", "cuaudit.report/2"), "schema: expected \"cuaudit.report/1\": a report of cuaudit");
  EXPECT_EQ(With("/mode", "swept"), "mode: expected sweep, cycles, run or replay");
  EXPECT_EQ(With("/findings/1/count", -1), "findings[1].count: expected a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(With("/findings/1/count", 1.5), "findings[1].count: expected a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(With("/findings/0/rule", "leek"), "findings[0].rule: expected a rule that this version knows (cuaudit list rules)");
  EXPECT_EQ(With("/findings/0/acquired/stack/0/line", 4294967296U), "findings[0].acquired.stack[0].line: expected the number of a line");
  EXPECT_EQ(With("/findings/0/fault", "none"), "findings[0].fault: expected an object");
  EXPECT_EQ(With("/defects/0/members/0/findings/0", "leak-1"),
            "defects[0].members[0].findings[0]: expected the fingerprint of a finding of this report");
  EXPECT_EQ(With("/defects/0/members", nlohmann::json::array()), "defects[0].members: expected at least one member");
  EXPECT_EQ(With("/driver/kind", "emulated"), "driver.kind: expected sim, real or none");
  EXPECT_EQ(With("/totals/verdicts", {{"passed", 1}}),
            "totals.verdicts.passed: expected a verdict that this version knows (cuaudit list verdicts)");
  EXPECT_EQ(Without("", "notes"), "notes: expected this key");
  EXPECT_EQ(Without("/findings/0/acquired", "stack"), "findings[0].acquired.stack: expected this key");
  EXPECT_EQ(Expected(std::string(100000, '[') + std::string(100000, ']')), "expected lists and objects at most 64 deep");
}

}  // namespace
}  // namespace cuaudit::report::json_reader_test
