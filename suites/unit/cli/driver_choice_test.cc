// SPDX-License-Identifier: MIT
#include "harness/cli/driver_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::driver_choice_test {
namespace {

using testing::HasSubstr;

TEST(OwnRuntime, ReplacesARuntimeOfItsMajorVersion) {
  const TemporaryDir dir;
  ASSERT_TRUE(WriteFile(dir.File("libcudart.so.13"), "", Exit::Failure).ok());
  Machine machine;
  machine.cudart_dir = dir.path();
  for (const char* const soname : {"libcudart.so.13", "libcudart.so.13.0.96", "libcudart-1a2b3c4d.so.13.0.96"}) {
    EXPECT_EQ(OwnRuntime(machine, soname), dir.File("libcudart.so.13")) << soname;
  }
  for (const char* const soname : {"", "libcudart.so", "libcudart.so.1", "libcudart-1a2b3c4d.so.11.0", "libcudart.so.12", "libc.so.13"}) {
    EXPECT_EQ(OwnRuntime(machine, soname), "") << soname;
  }
  machine.cudart_dir.clear();
  EXPECT_EQ(OwnRuntime(machine, "libcudart.so.13"), "");
}

// Which GPUs CTest has reserved.

Result<std::string> With(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  Result<std::string> gpus = ReservedGpus();
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  return gpus;
}

TEST(ReservedGpus, AreThoseOfAllGroupsEachOnce) {
  EXPECT_EQ(*With({}), "");
  EXPECT_EQ(*With({{"CTEST_RESOURCE_GROUP_COUNT", "0"}}), "");
  EXPECT_EQ(*With({{"CTEST_RESOURCE_GROUP_COUNT", "2"},
                   {"CTEST_RESOURCE_GROUP_0", "gpus"},
                   {"CTEST_RESOURCE_GROUP_0_GPUS", "id:3,slots:1"},
                   {"CTEST_RESOURCE_GROUP_1_GPUS", "id:0,slots:1;id:3,slots:2"}}),
            "3,0");
  // A group of something else reserves no GPU.
  EXPECT_EQ(*With({{"CTEST_RESOURCE_GROUP_COUNT", "1"}, {"CTEST_RESOURCE_GROUP_0_LICENSES", "id:a,slots:1"}}), "");
}

TEST(ReservedGpus, OfAnotherFormAreRefused) {
  for (const char* const count : {"", "x", "-1", "99999999999"}) {
    const Result<std::string> gpus = With({{"CTEST_RESOURCE_GROUP_COUNT", count}});
    ASSERT_FALSE(gpus.ok()) << count;
    EXPECT_THAT(gpus.status().message(), HasSubstr("CTEST_RESOURCE_GROUP_COUNT: '"));
  }
  for (const std::string& text : {std::string("0"), std::string("id:0"), std::string("id:,slots:1"), std::string("id:0 1,slots:1"),
                                  std::string("id:\x01,slots:1"), std::string(10000, 'i')}) {
    const Result<std::string> gpus = With({{"CTEST_RESOURCE_GROUP_COUNT", "1"}, {"CTEST_RESOURCE_GROUP_0_GPUS", text}});
    ASSERT_FALSE(gpus.ok()) << text;
    EXPECT_THAT(gpus.status().message(), HasSubstr("CTEST_RESOURCE_GROUP_0_GPUS: '"));
  }
}

}  // namespace
}  // namespace cuaudit::harness::driver_choice_test
