// SPDX-License-Identifier: MIT
#include "harness/project/ctest_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::ctest_cases_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTests = R"({"kind": "ctestInfo", "version": {"major": 1, "minor": 0}, "tests": [
  {"name": "Pool.Grows/1", "command": ["/b/pool_test", "--gtest_filter=Pool.Grows/1"], "config": "Debug",
   "properties": [{"name": "LABELS", "value": ["gpu", "slow"]}, {"name": "WORKING_DIRECTORY", "value": "/b"},
                  {"name": "ENVIRONMENT", "value": ["A=1", "B=2"]}, {"name": "TIMEOUT", "value": 3.0}]},
  {"name": "Pool.Grows_1", "command": ["/b/other"]},
  {"name": "off", "command": ["/b/off"], "properties": [{"name": "DISABLED", "value": true}]},
  {"name": "fails", "command": ["/b/fails"], "properties": [{"name": "WILL_FAIL", "value": true}]},
  {"name": "not_built"}
]})";

TEST(CtestCases, AreTheTestsOfABuild) {
  ProjectCase defaults;
  defaults.options.depth = 1;
  defaults.options.environment = {"D=4"};
  const Result<CtestCases> all = CasesOfCtest(kTests, "build", defaults);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->left_out, 2U);
  ASSERT_EQ(all->cases.size(), 2U);
  const ProjectCase& first = all->cases[0];
  EXPECT_THAT(first.name, testing::MatchesRegex("Pool.Grows_1-[0-9a-f]+"));
  EXPECT_THAT(first.tags, ElementsAre("gpu", "slow"));
  EXPECT_THAT(first.options.program, ElementsAre("/b/pool_test", "--gtest_filter=Pool.Grows/1"));
  EXPECT_EQ(first.options.directory, "/b");
  EXPECT_THAT(first.options.environment, ElementsAre("D=4", "A=1", "B=2"));
  EXPECT_EQ(first.options.depth, 1U);
  EXPECT_EQ(first.options.deadline_ms, 3000U) << "TIMEOUT";
  EXPECT_EQ(all->will_fail, 1U);
  EXPECT_NE(all->cases[1].name, first.name) << "names stay different";
  EXPECT_THAT(all->cases[1].tags, IsEmpty());
}

// The name of the test in a build of these tests.
std::string NameOf(const std::string& test, const std::vector<std::string>& tests) {
  std::string json;
  for (const std::string& name : tests)
    json += std::string(json.empty() ? "" : ", ") + R"({"name": ")" + name + R"(", "command": [")" + name + "\"]}";
  const Result<CtestCases> all = CasesOfCtest("{\"tests\": [" + json + "]}", "build", {});
  if (!all.ok()) return all.status().message();
  for (const ProjectCase& one : all->cases) {
    if (one.options.program.front() == test) return one.name;
  }
  return "none";
}

TEST(CtestCases, NamesDoNotDependOnTheOrder) {
  EXPECT_EQ(NameOf("a/b", {"a/b", "c"}), "a_b");
  const std::string among = NameOf("a/b", {"a/b", "a:b"});
  EXPECT_EQ(NameOf("a/b", {"a:b", "a/b"}), among);
  EXPECT_NE(NameOf("a:b", {"a:b", "a/b"}), among);
  const std::string cut(90, 'x');
  EXPECT_NE(NameOf(cut + "1", {cut + "1"}), NameOf(cut + "2", {cut + "2"})) << "also of two builds";
  EXPECT_EQ(NameOf(cut + "1", {cut + "1"}), NameOf(cut + "1", {cut + "2", cut + "1"}));
  const std::string long_name = NameOf(std::string(10000, 'x'), {std::string(10000, 'x')});
  EXPECT_TRUE(IsCaseName(long_name)) << long_name;
}

TEST(CtestCases, AFileThatCtestDidNotWriteIsRefused) {
  const auto why_not = [](const std::string& text) { return CasesOfCtest(text, "build", {}).status(); };
  for (const std::string& text : {std::string(), std::string("No tests were found!!!"), std::string("[]"), std::string("{\"tests\": 3}"),
                                  std::string("{\"tests\": [3]}"), std::string(R"({"tests": [{"name": 3}]})"),
                                  std::string(R"({"tests": [{"name": "a", "command": "b"}]})"), std::string("\xff"),
                                  std::string(100000, '['), std::string(kTests).substr(0, 200)}) {
    EXPECT_EQ(why_not(text).exit(), Exit::Usage) << text.substr(0, 50);
    EXPECT_EQ(why_not(text).message().find('\n'), std::string::npos);
  }
  EXPECT_THAT(why_not("{\"tests\": []}").message(), HasSubstr("build: no test that can run"));
  const Result<CtestCases> hostile =
      CasesOfCtest(R"({"tests": [{"name": "../\n\u0000x", "command": ["p"]}, {"name": "", "command": ["p"]}]})", "build", {});
  ASSERT_TRUE(hostile.ok());
  for (const ProjectCase& one : hostile->cases) EXPECT_TRUE(IsCaseName(one.name)) << one.name;
}

}  // namespace
}  // namespace cuaudit::harness::ctest_cases_test
