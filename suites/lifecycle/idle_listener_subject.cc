// SPDX-License-Identifier: MIT
// idle_listener_subject.cc: somebody else's tests, none of which calls the driver, for listener_test to run; skipped where SKIP_ALL is set.
#include <gtest/gtest.h>

#include <cstdlib>

namespace {

void MaySkip() {
  if (std::getenv("SKIP_ALL") != nullptr) GTEST_SKIP() << "as asked";
}

TEST(Idle, One) { MaySkip(); }
TEST(Idle, Two) { MaySkip(); }
TEST(Idle, DISABLED_Three) {}

}  // namespace
