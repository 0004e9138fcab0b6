// SPDX-License-Identifier: MIT
// Reports and results of audits, read back.
#include "reports/json_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reports/audit_json.h"
#include "reports/writers.h"
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

TEST(JsonReader, TheLifecycleOfATestIsReadBack) {
  report::Run run = suites::SweepWithFindings();
  run.lifecycle = "pool";
  report::Run again;
  EXPECT_EQ(ReadJson(Written(run), &again), "");
  EXPECT_EQ(again.lifecycle, "pool");
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

// Several reasons have one sentence, and some are nothing but the part that varies.
TEST(JsonReader, EveryReasonIsReadBackByItsId) {
  report::Run run = suites::SweepWithFindings();
  run.coverage = Coverage();
  run.meters = Meters();
  for (std::size_t i = 0; i < std::size(words::kReasons); ++i) {
    const Because why{static_cast<Reason>(i), "the heap; of; it"};
    run.totals.skipped[why] = i;
    run.totals.pruned[why] = i;
    run.totals.isolation[{Isolation::Spawn, {why, {Reason::None, ""}}}] = i;
    run.host.left_out["host_" + std::to_string(i)] = why;
    run.meters->absent["meter_" + std::to_string(i)] = why;
    NotReached row = {.why = why.reason};
    run.coverage->not_reached.push_back(row);
  }
  for (std::size_t i = 0; i < std::size(words::kMissed); ++i) {
    NotReached row = {.missed = static_cast<Missed>(i)};
    run.coverage->not_reached.push_back(row);
  }
  report::Run read;
  ASSERT_EQ(ReadJson(Written(run), &read), "");
  EXPECT_EQ(read.totals.skipped, run.totals.skipped);
  EXPECT_EQ(read.totals.pruned, run.totals.pruned);
  EXPECT_EQ(read.totals.isolation, run.totals.isolation);
  EXPECT_EQ(read.host.left_out, run.host.left_out);
  EXPECT_EQ(read.meters->absent, run.meters->absent);
  for (std::size_t i = 0; i < run.coverage->not_reached.size(); ++i) {
    EXPECT_EQ(read.coverage->not_reached[i].why, run.coverage->not_reached[i].why);
    EXPECT_EQ(read.coverage->not_reached[i].missed, run.coverage->not_reached[i].missed);
  }
}

TEST(JsonReader, TheMessageIsReadBackPartByPart) {
  report::Run run = suites::SweepWithFindings();
  run.message.told = "clean; not exercised";
  run.message.nothing = NothingPlanned::NothingChosen;
  run.message.never_fired = {{{Missed::Late, 2}, {Missed::Unfired, 3}}, 9, "/tmp/journals", {"cuMemAlloc#1"}, 2};
  run.message.untried = Part{3, 12};
  run.message.chosen = Part{10, 12};
  run.message.abandoned = Part{1, 12};
  run.message.coverage = Part{900, 1000};
  run.message.bad_end = BadEnd{"exited with status 3", 0};
  run.message.undecided = Undecided{2, 80};
  report::Run read;
  ASSERT_EQ(ReadJson(Written(run), &read), "");
  EXPECT_EQ(read.message.told, run.message.told);
  EXPECT_EQ(read.message.nothing, run.message.nothing);
  EXPECT_EQ(read.message.never_fired.trials, run.message.never_fired.trials);
  EXPECT_EQ(read.message.never_fired.faults, run.message.never_fired.faults);
  EXPECT_EQ(read.message.untried->some, 3U);
  EXPECT_EQ(read.message.chosen->all, 12U);
  EXPECT_EQ(read.message.abandoned->some, 1U);
  EXPECT_EQ(read.message.coverage->some, 900U);
  EXPECT_EQ(read.message.bad_end->how, run.message.bad_end->how);
  EXPECT_EQ(read.message.undecided->cycles, 80U);
  EXPECT_EQ(Written(read), Written(run));
}

TEST(JsonReader, SentencesAreForPeople) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(Written(suites::SweepWithFindings()));
  json["totals"]["skipped"] = {{"a sentence that somebody has translated", 4}};
  json["message"] = "not exercised: no fault fired";
  report::Run run;
  ASSERT_EQ(ReadJson(json.dump(), &run), "");
  EXPECT_EQ(Written(run), Written(suites::SweepWithFindings()));
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
  EXPECT_EQ(With("/why/never_fired", {{"trials", {{{"missed", "lost"}, {"count", 1}}}}}),
            "why.never_fired.trials[0].missed: expected why a fault is missed (cuaudit list missed)");
  EXPECT_EQ(With("/why/nothing_planned", "nothing"), "why.nothing_planned: expected nothing_can_fail or nothing_chosen");
  EXPECT_EQ(With("/why/bad_end", {{"how", ""}, {"expected", 4294967296U}}), "why.bad_end.expected: expected an exit status");
  EXPECT_EQ(With("/totals/skipped_by_id", {{{"reason", "of the year 2031"}, {"count", 1}}}),
            "totals.skipped_by_id[0].reason: expected a reason that this version knows (cuaudit list reasons)");
  EXPECT_EQ(With("/totals/isolation_by_id", {{{"in", "orbit"}, {"count", 1}}}),
            "totals.isolation_by_id[0].in: expected what a trial ran in: fork, spawn, cycle or in_process");
  EXPECT_EQ(Without("", "why"), "why: expected this key: an older cuaudit wrote the report; make it anew with this one");
  EXPECT_EQ(Without("/totals", "skipped_by_id"), "totals.skipped_by_id: expected this key");
  EXPECT_EQ(Without("", "notes"), "notes: expected this key");
  EXPECT_EQ(Without("/findings/0/acquired", "stack"), "findings[0].acquired.stack: expected this key");
  EXPECT_EQ(Expected(std::string(100000, '[') + std::string(100000, ']')), "expected lists and objects at most 64 deep");
  EXPECT_EQ(Expected("[1" + std::string(400, '0') + "]"), "expected no number beyond 1.8e308");
}

