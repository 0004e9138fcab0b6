// SPDX-License-Identifier: MIT
// The log of trials: what was written is read back, a log that was cut or changed is refused, and rows that are read without JSON.
#include "harness/sweep/trial_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/sweep/log_rows.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::trial_log_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::vector<std::string> kPlan = {"cuInit#1=INVALID_VALUE,refuse", "cuMemAlloc#1=OUT_OF_MEMORY,refuse",
                                        "cuMemAlloc#2=OUT_OF_MEMORY,refuse"};
constexpr faults::Fault kDenied = {driver::BaseId::MemFree, 1, faults::Phase::Any, CUDA_ERROR_INVALID_VALUE, faults::How::After};

TrialResult Sample(std::size_t index) {
  TrialResult trial;
  trial.index = index;
  trial.faults = {kPlan[index]};
  trial.verdict = Verdict::Leak;
  trial.fired = true;
  trial.ending = {3, 0, false};
  trial.fault_key = 0xfedcba9876543210U;
  trial.fault_site = {"cuMemAlloc", {{"prog", "Init()", "a \"b\".c", 12, 0xabc}}};
  TrialFindingText finding;
  finding.rule = Rule::Leak;
  finding.kind = driver::Kind::Stream;
  finding.count = 2;
  finding.bytes = 64;
  finding.acquired_key = 7;
  finding.where_key = 8;
  finding.acquired = {"cuStreamCreate", {{"prog", "Open", "", 0, 1}, {"libc.so.6", "", "", 0, 2}}};
  finding.other_key = 9;
  finding.other = {"cuMemsetD8Async", {{"prog", "Clear", "", 0, 3}}};
  trial.findings = {finding, finding};
  trial.notes = {finding};
  const PlaceText freed("cuMemFree", {{"prog", "Close", "c.c", 9, 5}});
  trial.after = std::make_shared<const AfterFault>(AfterFault{{{freed, 2}, {freed, 0}}, 5, {1, 3}, {3}});
  return trial;
}

// One line of a log that has no other.
std::string FormatTrial(const TrialResult& trial) { return LogRows().Write(trial); }

TEST(TrialLog, RoundTrips) {
  const std::string line = FormatTrial(Sample(1));
  const Result<TrialLogContent> read = ParseTrialLog(line, "trials.jsonl");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(read->trials, SizeIs(1));
  // The text form holds every field, so equal texts are equal trials.
  EXPECT_EQ(FormatTrial(read->trials.front()), line);
  EXPECT_EQ(read->trials.front().findings.front().acquired->stack.front().function, "Open");
  EXPECT_EQ(read->trials.front().findings.front().other->stack.front().function, "Clear");
  EXPECT_EQ(read->trials.front().findings.front().other_key, 9u);
  EXPECT_EQ(read->trials.front().fault_key, 0xfedcba9876543210U);
  const AfterFault& after = *read->trials.front().after;
  ASSERT_THAT(after.steps, SizeIs(2));
  EXPECT_EQ(after.steps[0].place->call, "cuMemFree");
  EXPECT_EQ(after.steps[0].result, 2);
  EXPECT_EQ(after.more, 5u);
  EXPECT_EQ(after.held, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(after.missing, std::vector<std::uint32_t>{3});
}

TEST(TrialLog, TrialsThatGoOnInTheSameWayNameOneRow) {
  LogRows rows;
  std::string log = rows.Write(Sample(0));
  log += rows.Write(Sample(1));
  EXPECT_EQ(log.find("[\"a\","), log.rfind("[\"a\","));
  const Result<TrialLogContent> read = ParseTrialLog(log, "trials.jsonl");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->trials[0].after, read->trials[1].after);
}

TEST(TrialLog, KeepsWholeLinesOfALogCutAtAnyByte) {
  LogRows rows;
  const std::string first = rows.Write(Sample(0));
  const std::string all = first + rows.Write(Sample(2));
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const Result<TrialLogContent> read = ParseTrialLog(all.substr(0, size), "trials.jsonl");
    ASSERT_TRUE(read.ok()) << size << ": " << read.status().message();
    EXPECT_THAT(read->trials, SizeIs(size == all.size() ? 2U : size >= first.size() ? 1U : 0U)) << size;
  }
}

