// SPDX-License-Identifier: MIT
// How a defect came about, step by step, the same as a code flow of SARIF, and the sequence of calls in JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reports/defect_words.h"
#include "reports/reasons_json.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::defect_steps_test {
namespace {

using testing::ElementsAre;

Frame At(const std::string& function, int line) { return {"player", function, "player.c", line, 16}; }

// A stream that is lost when the event fails; on its way back the program frees memory.
Run Lost() {
  Run run = {.mode = Mode::Sweep, .outcome = Outcome::Findings};
  Finding finding;
  finding.rule = Rule::Orphaned;
  finding.kind = "stream";
  finding.count = 1;
  finding.acquired = {"cuStreamCreate", {At("play", 16)}};
  finding.fault = Fault{"cuEventCreate", 1, "refuse", "OUT_OF_MEMORY", "cuEventCreate#1=OUT_OF_MEMORY,refuse", {At("play", 18)}};
  finding.where = "cuDevicePrimaryCtxRelease";
  finding.where_stack = {At("main", 40)};
  run.findings = {finding};
  Defect defect;
  defect.members = {{{0}, 1, 0}};
  defect.blame = Blame{At("play", 20), BlamedBecause::HeldIt};
  defect.released = {"cuStreamDestroy", {At("play", 24)}};
  defect.unwinding = Unwinding{{finding.fault->text}, {{0, "OUT_OF_MEMORY"}, {1, ""}, {2, "INVALID_VALUE"}}, 2, {}, {}};
  run.defects = {defect};
  run.sequence.emplace();
  run.sequence->places = {{"cuEventCreate", At("play", 18)}, {"cuMemFree", At("close", 30)}, {"cuCtxPopCurrent", std::nullopt}};
  return run;
}

std::vector<std::string> Says(const Run& run) {
  std::vector<std::string> says;
  for (const Step& step : StepsOf(run, run.defects.front())) says.push_back(step.says);
  return says;
}

TEST(DefectSteps, TheWayBackIsBetweenTheFailingCallAndTheLoss) {
  EXPECT_THAT(Says(Lost()),
              ElementsAre("acquired by cuStreamCreate", "cuEventCreate#1=OUT_OF_MEMORY,refuse fails", "on the way back cuMemFree",
                          "on the way back cuCtxPopCurrent fails: INVALID_VALUE", "and 2 more calls",
                          "play returned without cuStreamDestroy", "seen at cuDevicePrimaryCtxRelease", "1 stream lost"));
}

// A caller of the blamed function makes its calls after that one has returned; what a helper calls may come before.
TEST(DefectSteps, TheBlamedFunctionReturnsBeforeItsCallersGoOn) {
  report::Run run = Lost();
  run.findings[0].fault->stack = {At("open_event", 17), At("play", 18), At("main", 35)};
  run.sequence->places[2].at = At("main", 40);
  EXPECT_THAT(Says(run),
              ElementsAre("acquired by cuStreamCreate", "cuEventCreate#1=OUT_OF_MEMORY,refuse fails", "on the way back cuMemFree",
                          "play returned without cuStreamDestroy", "on the way back cuCtxPopCurrent fails: INVALID_VALUE",
                          "and 2 more calls", "seen at cuDevicePrimaryCtxRelease", "1 stream lost"));
  run.defects[0].blame->because = BlamedBecause::NeverReached;
  EXPECT_THAT(Says(run)[5], testing::StartsWith("play, which calls cuStreamDestroy"));
}

// It may have made that call for others: for what the cache holds instead of the lost one, or for another reference.
TEST(DefectSteps, WhoBeganTheReleaseLeftThisOneOut) {
  report::Run run = Lost();
  run.defects[0].blame->because = BlamedBecause::BeganRelease;
  EXPECT_EQ(BlameOf(run, run.defects[0]), "play was entered to release it, and returned without cuStreamDestroy for it");
}

TEST(DefectSteps, AReleaseThatTheDriverRefusedWasNotForgotten) {
  report::Run run = Lost();
  run.findings[0].rule = Rule::Leak;
  run.findings[0].where = "cuStreamDestroy";
  EXPECT_EQ(BlameOf(run, run.defects[0]), "main called cuStreamDestroy, and the driver refused it");
}

// Its context ended later, elsewhere.
TEST(DefectSteps, ARefusedReleaseOfAnOrphanWasNotForgotten) {
  report::Run run = Lost();
  ASSERT_EQ(run.findings[0].rule, Rule::Orphaned);
  run.findings[0].other = {"cuStreamDestroy", {At("close_stream", 22), At("main", 36)}};
  EXPECT_EQ(BlameOf(run, run.defects[0]), "close_stream called cuStreamDestroy, and the driver refused it");
  EXPECT_THAT(Says(run), testing::Contains("close_stream called cuStreamDestroy, and the driver refused it"));
}

// cuGraphRetainUserObject and cuImportExternalMemory take over what they are given. A function that called them did not leave them out.
TEST(DefectSteps, WhatTheFailingCallWasToTakeOverWasHeld) {
  report::Run run = Lost();
  run.defects[0].released.call = "cuEventCreate";
  EXPECT_THAT(BlameOf(run, run.defects[0]), testing::EndsWith(" returned without cuEventCreate"));
  run.findings[0].kind = "user_object";
  EXPECT_THAT(BlameOf(run, run.defects[0]), testing::EndsWith(" held it, saw the failure and returned"));
  run.defects[0].blame->because = BlamedBecause::BeganRelease;
  EXPECT_THAT(BlameOf(run, run.defects[0]), testing::EndsWith(" was to hand it over, saw the failure and returned"));
}

TEST(DefectSteps, AWayBackFromOtherFaultsIsLeftOut) {
  report::Run run = Lost();
  run.defects[0].unwinding->faults = {"cuEventCreate#2=OUT_OF_MEMORY,refuse"};
  EXPECT_EQ(Says(run).size(), 5U);
  run = Lost();
  run.sequence.reset();
  EXPECT_EQ(Says(run).size(), 5U);
  run = Lost();
  run.defects[0].unwinding->steps.clear();
  EXPECT_EQ(Says(run).size(), 5U);
  run = Lost();
  run.sequence->places.resize(2);
  EXPECT_EQ(Says(run).size(), 7U) << "a place that the report does not have";
}

TEST(DefectSteps, ALongWayBackIsToldInPart) {
  report::Run run = Lost();
  run.defects[0].unwinding->steps.resize(1001, {1, ""});
  const std::vector<std::string> says = Says(run);
  EXPECT_EQ(says.size(), 5U + 50U + 1U);
  EXPECT_EQ(says[2 + 50], "and 952 more calls");
}

TEST(DefectSteps, TheCodeFlowOfSarifHasThem) {
  Audit audit;
  audit.cases.emplace_back().runs.push_back(Lost());
  for (const SarifProfile profile : {SarifProfile::Full, SarifProfile::Github}) {
    std::ostringstream text;
    ASSERT_TRUE(WriteSarif(audit, SourceRoot("."), profile, text));
    const nlohmann::json result = nlohmann::json::parse(text.str())["runs"][0]["results"][0];
    const nlohmann::json& flow = result["codeFlows"][0]["threadFlows"][0]["locations"];
    const bool full = profile == SarifProfile::Full;
    ASSERT_EQ(flow.size(), full ? 8U : 6U) << "GitHub shows only what has a file";
    EXPECT_EQ(flow[2]["location"]["message"]["text"], "on the way back cuMemFree");
    EXPECT_EQ(flow[2]["location"]["physicalLocation"]["region"]["startLine"], 30);
    EXPECT_EQ(flow[2]["importance"], "important");
    for (std::size_t i = 0; i < flow.size(); ++i) EXPECT_EQ(flow[i]["executionOrder"], i + 1);
    EXPECT_EQ(result["relatedLocations"].dump().find("on the way back"), std::string::npos) << "they are no places of the defect";
  }
}

using nlohmann::ordered_json;

report::Sequence Some() {
  report::Sequence sequence;
  sequence.places = {{"cuCtxCreate", report::Frame{"player", "open_device", "src/open.c", 31, 0x40}}, {"cuMemAlloc", std::nullopt}};
  sequence.calls = {{0, "init", 1}, {1, "", 0}};
  sequence.more = 7;
  sequence.trials = {
      {{"cuCtxCreate#1=OUT_OF_MEMORY,refuse"}, 0, {}, report::Verdict::Pass, {}},
      {{"cuMemAlloc#1=OUT_OF_MEMORY,refuse", "cuCtxDestroy#1=INVALID_CONTEXT,after"}, 1, {std::nullopt}, report::Verdict::Leak, {0, 1}},
      {{"malloc#3=host_oom"}, std::nullopt, {1}, report::Verdict::Leak, {1}, 1}};
  sequence.more_trials = 2;
  return sequence;
}

report::Unwinding Back() { return {{"cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {{1, "OUT_OF_MEMORY"}, {0, ""}}, 3, {0, 1}, {1}}; }

std::optional<report::Sequence> ReadSequence(const ordered_json& json, std::size_t defects) {
  const nlohmann::json parsed = nlohmann::json::parse(json.dump());
  report::Failure failure;
  return report::SequenceFromJson(report::JsonNode(&parsed, &failure), defects);
}

std::optional<report::Unwinding> ReadUnwinding(const ordered_json& json, const report::Sequence& sequence) {
  const nlohmann::json parsed = nlohmann::json::parse(json.dump());
  report::Failure failure;
  return report::UnwindingFromJson(report::JsonNode(&parsed, &failure), sequence);
}

TEST(SequenceJson, ComesBackAsItWas) {
  const ordered_json json = SequenceToJson(Some());
  const std::optional<report::Sequence> read = ReadSequence(json, 2);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(SequenceToJson(*read), json);
  ASSERT_EQ(read->places.size(), 2U);
  EXPECT_EQ(read->places[0].at->function, "open_device");
  EXPECT_EQ(read->places[0].at->line, 31);
  EXPECT_FALSE(read->places[1].at.has_value());
  EXPECT_EQ(read->calls[0].phase, "init");
  EXPECT_EQ(read->calls[0].cycle, 1U);
  EXPECT_EQ(read->trials[1].faults[1], "cuCtxDestroy#1=INVALID_CONTEXT,after");
  EXPECT_EQ(read->trials[1].verdict, report::Verdict::Leak);
  EXPECT_EQ(read->trials[1].then, (std::vector<std::optional<std::uint32_t>>{std::nullopt}));
  EXPECT_EQ(read->trials[1].at, std::nullopt);
  EXPECT_EQ(read->trials[2].call, std::nullopt);
  EXPECT_EQ(read->trials[2].at, 1U);
  EXPECT_EQ(read->more, 7U);
  EXPECT_EQ(read->more_trials, 2U);
  const ordered_json back = UnwindingToJson(Back());
  const std::optional<report::Unwinding> unwinding = ReadUnwinding(back, *read);
  ASSERT_TRUE(unwinding.has_value());
  EXPECT_EQ(UnwindingToJson(*unwinding), back);
  EXPECT_EQ(unwinding->steps[0].result, "OUT_OF_MEMORY");
  EXPECT_EQ(unwinding->missing, std::vector<std::uint32_t>{1});
}

TEST(SequenceJson, NumbersOfRowsThatAreNotThereAreRefused) {
  const ordered_json json = SequenceToJson(Some());
  EXPECT_FALSE(ReadSequence(json, 1).has_value());  // a trial names the second defect
  const auto refused = [&](const char* pointer, ordered_json value) {
    ordered_json spoiled = json;
    spoiled[ordered_json::json_pointer(pointer)] = std::move(value);
    EXPECT_FALSE(ReadSequence(spoiled, 2).has_value()) << pointer << ": " << spoiled[ordered_json::json_pointer(pointer)];
  };
  refused("/calls/0/0", 2);
  refused("/calls/0/0", -1);
  refused("/trials/0/0", 2);
  refused("/trials/0/0", -2);
  refused("/trials/0/1", 9);
  refused("/trials/0/2/0", 99);
  refused("/trials/1/3/0", 2);
  refused("/trials/2/5", 2);
  refused("/verdicts/0", "splendid");
  refused("/places/0/0", nullptr);
  refused("/places/0/4", std::uint64_t{1} << 40U);
  refused("/places/0", ordered_json::array({"cuInit", "m"}));
  refused("/more", "many");
  refused("/more_trials", 1.5);
  refused("/calls/0/2", std::numeric_limits<std::uint64_t>::max());
  for (const auto& [name, value] : json.items()) {
    ordered_json spoiled = json;
    spoiled.erase(name);
    EXPECT_FALSE(ReadSequence(spoiled, 2).has_value()) << name;
    refused(("/" + name).c_str(), ordered_json::object());
  }
  for (const ordered_json& other : {ordered_json(), ordered_json(3), ordered_json("text"), ordered_json::array()}) {
    EXPECT_FALSE(ReadSequence(other, 2).has_value()) << other;
    EXPECT_FALSE(ReadUnwinding(other, Some()).has_value()) << other;
  }
  ordered_json back = UnwindingToJson(Back());
  back["missing"] = {2};
  EXPECT_FALSE(ReadUnwinding(back, Some()).has_value());
}

TEST(SequenceJson, AReportHasItUnderKeysOfItsOwn) {
  report::Run run = suites::SweepWithFindings();
  std::ostringstream without;
  ASSERT_TRUE(report::WriteJson(run, without));
  EXPECT_FALSE(ordered_json::parse(without.str()).contains("sequence"));
  run.sequence = Some();
  run.sequence->places[1].call = "\xff\n</script>";
  run.defects[0].unwinding = Back();
  std::ostringstream out;
  ASSERT_TRUE(report::WriteJson(run, out));
  const ordered_json json = ordered_json::parse(out.str());
  const std::optional<report::Sequence> read = ReadSequence(json["sequence"], run.defects.size());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->places[1].call, "\xef\xbf\xbd\n</script>");
  EXPECT_TRUE(ReadUnwinding(json["defects"][0]["unwinding"], *read).has_value());
}

}  // namespace
}  // namespace cuaudit::report::defect_steps_test
