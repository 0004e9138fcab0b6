// SPDX-License-Identifier: MIT
#include "reports/json_reader.h"

#include <gtest/gtest.h>

#include <iterator>
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
    NotReached row;
    row.why = why.reason;
    run.coverage->not_reached.push_back(row);
  }
  for (std::size_t i = 0; i < std::size(words::kMissed); ++i) {
    NotReached row;
    row.missed = static_cast<Missed>(i);
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
}

}  // namespace
}  // namespace cuaudit::report::json_reader_test
