// SPDX-License-Identifier: MIT
#include "reports/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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
  report::Run run;
  run.per_cycle = {{"event", 0.5}, {"stream", 2.0}, {"graph", -1.0}, {"context", std::numeric_limits<double>::infinity()}};
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

}  // namespace
}  // namespace cuaudit::report::json_writer_test
