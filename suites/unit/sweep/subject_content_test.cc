// SPDX-License-Identifier: MIT
#include "harness/sweep/run/subject_content.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::subject_content_test {
namespace {

TEST(FileContent, EqualBytesAreEqualAndAnythingElseIsNot) {
  const TemporaryDir dir;
  for (const char* const name : {"one", "same"}) ASSERT_TRUE(WriteFile(dir.File(name), "some bytes", Exit::Failure).ok());
  ASSERT_TRUE(WriteFile(dir.File("other"), "some bites", Exit::Failure).ok());
  EXPECT_EQ(FileContent(dir.File("one")), FileContent(dir.File("same")));
  EXPECT_NE(FileContent(dir.File("one")), FileContent(dir.File("other")));
  EXPECT_EQ(FileContent(dir.File("none")), 0U);
  EXPECT_EQ(FileContent(dir.path()), 0U) << "a directory";
}

// The loopback device has no speed, and the kernel says so when the file is read.
TEST(FileContent, OfAFileThatCannotBeReadIsItsSize) {
  constexpr const char* kSpeed = "/sys/class/net/lo/speed";
  struct stat facts = {};
  if (stat(kSpeed, &facts) != 0 || facts.st_size == 0 || ReadFile(kSpeed).ok()) GTEST_SKIP() << "no such file: " << kSpeed;
  EXPECT_NE(FileContent(kSpeed), 0U);
}

}  // namespace
}  // namespace cuaudit::harness::subject_content_test
