// SPDX-License-Identifier: MIT
// How a defect came about, step by step, and the same as a code flow of SARIF.
#include "reports/defect_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/sarif_writer.h"

namespace cuaudit::report::defect_steps_test {
namespace {

using testing::ElementsAre;

Frame At(const std::string& function, int line) { return {"player", function, "player.c", line, 16}; }

// A stream that is lost when the event fails; on its way back the program frees memory.
Run Lost() {
  Run run;
  run.mode = Mode::Sweep;
  run.outcome = Outcome::Findings;
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

}  // namespace
}  // namespace cuaudit::report::defect_steps_test