TEST(TrialLog, CutsOffAnUnfinishedLineBeforeItAppends) {
  const TemporaryDir dir;
  const std::string path = dir.File("trials.jsonl");
  ASSERT_TRUE(WriteFile(path, FormatTrial(Sample(0)) + "{\"trial\":1,\"fau", Exit::Failure).ok());
  {
    Result<TrialLog> log = TrialLog::Open(path);
    ASSERT_TRUE(log.ok()) << log.status().message();
    ASSERT_TRUE(log->Append(Sample(1)).ok());
  }
  Result<TrialLog> again = TrialLog::Open(path);
  ASSERT_TRUE(again.ok()) << again.status().message();
  for (const std::size_t index : {0U, 1U}) {
    const Result<std::vector<TrialResult>> taken = again->Take(index, {kPlan[index]});
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_THAT(*taken, SizeIs(1)) << index;
  }
  EXPECT_TRUE(again->CheckTaken().ok());
}

TEST(TrialLog, NamesTheLineThatMakesNoSense) {
  const std::string good = FormatTrial(Sample(0));
  for (const std::string& bad : {std::string("nonsense\n"), std::string("{}\n"), std::string("\n"), std::string("{\"trial\":\"1\"}\n")}) {
    const Result<TrialLogContent> read = ParseTrialLog(good + bad, "trials.jsonl");
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_THAT(read.status().message(), HasSubstr("trials.jsonl:2: expected one finished trial")) << bad;
  }
}

TEST(TrialLog, RefusesNamesOfAnotherVersion) {
  const std::string good = FormatTrial(Sample(0));
  ASSERT_TRUE(ParseTrialLog(good, "trials.jsonl").ok());
  for (const char* const field : {"verdict", "missed", "isolation", "rule", "kind"}) {
    const std::string key = std::string("\"") + field + "\":\"";
    std::string bad = good;
    const std::size_t at = bad.find(key);
    ASSERT_NE(at, std::string::npos) << field;
    bad.insert(at + key.size(), "new_");
    EXPECT_THAT(ParseTrialLog(bad, "trials.jsonl").status().message(), HasSubstr("expected one finished trial")) << field;
  }
}

TEST(TrialLog, RefusesNumbersThatStandForNothing) {
  const std::string good = FormatTrial(Sample(0));
  const std::string said = "\"said\":0";
  const std::string recovery = "\"recovery\":0";
  const std::string unfired = "\"unfired\":[]";
  const std::pair<std::string, std::string> kChanges[] = {{said, "\"said\":-1"},
                                                          {said, "\"said\":99"},
                                                          {recovery, "\"recovery\":-1"},
                                                          {recovery, "\"recovery\":99"},
                                                          {unfired, "\"unfired\":[1]"}};
  for (const auto& [from, to] : kChanges) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    EXPECT_THAT(ParseTrialLog(bad, "trials.jsonl").status().message(), HasSubstr("expected one finished trial")) << to;
  }
  std::string only = good;
  only.replace(only.find(unfired), unfired.size(), "\"unfired\":[0]");
  EXPECT_TRUE(ParseTrialLog(only, "trials.jsonl").ok()) << "its one fault";
}

TEST(TrialLog, RefusesTrialsOfAnotherPlan) {
  const TemporaryDir dir;
  const std::string path = dir.File("trials.jsonl");
  LogRows rows;
  const std::string first = rows.Write(Sample(0));
  ASSERT_TRUE(WriteFile(path, first + rows.Write(Sample(1)), Exit::Failure).ok());
  Result<TrialLog> log = TrialLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status().message();
  const Result<std::vector<TrialResult>> other = log->Take(1, {"cuMemAlloc#1=OUT_OF_MEMORY,after"});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.status().message(), HasSubstr("trials.jsonl:2: expected a trial of the plan"));
  EXPECT_FALSE(log->Take(1, {kPlan[1], kPlan[2]}).ok()) << "one fault is not two";
  ASSERT_TRUE(log->Take(0, {kPlan[0]}).ok());
  EXPECT_THAT(log->CheckTaken().message(), HasSubstr("trials.jsonl:2: expected a trial of the plan")) << "nobody planned the second";
}

