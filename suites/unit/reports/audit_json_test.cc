// SPDX-License-Identifier: MIT
#include "reports/audit_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace cuaudit::report::audit_json_test {
namespace {

using Json = nlohmann::json;

Json Written(const AuditIndex& index) {
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
  EXPECT_EQ(Written(index), Json::parse(R"({
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
  EXPECT_EQ(Written(index)["comparison"],
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
    const Json json = Written(index);
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
}  // namespace cuaudit::report::audit_json_test
