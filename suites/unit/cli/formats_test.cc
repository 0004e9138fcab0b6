// SPDX-License-Identifier: MIT
// The formats of code hosts, as the real tool writes them of a real program on the simulated driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"
#include "suites/unit/cli/tool.h"

namespace cuaudit::harness::formats_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

using Words = std::vector<std::string>;

const std::string kSourceRoot = std::filesystem::path(CUAUDIT_SUBJECT_SOURCE).parent_path().string();

Said Sweep(Words options, const std::string& program, Words environment = {}) {
  options.insert(options.begin(), {"sweep", "--driver=sim", "--source-root", kSourceRoot});
  options.insert(options.end(), {"--", CUAUDIT_SUBJECT, program});
  environment.insert(environment.end(), {"SOURCE_DATE_EPOCH=0"});
  return RunTool(options, environment);
}

TEST(Formats, ADefectIsShownAtItsLineBelowTheSourceRoot) {
  const TemporaryDir dir;
  const Said said = Sweep({"--format=sarif", "--format=gitlab=" + dir.File("gitlab.json"), "--format=github=" + dir.File("github.txt"),
                           "--format=markdown=" + dir.File("page.md")},
                          "leaks");
  EXPECT_EQ(said.status, 1) << said.err;
  const Json run = Json::parse(said.out, nullptr, false)["runs"][0];
  ASSERT_EQ(run["results"].size(), 1U) << said.out;
  EXPECT_EQ(run["results"][0]["ruleId"], "orphaned");
  EXPECT_EQ(run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "subject.c");
  EXPECT_EQ(run["automationDetails"]["id"], "cuaudit/sim/sweep/cli_subject/");
  EXPECT_EQ(run["invocations"][0]["exitCode"], 1);
  EXPECT_EQ(run["invocations"][0]["endTimeUtc"], "1970-01-01T00:00:00Z");
  EXPECT_EQ(Json::parse(*ReadFile(dir.File("gitlab.json")))[0]["location"]["path"], "subject.c");
  EXPECT_THAT(*ReadFile(dir.File("github.txt")), StartsWith("::error file=subject.c,line="));
  EXPECT_THAT(*ReadFile(dir.File("page.md")), StartsWith("## cuaudit: 1 defect\n"));
}

TEST(Formats, GithubAddsItsPageToTheStepSummary) {
  const TemporaryDir dir;
  const std::string summary = dir.File("summary.md");
  ASSERT_TRUE(WriteFile(summary, "# before\n", Exit::Failure).ok());
  const Said said = Sweep({"--format=github"}, "leaks", {"GITHUB_STEP_SUMMARY=" + summary});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_THAT(*ReadFile(summary), StartsWith("# before\n## cuaudit: 1 defect\n"));
  EXPECT_EQ(Sweep({"--format=github"}, "sound", {"GITHUB_STEP_SUMMARY="}).status, 0) << "set to nothing is not set";
}

TEST(Formats, AStepSummaryThatCannotBeWrittenIsAFailureAndTheCommandsAreThere) {
  const TemporaryDir dir;
  const Said said = Sweep({"--format=github"}, "leaks", {"GITHUB_STEP_SUMMARY=" + dir.File("none/summary.md")});
  EXPECT_EQ(said.status, 125);
  EXPECT_THAT(said.out, HasSubstr("::error "));
  EXPECT_THAT(said.err, HasSubstr("GITHUB_STEP_SUMMARY: " + dir.File("none/summary.md") + ": No such file"));
}

TEST(Formats, WhatProvesNothingIsAWarning) {
  const Said said = RunTool({"sweep", "--driver=sim", "--format=github", "--", "true"}, {"GITHUB_STEP_SUMMARY="});
  EXPECT_EQ(said.status, 3);
  EXPECT_THAT(said.out, StartsWith("::warning title=cuaudit%3A sweep%3A nothing is proved::"));
}

}  // namespace
}  // namespace cuaudit::harness::formats_test