TEST(TrialLog, KeepsWhatTheNextRoundMayTry) {
  TrialResult trial = Sample(1);
  const faults::Fault later = {kDenied.base, 2, faults::Phase::Any, kDenied.code, faults::How::Refuse, 1, 0x0123456789abcdefU, true};
  trial.unwinding.faults = {{kDenied, 0xfedcba9876543210U, 5, faults::Phase::Teardown, false, 77},
                            {later, 8, 0xffffffffffffffffU, faults::Phase::Any, true, 0}};
  trial.unwinding.shape = 0x8000000000000001U;
  trial.unwinding.left_out = {{trial.unwinding.faults[0], Reason::SecondKilled}};
  trial.unwinding.pruned = {{Reason::SecondAsFirst, 3}};
  const Result<TrialLogContent> read = ParseTrialLog(FormatTrial(trial), "trials.jsonl");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Unwinding& unwinding = read->trials.front().unwinding;
  ASSERT_THAT(unwinding.faults, SizeIs(2));
  EXPECT_EQ(unwinding.shape, 0x8000000000000001U);
  EXPECT_EQ(unwinding.faults[0].step, 77U);
  EXPECT_EQ(unwinding.faults[1].fault, later);
  EXPECT_EQ(unwinding.faults[1].state, 0xffffffffffffffffU);
  EXPECT_EQ(unwinding.faults[0].fault, kDenied);
  EXPECT_EQ(std::pair(unwinding.faults[0].site, unwinding.faults[0].state), std::pair(0xfedcba9876543210U, std::uint64_t{5}));
  EXPECT_EQ(unwinding.faults[0].phase, faults::Phase::Teardown);
  EXPECT_FALSE(unwinding.faults[0].on_the_way_back);
  ASSERT_THAT(unwinding.left_out, SizeIs(1));
  EXPECT_EQ(unwinding.left_out[0].why, Reason::SecondKilled);
  EXPECT_EQ(unwinding.pruned.at(Reason::SecondAsFirst), 3U);
}

TEST(TrialLog, KeepsAttemptsThatMissed) {
  TrialResult stray = Sample(1);
  stray.stray = true;
  stray.missed = Missed::Elsewhere;
  TrialResult last = Sample(1);
  last.attempt = 2;
  last.missed = Missed::Unfired;
  last.unfired = {0};
  LogRows rows;
  std::string both = rows.Write(stray);
  both += rows.Write(last);
  const Result<TrialLogContent> read = ParseTrialLog(both, "trials.jsonl");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(read->trials, SizeIs(2));
  EXPECT_EQ(read->trials[0].missed, Missed::Elsewhere);
  EXPECT_TRUE(read->trials[0].stray);
  EXPECT_EQ(FormatTrial(read->trials[1]), FormatTrial(last));
  // The same attempt again, or a second one that counts, is no log of ours.
  EXPECT_FALSE(ParseTrialLog(FormatTrial(stray) + FormatTrial(stray), "trials.jsonl").ok());
  EXPECT_FALSE(ParseTrialLog(FormatTrial(Sample(1)) + FormatTrial(last), "trials.jsonl").ok());
}

TEST(TrialLog, KeepsWhyATrialMissed) {
  for (std::size_t i = 0; i < std::size(kMissed); ++i) {
    TrialResult trial = Sample(1);
    trial.missed = static_cast<Missed>(i);
    const Result<TrialLogContent> read = ParseTrialLog(FormatTrial(trial), "trials.jsonl");
    ASSERT_TRUE(read.ok()) << Name(trial.missed) << ": " << read.status().message();
    EXPECT_EQ(read->trials[0].missed, trial.missed);
  }
}

TEST(TrialLog, RefusesATrialThatStandsTwice) {
  const std::string line = FormatTrial(Sample(1));
  const Result<TrialLogContent> read = ParseTrialLog(line + line, "trials.jsonl");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr(":2: expected each trial once"));
}

TEST(TrialLog, RefusesNumbersBeyondTheirRange) {
  const std::string good = FormatTrial(Sample(0));
  constexpr std::pair<const char*, const char*> kChanges[] = {{"{\"trial\":0,", "{\"trial\":-1,"},
                                                              {"{\"trial\":0,", "{\"trial\":0,\"attempt\":2147483647,"},
                                                              {"{\"trial\":0,", "{\"trial\":0,\"attempt\":4294967297,"},
                                                              {"{\"trial\":0,", "{\"trial\":0,\"attempt\":0,"},
                                                              {"\"exit_status\":3", "\"exit_status\":4294967299"},
                                                              {"\"exit_status\":3", "\"exit_status\":-9223372036854775808"},
                                                              {"\"signal\":0", "\"signal\":18446744073709551615"},
                                                              {"\"left_behind\":0", "\"left_behind\":-1"},
                                                              {"\"said\":0", "\"said\":4294967296"},
                                                              {"\"benign\":[]", "\"benign\":[-1]"},
                                                              {"\"count\":2", "\"count\":18446744073709551615"},
                                                              {"\"count\":2", "\"count\":99999999999999999999"},
                                                              {"\"bytes\":64", "\"bytes\":-64"},
                                                              {"\"faults\":[0,1]", "\"faults\":[0,4294967297]"},
                                                              {"\"faults\":[0,1]", "\"faults\":[0,-1]"},
                                                              {"\"faults\":[0,1]", "\"faults\":[18446744073709551615,1]"}};
  for (const auto& [from, to] : kChanges) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    bad.replace(at, std::string_view(from).size(), to);
    EXPECT_THAT(ParseTrialLog(bad, "trials.jsonl").status().message(), HasSubstr("trials.jsonl:1: expected one finished trial")) << to;
  }
}

