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

TEST(Formats, WhatProvesNothingIsAnError) {
  const Said said = RunTool({"sweep", "--driver=sim", "--format=github", "--", "true"}, {"GITHUB_STEP_SUMMARY="});
  EXPECT_EQ(said.status, 3);
  EXPECT_THAT(said.out, StartsWith("::error title=cuaudit%3A sweep%3A nothing is proved::"));
}

// What a sweep wrote as JSON becomes, byte by byte, what it would have written itself.
TEST(Report, AnyFormatIsMadeOfAFinishedReport) {
  const TemporaryDir dir;
  const std::string json = dir.File("a.json");
  const Words formats = {"json", "junit", "sarif", "github", "gitlab", "markdown"};
  Words options;
  for (const std::string& format : formats) options.push_back("--format=" + format + "=" + dir.File("direct." + format));
  options.push_back("--format=json=" + json);
  ASSERT_EQ(Sweep(options, "leaks", {"GITHUB_STEP_SUMMARY="}).status, 1);
  for (const std::string& format : formats) {
    const Said said = RunTool({"report", json, "--source-root", kSourceRoot, "--format=" + format}, {"GITHUB_STEP_SUMMARY="});
    EXPECT_EQ(said.status, 0) << said.err;
    EXPECT_EQ(said.out, *ReadFile(dir.File("direct." + format))) << format;
  }
}

TEST(Report, SeveralReportsAreCasesNamedAfterTheirFiles) {
  const TemporaryDir dir;
  ASSERT_EQ(Sweep({"--format=json=" + dir.File("first.json")}, "leaks").status, 1);
  ASSERT_EQ(Sweep({"--format=json=" + dir.File("second.json")}, "sound").status, 0);
  const Words both = {"report", dir.File("first.json"), dir.File("second.json")};
  Words options = both;
  options.push_back("--format=junit");
  const Said said = RunTool(options);
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("<testsuite name=\"cuaudit first\""));
  EXPECT_THAT(said.out, HasSubstr("classname=\"cuaudit.second.sweep.outcome\""));
  options.back() = "--format=json";
  const Said json = RunTool(options);
  EXPECT_EQ(json.status, 2);
  EXPECT_TRUE(IsOneLine(json.err)) << json.err;
  EXPECT_THAT(json.err, HasSubstr("--format: json holds one report"));
  const Said twice = RunTool({"report", dir.File("first.json"), dir.File("first.json"), "--format=sarif=" + dir.File("none.sarif")});
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.err, HasSubstr("case first: expected each case in one result only"));
  EXPECT_FALSE(std::filesystem::exists(dir.File("none.sarif")));
}

TEST(Report, WhatCannotBeReadIsOneLineAndNothingIsWritten) {
  const TemporaryDir dir;
  ASSERT_EQ(Sweep({"--format=json=" + dir.File("a.json")}, "leaks").status, 1);
  ASSERT_TRUE(WriteFile(dir.File("cut.json"), ReadFile(dir.File("a.json"))->substr(0, 700), Exit::Failure).ok());
  for (const char* const name : {"cut.json", "none.json"}) {
    const Said said = RunTool({"report", dir.File(name), "--format=sarif=" + dir.File("out.sarif")});
    EXPECT_EQ(said.status, 2) << name;
    EXPECT_TRUE(IsOneLine(said.err)) << said.err;
    EXPECT_THAT(said.err, HasSubstr(dir.File(name)));
    EXPECT_FALSE(std::filesystem::exists(dir.File("out.sarif"))) << name;
  }
  const Said nowhere = RunTool({"report", dir.File("a.json"), "--format=sarif=" + dir.File("none/out.sarif")});
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("no such directory"));
}

TEST(Compare, FormatsOfCodeHostsSayWhatIsNew) {
  const TemporaryDir dir;
  ASSERT_EQ(Sweep({"--format=json=" + dir.File("base.json")}, "sound").status, 0);
  ASSERT_EQ(Sweep({"--format=json=" + dir.File("head.json")}, "leaks").status, 1);
  const Said said = RunTool({"compare", dir.File("base.json"), dir.File("head.json"), "--source-root", kSourceRoot, "--format=sarif",
                             "--format=github=" + dir.File("github.txt")},
                            {"GITHUB_STEP_SUMMARY=" + dir.File("summary.md")});
  EXPECT_EQ(said.status, 1) << said.err;
  EXPECT_EQ(Json::parse(said.out, nullptr, false)["runs"][0]["results"][0]["baselineState"], "new") << said.out;
  EXPECT_THAT(*ReadFile(dir.File("github.txt")), HasSubstr("title=cuaudit%2C new%3A orphaned%3A 1 stream::"));
  EXPECT_THAT(*ReadFile(dir.File("summary.md")), StartsWith("## cuaudit: 1 defect: 1 new\n"));
}

TEST(Formats, SourcesLieBelowTheFolderOfTheProjectFileThatAResultNames) {
  const TemporaryDir dir;
  EXPECT_EQ(Sweep({"--format=json=" + dir.File("a.sweep.json")}, "leaks").status, 1);
  const auto place = [&](const std::string& project) -> std::string {
    const Json index = {{"schema", 1},
                        {"cases", {{{"name", "a"}, {"tags", Json::array()}, {"reports", {"a.sweep.json"}}}}},
                        {"header", {{"generated", ""}, {"tool_version", ""}, {"project", project}}}};
    EXPECT_TRUE(WriteFile(dir.File("audit.json"), index.dump(), Exit::Failure).ok());
    const Said said = RunTool({"report", dir.path(), "--format=sarif"}, {});
    EXPECT_EQ(said.status, 0) << said.err;
    const Json location = Json::parse(said.out, nullptr, false)["runs"][0]["results"][0]["locations"][0];
    return location.contains("physicalLocation") ? location["physicalLocation"]["artifactLocation"]["uri"].get<std::string>() : "";
  };
  EXPECT_EQ(place(kSourceRoot + "/formats_test.cc"), "subject.c");
  EXPECT_EQ(place(kSourceRoot + "/none.toml"), "") << "a result cannot make a folder known by naming it";
  EXPECT_EQ(place(kSourceRoot), "");
  EXPECT_EQ(place("CMakeLists.txt"), "");
  EXPECT_EQ(place(""), "");
}

}  // namespace
}  // namespace cuaudit::harness::formats_test
