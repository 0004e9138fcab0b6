// SPDX-License-Identifier: MIT
// idle_listener_subject.cc: somebody else's tests, none of which calls the driver, for listener_test to run.
#include <gtest/gtest.h>

TEST(Idle, One) {}
TEST(Idle, Two) {}
TEST(Idle, DISABLED_Three) {}