// What a line names becomes part of the plan.
TEST(TrialLog, RefusesAWayBackThatNoDriverCallHas) {
  TrialResult trial = Sample(1);
  trial.unwinding.pruned = {{Reason::SecondAsFirst, 3}};
  trial.unwinding.faults = {{kDenied, 1, 5, faults::Phase::Teardown, true, 77}};
  const std::string good = FormatTrial(trial);
  EXPECT_TRUE(ParseTrialLog(good, "trials.jsonl").ok());
  constexpr std::pair<const char*, const char*> kChanges[] = {{"cuMemFree#*=INVALID_VALUE,after", "cuMemFrei#*=INVALID_VALUE,after"},
                                                              {"cuMemFree#*=INVALID_VALUE,after", "cuMemFree#*"},
                                                              {"cuMemFree#*=INVALID_VALUE,after", "malloc#*=host_oom"},
                                                              {"\"w\",[1,77,3,", "\"w\",[1,77,9,"},
                                                              {"\"second_as_first\":3", "\"second_as_first\":18446744073709551615"}};
  for (const auto& [from, to] : kChanges) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << good;
    bad.replace(at, std::string_view(from).size(), to);
    EXPECT_THAT(ParseTrialLog(bad, "trials.jsonl").status().message(), HasSubstr("expected one finished trial")) << to;
  }
}

// A few bytes of a line may name a long text again and again.
TEST(TrialLog, RefusesALineThatStandsForFarMoreThanItIs) {
  const auto line = [](std::size_t frames) {
    nlohmann::ordered_json row = nlohmann::ordered_json::parse(FormatTrial(Sample(0)));
    std::size_t changed = 0;
    for (nlohmann::ordered_json& one : row.at("new")) {
      if (one.at(0) == "s" && one.at(1) == "Init()") one.at(1) = std::string(4096, 'x');
      if (one.at(0) != "p" || one.at(1).at(1).empty()) continue;
      one.at(1).at(1) = std::vector<std::size_t>(frames, 0);
      ++changed;
    }
    EXPECT_GE(changed, 1U);
    return row.dump() + "\n";
  };
  EXPECT_TRUE(ParseTrialLog(line(20), "trials.jsonl").ok());
  EXPECT_THAT(ParseTrialLog(line(50000), "trials.jsonl").status().message(), HasSubstr("trials.jsonl:1: expected one finished trial"));
}

TEST(TrialLog, IsARegularFileOfASizeThatASweepWrites) {
  const TemporaryDir dir;
  ASSERT_EQ(mkfifo(dir.File("fifo").c_str(), 0600), 0);
  EXPECT_EQ(TrialLog::Open(dir.File("fifo")).status().message(), dir.File("fifo") + ": expected a regular file");
  ASSERT_TRUE(WriteFile(dir.File("hole"), "", Exit::Failure).ok());
  ASSERT_EQ(truncate(dir.File("hole").c_str(), off_t{1} << 35U), 0);
  EXPECT_EQ(TrialLog::Open(dir.File("hole")).status().message(), dir.File("hole") + ": expected at most 16 GiB of finished trials");
}

// Parsing does not recurse, but copying what was parsed does.
TEST(TrialLog, ARowOfManyLevelsMakesNoSense) {
  const std::string levels(200000, '[');
  const std::string line = FormatTrial(Sample(1));
  LogRows rows;
  EXPECT_FALSE(rows.Read("{\"new\":[[\"s\"," + levels + std::string(levels.size(), ']') + "]]," + line.substr(1)).has_value());
  EXPECT_TRUE(LogRows().Read(line).has_value());
}

// Lines of a trial log that name only what others have defined, read without JSON: the same trials, and nothing else is taken for one.
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
}  // namespace cuaudit::harness::trial_log_test