namespace fs = std::filesystem;

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

using Told = std::vector<std::string>;  // "reports 1/2"

ReadSoFar TellTo(Told* told) {
  return [told](const char* unit, std::size_t done, std::size_t total) {
    told->push_back(std::string(unit) + " " + std::to_string(done) + "/" + std::to_string(total));
  };
}

TEST_F(AuditReader, TellsHowManyReportsAreRead) {
  PutCases(R"({"name": "player", "tags": [], "reports": ["player.sweep.json", "player.cycles.json"]})");
  Audit audit;
  Told told;
  ASSERT_EQ(ReadAudit(dir_.string(), &audit, TellTo(&told)), "");
  EXPECT_EQ(told, (Told{"reports 0/2", "reports 1/2"}));
  PutCases(R"({"name": "player", "tags": [], "reports": ["player.sweep.json"]})");
  told.clear();
  ASSERT_EQ(ReadAudit(dir_.string(), &audit, TellTo(&told)), "");
  EXPECT_EQ(told, Told{}) << "one small report";
}

TEST_F(AuditReader, TellsHowMuchOfALargeReportIsRead) {
  report::Run run = suites::SweepWithFindings();
  const Finding finding = run.findings.front();
  while (run.findings.size() < 3000) run.findings.push_back(finding);
  const std::string text = Written(run);
  const std::size_t all = text.size() >> 20U;
  ASSERT_GE(all, 2U);
  Put("large.json", text);
  Audit audit;
  Told told;
  ASSERT_EQ(ReadAudit((dir_ / "large.json").string(), &audit, TellTo(&told)), "");
  EXPECT_EQ(Written(audit.cases[0].runs[0]), text);
  Told expected;
  for (std::size_t i = 0; i <= all; ++i) expected.push_back("MiB " + std::to_string(i) + "/" + std::to_string(all));
  const std::string entries = "/" + std::to_string(run.findings.size() + run.notes.size());
  for (const char* const done : {"1024", "2048"}) expected.push_back("findings " + std::string(done) + entries);
  EXPECT_EQ(told, expected);
  const std::string cut = text.substr(0, text.size() - 10);
  Put("large.json", cut);
  const std::string error = ReadAudit((dir_ / "large.json").string(), &audit, TellTo(&told));
  EXPECT_NE(error.find(", column "), std::string::npos) << error;
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
}  // namespace cuaudit::report::json_reader_test
