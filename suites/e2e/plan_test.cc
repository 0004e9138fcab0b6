// SPDX-License-Identifier: MIT
// `cuaudit plan` of a project: its cases are rehearsed side by side, and the plan does not show it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "suites/e2e/sharded_sweep.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::plan_test {
namespace {

using ::testing::HasSubstr;

// One case with `jobs = 1` has the machine for itself, and then no two cases are rehearsed at a time.
TEST(Plan, IsTheSameOneCaseAtATime) {
  const std::string directory = TemporaryDirectory();
  const How here = {.environment = {}, .directory = directory, .deadline_ms = 200000};
  const auto plan_of = [&](const std::string& name, const std::string& last) {
    std::string project = "[defaults]\ndriver = \"sim\"\n";
    for (const char* const one : {"c", "a", "d", "b"}) {
      project += std::string("[case.") + one + "]\ncommand = [\"" + Program("steps") + "\", \"" + std::to_string(4 + *one % 3 * 4) +
                 "\", \"leaking\"]\n";
    }
    WriteFile(directory + "/cuaudit.toml", project + last);
    const CommandResult planned = Cuaudit({"plan", "--shards", "3", "--to", name}, here);
    EXPECT_EQ(planned.exit, 0) << planned.err;
    for (const char* const i : {"0", "1", "2"}) EXPECT_EQ(Cuaudit({"run-shard", name, i}, here).exit, 0);
    EXPECT_EQ(Cuaudit({"plan", name}, here).exit, 0);
    EXPECT_TRUE(std::filesystem::exists(directory + "/" + name + "/round-2.json"));
    std::string text = planned.out.substr(0, planned.out.find(':'));
    for (const int round : {1, 2}) {
      const std::string of_round = directory + "/" + name + "/round-" + std::to_string(round);
      nlohmann::ordered_json json = nlohmann::ordered_json::parse(ReadFile(of_round + ".json"));
      json.erase("before");  // a digest of the plan with the setting and with times
      for (auto& one : json["cases"]) {
        EXPECT_FALSE(std::exchange(one["runs"], nullptr).empty());
        one["options"].erase("jobs");
        text += ReadFile(of_round + "/" + one["name"].get<std::string>() + ".trials");
      }
      text += json.dump(1);
    }
    return text;
  };
  const std::string side_by_side = plan_of("a", "");
  EXPECT_THAT(side_by_side, HasSubstr("\"cases\""));
  EXPECT_EQ(plan_of("b", "jobs = 1\n"), side_by_side);
}

TEST(Plan, ACaseThatCannotBePlannedIsNamedAndThereIsNone) {
  const std::string directory = TemporaryDirectory();
  const How here = {.environment = {}, .directory = directory, .deadline_ms = 200000};
  std::string project = "[defaults]\ndriver = \"sim\"\n";
  for (const char* const one : {"a", "b", "c"}) {
    project += std::string("[case.") + one + "]\ncommand = [\"" + Program(*one == 'b' ? "idle" : "defective") + "\"]\n";
  }
  WriteFile(directory + "/cuaudit.toml", project);
  const CommandResult planned = Cuaudit({"plan", "--shards", "3", "--to", "plan"}, here);
  EXPECT_EQ(planned.exit, 3) << planned.out;
  EXPECT_THAT(planned.err, HasSubstr("not exercised"));
  EXPECT_FALSE(std::filesystem::exists(directory + "/plan/round-1.json"));
}

// What the second case has to say is not said, whether or not it was begun before the first one failed.
TEST(Plan, SaysTheSameHoweverManyCasesAreRehearsedAtATime) {
  const How here{{}, TemporaryDirectory()};
  WriteFile(here.directory + "/cuaudit.toml", "[case.a]\ncommand = [\"./missing\"]\n[case.b]\ncommand = [\"" + Program("defective") +
                                                  "\"]\n[case.c]\ncommand = [\"" + Program("defective") + "\"]\n");
  const CommandResult one = Cuaudit({"plan", "--shards", "2", "--to", "one", "--jobs", "1"}, here);
  EXPECT_NE(one.exit, 0);
  EXPECT_THAT(one.err, HasSubstr("missing"));
  for (const char* const jobs : {"2", "3"}) {
    const CommandResult more = Cuaudit({"plan", "--shards", "2", "--to", std::string("at-a-time-") + jobs, "--jobs", jobs}, here);
    EXPECT_EQ(more.exit, one.exit);
    EXPECT_EQ(more.err, one.err) << jobs;
  }
}

}  // namespace
}  // namespace cuaudit::e2e::plan_test
