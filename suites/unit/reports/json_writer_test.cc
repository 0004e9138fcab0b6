// SPDX-License-Identifier: MIT
// JSON of a report, and of an audit of many cases.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "reports/audit_json.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::json_writer_test {
namespace {

std::string Written(const Run& run) {
  std::ostringstream out;
  EXPECT_TRUE(WriteJson(run, out));
  return out.str();
}

nlohmann::ordered_json Parsed(const Run& run) { return nlohmann::ordered_json::parse(Written(run)); }

TEST(JsonWriter, CarriesEveryFieldOfAFinding) {
  const report::Run run = suites::SweepWithFindings();
  const auto json = Parsed(run);
  EXPECT_EQ(json["schema"], "cuaudit.report/1");
  const auto& finding = json["findings"][0];
  EXPECT_EQ(finding["rule"], "leak");
  EXPECT_EQ(finding["trials"], 3);
  EXPECT_EQ(finding["fault"]["call"], "cuEventCreate");
  EXPECT_EQ(finding["fault"]["occurrence"], 2);
  EXPECT_EQ(finding["fault"]["text"], run.findings[0].fault->text);
  EXPECT_EQ(finding["acquired"]["stack"].size(), 4U);
  EXPECT_EQ(finding["acquired"]["stack"][1]["line"], 61);
  EXPECT_TRUE(json["findings"][1]["fault"].is_null());
  EXPECT_EQ(json["findings"][1]["where_stack"][0]["function"], "plug_close");
  EXPECT_EQ(json["notes"].size(), 2U);
  EXPECT_EQ(json["totals"]["verdicts"]["leak"], 14);
}

TEST(JsonWriter, KeysComeInTheSameOrderInEveryReport) {
  std::vector<std::string> expected;
  const auto sweep = Parsed(suites::SweepWithFindings());
  for (const auto& [key, value] : sweep.items()) expected.push_back(key);
  for (const suites::Sample& sample : suites::Samples()) {
    std::vector<std::string> keys;
    const auto json = Parsed(sample.run);
    for (const auto& [key, value] : json.items()) {
      static const std::set<std::string> kRare = {"message", "interrupted", "faults", "coverage",
                                                  "meters"};  // there when they say something
      if (!kRare.contains(key)) keys.push_back(key);
    }
    EXPECT_EQ(keys, expected) << sample.name;
  }
  EXPECT_EQ(expected.front(), "schema");
  EXPECT_EQ(expected.back(), "header");
}

TEST(JsonWriter, OnlyTheHeaderDiffersWithTheTimeOfWriting) {
  report::Run early = suites::SweepWithFindings();
  report::Run late = early;
  late.generated = "2030-01-01T00:00:00Z";
  auto a = Parsed(early);
  auto b = Parsed(late);
  EXPECT_NE(a, b);
  a.erase("header");
  b.erase("header");
  EXPECT_EQ(a, b);
}

TEST(JsonWriter, BytesThatAreNotUtf8AreReplaced) {
  const auto json = Parsed(suites::HostileStrings());
  EXPECT_EQ(json["command"][4], "\x1b[31mred");
  EXPECT_EQ(json["command"][5], "bad\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(json["command"][7], "caf\xc3\xa9");
}

TEST(JsonWriter, KeysThatAreNotUtf8AreReplacedToo) {
  report::Run run;
  run.per_cycle["\xff"] = 1;
  run.totals.skipped[{Reason::CopyDiffers, "\xfe"}] = 2;
  EXPECT_NE(Written(run).find("\"\xEF\xBF\xBD\": 1"), std::string::npos);
}

TEST(JsonWriter, WholeGrowthHasNoFraction) {
  report::Run run = {.per_cycle = {{"event", 0.5}, {"stream", 2.0}, {"graph", -1.0}, {"context", std::numeric_limits<double>::infinity()}}};
  const auto json = Parsed(run);
  EXPECT_TRUE(json["per_cycle"]["stream"].is_number_integer());
  EXPECT_EQ(json["per_cycle"]["stream"], 2);
  EXPECT_EQ(json["per_cycle"]["graph"], -1);
  EXPECT_EQ(json["per_cycle"]["event"], 0.5);
  EXPECT_TRUE(json["per_cycle"]["context"].is_null());
}

TEST(JsonWriter, LargeCountsKeepTheirLastDigit) {
  report::Run run;
  run.totals.calls = std::numeric_limits<std::uint64_t>::max();
  EXPECT_NE(Written(run).find("18446744073709551615"), std::string::npos);
}

TEST(JsonWriter, AFailedStreamIsTold) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(WriteJson(report::Run{}, out));
}

using Json = nlohmann::json;

Json WrittenIndex(const AuditIndex& index) {
  std::ostringstream text;
  EXPECT_TRUE(WriteAuditIndex(index, text));
  return Json::parse(text.str(), nullptr, false);
}

TEST(AuditJson, NamesCasesAndTheirFiles) {
  AuditIndex index;
  index.cases = {
      {"pool", {"gpu", "slow"}, {ReportFile("pool", Mode::Sweep), ReportFile("pool", Mode::Cycles)}, TrialsFile("pool"), "", "cut short"},
      {"gone", {}, {}, "", "not selected", ""}};
  index.generated = "1970-01-01T00:00:00Z";
  index.tool_version = "1.0";
  index.project = "/home/cuaudit.toml";
  EXPECT_EQ(WrittenIndex(index), Json::parse(R"({
    "schema": 1,
    "cases": [
      {"name": "pool", "tags": ["gpu", "slow"], "reports": ["pool.sweep.json", "pool.cycles.json"], "trials": "pool.trials.jsonl",
        "left_out": "cut short"},
      {"name": "gone", "tags": [], "reports": [], "not_run": "not selected"}
    ],
    "unused_suppressions": [],
    "header": {"generated": "1970-01-01T00:00:00Z", "tool_version": "1.0", "project": "/home/cuaudit.toml"}
  })"));
}

TEST(AuditJson, HasTheComparisonWhenThereIsOne) {
  AuditIndex index;
  Gone fixed;
  fixed.change = Change::Fixed;
  fixed.case_name = "pool";
  fixed.mode = Mode::Sweep;
  fixed.fingerprint = "0123";
  fixed.rule = Rule::Leak;
  fixed.title = "1 stream";
  Gone not_run = fixed;
  not_run.change = Change::NotRun;
  not_run.because = "its case is gone";
  index.comparison = Comparison{"base", {fixed, not_run}};
  index.comparison->not_run = {{"pool", Mode::Cycles, "the case has no cycles"}};
  EXPECT_EQ(WrittenIndex(index)["comparison"],
            Json::parse(R"({"base": "base", "base_guid": "", "fail_on": ["new", "changed", "not_run"], "gone": [
    {"change": "fixed", "case": "pool", "mode": "sweep", "fingerprint": "0123", "rule": "leak", "title": "1 stream"},
    {"change": "not_run", "because": "its case is gone", "case": "pool", "mode": "sweep", "fingerprint": "0123", "rule": "leak", "title": "1 stream"}
  ], "not_run": [{"case": "pool", "mode": "cycles", "because": "the case has no cycles"}]})"));
}

TEST(AuditJson, NoTextBreaksIt) {
  for (const std::string& text :
       {std::string("a\"\\\n\x1b\0b", 7), std::string("\xff\xfe\xc3"), std::string(10000, 'x'), std::string("</script>")}) {
    AuditIndex index;
    index.cases = {{text, {text}, {text}, text, text, text}};
    index.comparison = Comparison{text, {{Change::NotRun, text, text, Mode::Sweep, text, Rule::Leak, text}}};
    index.unused_suppressions = {text};
    index.project = text;
    const Json json = WrittenIndex(index);
    ASSERT_FALSE(json.is_discarded());
    const bool utf8 = text[0] != '\xff';
    EXPECT_EQ(json["cases"][0]["name"], utf8 ? text : "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    EXPECT_EQ(json["unused_suppressions"].size(), 1U);
  }
}

TEST(AuditJson, SaysWhenTheStreamFailed) {
  std::ostringstream text;
  text.setstate(std::ios::badbit);
  EXPECT_FALSE(WriteAuditIndex({}, text));
}

}  // namespace
}  // namespace cuaudit::report::json_writer_test
