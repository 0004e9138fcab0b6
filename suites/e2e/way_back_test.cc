// SPDX-License-Identifier: MIT
// What reports say of the calls of a sweep and of the way back of each defect, and the HTML form of the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::way_back_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "cuMemAlloc" for each of those calls of the fault-free run.
std::vector<std::string> Named(const json& report, const json& calls) {
  std::vector<std::string> names;
  for (const json& call : calls) {
    const auto place = report["sequence"]["calls"][call.get<std::size_t>()][0].get<std::size_t>();
    names.push_back(report["sequence"]["places"][place][0]);
  }
  return names;
}

std::vector<std::string> Steps(const json& report, const json& unwinding) {
  std::vector<std::string> names;
  for (const json& step : unwinding["steps"]) {
    const auto result = step[1].get<std::string>();
    names.push_back(report["sequence"]["places"][step[0].get<std::size_t>()][0].get<std::string>() + (result.empty() ? "" : "=" + result));
  }
  return names;
}

TEST(WayBack, TheMissingReleasesAreNamedBesideWhatTheTrialDid) {
  const Audit audit = RunAudit({"sweep", "--depth", "1"}, {Program("defective")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  ASSERT_EQ(audit.report["defects"].size(), 1U) << audit.findings();
  const json& back = audit.report["defects"][0]["unwinding"];
  ASSERT_TRUE(back.is_object());
  EXPECT_THAT(Named(audit.report, back["held"]),
              ElementsAre("cuEventDestroy", "cuStreamDestroy", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"));
  EXPECT_THAT(Named(audit.report, back["missing"]), ElementsAre("cuEventDestroy", "cuStreamDestroy"));
  EXPECT_THAT(Steps(audit.report, back), ElementsAre("cuMemAlloc=OUT_OF_MEMORY", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"));
  EXPECT_EQ(back["more"], 0);
}

TEST(WayBack, EachTrialNamesTheCallThatItMadeFailAndTheDefectsThatItShows) {
  const Audit audit = RunAudit({"sweep"}, {Program("defective")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  const json& sequence = audit.report["sequence"];
  EXPECT_EQ(sequence["calls"].size(), audit.report["totals"]["calls"]);
  EXPECT_EQ(sequence["trials"].size(), audit.report["totals"]["trials"]);
  std::size_t shown = 0;
  for (const json& trial : sequence["trials"]) {
    const auto fault = sequence["faults"][trial[2][0].get<std::size_t>()].get<std::string>();
    ASSERT_GE(trial[0].get<int>(), 0) << fault;
    EXPECT_EQ(Named(audit.report, {trial[0]}).front(), fault.substr(0, fault.find_first_of("#@")));
    if (!trial[4].empty()) ++shown;
    if (trial[2].size() > 1) {
      EXPECT_EQ(trial[3].size(), trial[2].size() - 1) << fault;
    }
  }
  EXPECT_GE(shown, audit.report["defects"][0]["trials"].get<std::size_t>());
}

TEST(WayBack, AForkAndASpawnedProcessTellTheSame) {
  const Audit forked = RunAudit({"sweep", "--isolation", "fork"}, {Program("defective")});
  const Audit spawned = RunAudit({"sweep", "--isolation", "spawn"}, {Program("defective")});
  ASSERT_FALSE(forked.report.is_null() || spawned.report.is_null());
  EXPECT_EQ(forked.report["sequence"], spawned.report["sequence"]);
  EXPECT_EQ(forked.report["defects"], spawned.report["defects"]);
}

TEST(WayBack, ASweepThatGoesOnTellsWhatTheFirstOneTold) {
  const std::string directory = TemporaryDirectory() + "/work";
  const Audit first = RunAudit({"sweep", "--work-dir", directory}, {Program("defective")});
  const Audit again = RunAudit({"sweep", "--work-dir", directory}, {Program("defective")});
  ASSERT_FALSE(first.report.is_null() || again.report.is_null()) << again.outcome.err;
  EXPECT_EQ(first.report["sequence"], again.report["sequence"]);
  EXPECT_EQ(first.report["defects"], again.report["defects"]);
  EXPECT_TRUE(again.report["defects"][0].contains("unwinding"));
}

TEST(WayBack, AReplayTellsOfItsOneTrial) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("defective")});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_EQ(audit.report["sequence"]["trials"].size(), 1U);
  EXPECT_THAT(Named(audit.report, audit.report["defects"][0]["unwinding"]["missing"]), ElementsAre("cuEventDestroy", "cuStreamDestroy"));
}

TEST(Html, IsWrittenBesideAnotherForm) {
  const std::string page = TemporaryDirectory() + "/page.html";
  const std::string here = std::filesystem::path(__FILE__).parent_path().string();
  const Audit audit = RunAudit({"sweep", "--source-root", here, "--format", "html=" + page}, {Program("defective")});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  const std::string text = ReadFile(page);
  EXPECT_THAT(text, HasSubstr("<!DOCTYPE html>"));
  const std::string opens = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = text.find(opens) + opens.size();
  const json data = json::parse(text.substr(from, text.find("</script", from) - from), nullptr, false);
  ASSERT_FALSE(data.is_discarded());
  EXPECT_EQ(data["defects"].size(), audit.report["defects"].size());
  EXPECT_EQ(data["runs"][0]["sequence"]["trials"], audit.report["sequence"]["trials"]);
  // The program was built here, so its source is where its debug information says.
  EXPECT_THAT(data["sources"].dump(), HasSubstr("cuMemAlloc(&work->buffer, 4096)"));
}

}  // namespace
}  // namespace cuaudit::e2e::way_back_test
