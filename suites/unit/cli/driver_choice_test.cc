// SPDX-License-Identifier: MIT
#include "harness/cli/driver_choice.h"

#include <gtest/gtest.h>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::driver_choice_test {
namespace {

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

}  // namespace
}  // namespace cuaudit::harness::driver_choice_test
