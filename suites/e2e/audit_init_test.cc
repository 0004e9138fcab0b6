// SPDX-License-Identifier: MIT
// `cuaudit init`: what it writes is audited, and it writes nothing for a program that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "suites/support/tool.h"

namespace cuaudit::e2e::audit_init_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Init, WhatItWritesIsAuditedAtOnce) {
  const std::string folder = TemporaryDirectory();
  const How here = {.environment = {}, .directory = folder, .deadline_ms = 200000};
  const Outcome init =
      RunCommand({Tool(), "init", "--driver=sim", "--depth=1", "--host", "--", CUAUDIT_REDUCERS "/graph_owner_repaired", "{n}"}, here);
  ASSERT_EQ(init.exit, 0) << init.err;
  EXPECT_EQ(init.out, "cuaudit.toml: case graph_owner_repaired; now: cuaudit audit\n");
  const std::string text = ReadFile(folder + "/cuaudit.toml");
  EXPECT_THAT(text, AllOf(HasSubstr("#   driver   simulated\n"), HasSubstr("#   order    the same in both runs\n"),
                          HasSubstr("\ncycles = true "), HasSubstr("\ndepth = 1 "), HasSubstr("\nhost = true ")));
  const Outcome audit = RunCommand({Tool(), "audit"}, here);
  EXPECT_EQ(audit.exit, 0) << audit.out << audit.err << text;
  EXPECT_THAT(ReadFile(folder + "/cuaudit-results/audit.json"), HasSubstr("\"graph_owner_repaired.cycles.json\""));

  const Outcome again = RunCommand({Tool(), "init", "--driver=sim", "--", Program("marked")}, here);
  EXPECT_EQ(again.exit, 2);
  EXPECT_THAT(again.err, HasSubstr("cuaudit.toml: is there already"));
  EXPECT_EQ(ReadFile(folder + "/cuaudit.toml"), text);
}

TEST(Init, WritesNothingForAProgramThatCannotBeAudited) {
  const std::string folder = TemporaryDirectory();
  const How here = {.environment = {}, .directory = folder, .deadline_ms = kDeadlineMs};
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--", Program("idle")}, here).exit, 3);
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--", "/none"}, here).exit, 2);
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--how=explode", "--", Program("defective")}, here).exit, 2);
  EXPECT_EQ(RunCommand({Tool(), "init", "--driver=sim", "--config=none/x.toml", "--", Program("defective")}, here).exit, 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace cuaudit::e2e::audit_init_test
