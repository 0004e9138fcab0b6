// SPDX-License-Identifier: MIT
#include "reports/trials_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace cuaudit::report::trials_writer_test {
namespace {

Run Swept() {
  Run run;
  run.mode = Mode::Sweep;
  run.outcome = Outcome::Findings;
  run.tool_version = "0.1.0";
  run.driver.kind = DriverKind::Simulated;
  run.driver.world = "devices=1";
  run.command = {"./player", "it's \"one\"\n", "bad\xff"};
  return run;
}

std::string Written(const Run& run, const std::vector<TrialRow>& rows) {
  std::ostringstream out;
  EXPECT_TRUE(WriteTrials(run, rows, out));
  return out.str();
}

TEST(TrialsWriter, WritesAHeaderAndALineForEachTrial) {
  TrialRow leak;
  leak.number = 4;
  leak.faults = {"cuMemAlloc#2=OUT_OF_MEMORY,refuse", "cuMemFree#1=INVALID_VALUE,refuse"};
  leak.fired = true;
  leak.verdict = Verdict::Leak;
  leak.differs = {{Rule::Leak, "stream", 2, 0}, {Rule::Orphaned, "device_memory", 1, 4096}};
  leak.end = TrialEnd{1};
  TrialRow missed;
  missed.number = 7;
  missed.faults = {"cuInit#1=NOT_INITIALIZED,refuse"};
  missed.verdict = Verdict::NotExercised;
  missed.missed = Missed::Unfired;
  missed.attempts = 6;
  EXPECT_EQ(Written(Swept(), {leak, missed}),
            "{\"schema\":\"cuaudit.trials/1\",\"tool_version\":\"0.1.0\",\"mode\":\"sweep\",\"driver\":\"sim\",\"world\":\"devices=1\","
            "\"command\":[\"./player\",\"it's \\\"one\\\"\\n\",\"bad\xEF\xBF\xBD\"],\"trials\":2,\"whole\":true}\n"
            "{\"trial\":4,\"faults\":[\"cuMemAlloc#2=OUT_OF_MEMORY,refuse\",\"cuMemFree#1=INVALID_VALUE,refuse\"],\"fired\":true,"
            "\"verdict\":\"leak\",\"differs\":[{\"rule\":\"leak\",\"kind\":\"stream\",\"count\":2,\"bytes\":0},"
            "{\"rule\":\"orphaned\",\"kind\":\"device_memory\",\"count\":1,\"bytes\":4096}],\"exit\":1}\n"
            "{\"trial\":7,\"faults\":[\"cuInit#1=NOT_INITIALIZED,refuse\"],\"fired\":false,\"verdict\":\"not_exercised\",\"differs\":[],"
            "\"missed\":\"unfired\",\"attempts\":6}\n");
}

TEST(TrialsWriter, TextsMayHoldAnything) {
  TrialRow row;
  row.faults = {"a\"b\\c\n\x01\x7f", std::string("\xff\0", 2), std::string(10000, 'x')};
  row.differs = {{Rule::Leak, "\xc3\x28", 1, 2}};
  row.end = TrialEnd{0, "SIG\"\t"};
  const std::string text = Written(Swept(), {row});
  const auto line = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  EXPECT_EQ(line["faults"][0], "a\"b\\c\n\x01\x7f");
  EXPECT_EQ(line["faults"][1], std::string("\xEF\xBF\xBD\0", 4));
  EXPECT_EQ(line["faults"][2].get<std::string>().size(), 10000U);
  EXPECT_EQ(line["differs"][0]["kind"], "\xEF\xBF\xBD(");
  EXPECT_EQ(line["signal"], "SIG\"\t");
}

TEST(TrialsWriter, SaysHowATrialDied) {
  TrialRow row;
  row.fired = true;
  row.end = TrialEnd{0, "SIGSEGV"};
  EXPECT_NE(Written(Swept(), {row}).find(",\"signal\":\"SIGSEGV\"}"), std::string::npos);
  row.end = TrialEnd{0, "SIGKILL", true};
  EXPECT_NE(Written(Swept(), {row}).find(",\"differs\":[],\"hung\":true}"), std::string::npos);
}

TEST(TrialsWriter, SaysWhenTheSweepWasCutShort) {
  report::Run run = Swept();
  run.outcome = Outcome::Interrupted;
  EXPECT_NE(Written(run, {}).find("\"trials\":0,\"whole\":false}\n"), std::string::npos);
  run.outcome.reset();
  EXPECT_NE(Written(run, {}).find("\"whole\":false}\n"), std::string::npos);
}

TEST(TrialsWriter, SaysWhenTheStreamFailed) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(WriteTrials(Swept(), {}, out));
}

}  // namespace
}  // namespace cuaudit::report::trials_writer_test
