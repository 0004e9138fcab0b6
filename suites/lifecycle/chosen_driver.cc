// SPDX-License-Identifier: MIT
// chosen_driver.cc: linked into a test program of lifecycles: CUAUDIT_OPTIONS=driver=real runs it on the genuine driver, and skips every
// test with the reason where there is none.
#include "cuaudit/gtest.h"

namespace cuaudit::testing::chosen_driver {
namespace {

const bool appended = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new gtest::SkipWithoutDriver);
  return true;
}();

}  // namespace
}  // namespace cuaudit::testing::chosen_driver
