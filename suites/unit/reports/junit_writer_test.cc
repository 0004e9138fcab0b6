// SPDX-License-Identifier: MIT
// Formats for other programs: JUnit, and the list of trials.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>
#include <string>

#include "reports/trials_writer.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::junit_writer_test {
namespace {

struct Parsed {
  explicit Parsed(const Run& run) {
    std::ostringstream out;
    EXPECT_TRUE(WriteJunit(run, out));
    const std::string text = out.str();
    const pugi::xml_parse_result result = document.load_buffer(text.data(), text.size(), pugi::parse_full);
    EXPECT_TRUE(result) << result.description();
    suite = document.child("testsuites").child("testsuite");
  }
  std::size_t Count(const char* path) const { return document.select_nodes(path).size(); }

  pugi::xml_document document;
  pugi::xml_node suite;
};

TEST(JunitWriter, CountsAgreeWithTheCases) {
  for (const suites::Sample& sample : suites::Samples()) {
    const Parsed xml(sample.run);
    EXPECT_EQ(xml.suite.attribute("tests").as_uint(), xml.Count("//testcase")) << sample.name;
    EXPECT_EQ(xml.suite.attribute("failures").as_uint(), xml.Count("//failure")) << sample.name;
    EXPECT_EQ(xml.suite.attribute("skipped").as_uint(), xml.Count("//skipped")) << sample.name;
    EXPECT_EQ(xml.suite.attribute("errors").as_uint(), xml.Count("//error")) << sample.name;
    EXPECT_EQ(xml.Count("//failure"), sample.run.defects.size()) << sample.name;
    EXPECT_GT(xml.Count("//testcase"), 0U) << sample.name;
  }
}

TEST(JunitWriter, FindingsFailPassingVerdictsPassAndNotesAreSkipped) {
  const Parsed xml(suites::SweepWithFindings());
  EXPECT_EQ(xml.Count("//testcase[@classname='cuaudit.sweep.leak']/failure"), 1U);
  EXPECT_EQ(xml.Count("//testcase[@classname='cuaudit.sweep.verdict' and @name='pass' and not(failure) and not(skipped)]"), 1U);
  EXPECT_EQ(xml.Count("//testcase[@name='absorbed']"), 1U);
  EXPECT_EQ(xml.Count("//testcase[@classname='cuaudit.sweep.not_exercised']/skipped"), 1U);
  const std::string body = xml.document.select_node("//failure").node().text().get();
  EXPECT_NE(body.find("make_stream src/picture.c:61"), std::string::npos) << body;
  EXPECT_NE(body.find("reproduce: cuaudit replay"), std::string::npos) << body;
}

TEST(JunitWriter, TheFunctionThatMadeTheCallIsShownAndNothingIsLostByACrash) {
  report::Run run = suites::OnePlaceManyCalls();
  run.findings.front().acquired.stack.insert(run.findings.front().acquired.stack.begin(), Frame{"libplug.so", "plug_open", "", 0, 1});
  const Parsed xml(run);
  EXPECT_EQ(xml.Count("//failure"), 2U) << "one for each defect";
  const pugi::xml_node leak = xml.document.select_node("//failure[@type='leak']").node();
  const std::string body = leak.text().get();
  EXPECT_NE(body.find("  plug_open (libplug.so)"), std::string::npos) << body;
  EXPECT_STREQ(leak.attribute("message").value(),
               "leak: 1 stream, 1 event, lost when cuEventCreate#88=OUT_OF_MEMORY,refuse failed, in 5 trials");
  EXPECT_NE(body.find("with it leak: 1 stream, lost when cuEventCreate#90"), std::string::npos) << body;
  EXPECT_STREQ(xml.document.select_node("//failure[@type='crash']").node().attribute("message").value(),
               "crash, after cuEventCreate#2=OUT_OF_MEMORY,refuse failed");
}

TEST(JunitWriter, ANoteSaysWhereItsObjectCameFromAndWhatShowsIt) {
  report::Run run = suites::CleanSweep();
  run.notes = {suites::SweepWithFindings().findings.front()};
  run.notes[0].rule = Rule::HostLeft;
  const Parsed xml(run);
  const std::string body =
      xml.document.select_node("//testcase[@classname='cuaudit.sweep.host_left' and skipped]/system-out").node().text().get();
  EXPECT_NE(body.find("acquired by cuStreamCreate"), std::string::npos) << body;
  EXPECT_NE(body.find("make_stream src/picture.c:61"), std::string::npos) << body;
  EXPECT_NE(body.find("reproduce: cuaudit replay"), std::string::npos) << body;
  EXPECT_STREQ(xml.document.select_node("//testcase[@name='outcome']/system-out").node().text().get(),
               "clean; 1 host place left, judged with --host");
}

TEST(JunitWriter, ARunThatProvedNothingIsInError) {
  const Parsed xml(suites::NotExercised());
  EXPECT_EQ(xml.suite.attribute("errors").as_uint(), 1U);
  EXPECT_STREQ(xml.document.select_node("//error").node().attribute("message").value(), "not exercised: the program made no driver call");
}

TEST(JunitWriter, ASimulatedDriverIsNamedSo) {
  const Parsed xml(suites::CleanSweep());
  EXPECT_EQ(xml.Count("//property[@name='driver' and @value='simulated']"), 1U);
}

TEST(JunitWriter, HostileStringsArriveAsText) {
  const Parsed xml(suites::HostileStrings());
  EXPECT_EQ(xml.Count("//failure"), 1U);
  const std::string body = xml.document.select_node("//failure").node().text().get();
  EXPECT_NE(body.find("a ]]> b & <c> \"d\""), std::string::npos) << body;
  const std::string name = xml.suite.attribute("name").value();
  EXPECT_NE(name.find("'<&\">'"), std::string::npos) << name;
  EXPECT_EQ(name.find('\x1b'), std::string::npos);
}

TEST(JunitWriter, AFailedStreamIsTold) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(WriteJunit(report::Run{}, out));
}

Run Swept() {
  Run run = {.mode = Mode::Sweep, .outcome = Outcome::Findings, .tool_version = "0.1.0"};
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
  TrialRow row = {.fired = true, .end = TrialEnd{0, "SIGSEGV"}};
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
}  // namespace cuaudit::report::junit_writer_test
