// SPDX-License-Identifier: MIT
#include "harness/sweep/work_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "suites/unit/sweep/temporary_dir.h"

namespace cuaudit::harness {
namespace {

using testing::HasSubstr;

TEST(WorkDir, MakesAFreshDirectoryAndRemovesItWithAllItHolds) {
  std::string path;
  {
    const Result<WorkDir> dir = WorkDir::Open("");
    ASSERT_TRUE(dir.ok()) << dir.status().message();
    EXPECT_TRUE(dir->fresh());
    path = dir->path();
    ASSERT_TRUE(WriteFile(dir->File("a"), "b", Exit::Failure).ok());
    dir->Remove();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WorkDir, NeverRemovesTheUsersDirectory) {
  const TemporaryDir parent;
  const Result<WorkDir> dir = WorkDir::Open(parent.File("work"));
  ASSERT_TRUE(dir.ok()) << dir.status().message();
  dir->Remove();
  EXPECT_TRUE(std::filesystem::exists(parent.File("work")));
}

TEST(WorkDir, LetsOneAtATimeIn) {
  const TemporaryDir parent;
  {
    const Result<WorkDir> first = WorkDir::Open(parent.File("work"));
    ASSERT_TRUE(first.ok());
    const Result<WorkDir> second = WorkDir::Open(parent.File("work"));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().exit(), Exit::Usage);
    EXPECT_THAT(second.status().message(), HasSubstr("another cuaudit is using"));
  }
  EXPECT_TRUE(WorkDir::Open(parent.File("work")).ok());
}

TEST(WorkDir, RefusesWhatIsNoUsableDirectory) {
  const TemporaryDir parent;
  ASSERT_TRUE(WriteFile(parent.File("file"), "", Exit::Failure).ok());
  for (const std::string& path : {parent.File("file"), parent.File("none/below"), parent.File("a;b"), std::string("/proc")}) {
    const Result<WorkDir> dir = WorkDir::Open(path);
    ASSERT_FALSE(dir.ok()) << path;
    EXPECT_EQ(dir.status().exit(), Exit::Usage) << path;
  }
}

}  // namespace
}  // namespace cuaudit::harness
