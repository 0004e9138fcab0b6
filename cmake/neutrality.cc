// SPDX-License-Identifier: MIT
// neutrality.cc: compiled into a test program by cuaudit_check_neutrality(): its main stays as it is.
#include <cuaudit/neutrality_listener.h>

#include <sstream>

namespace {

cuaudit::NeutralityOptions Options() {
  cuaudit::NeutralityOptions options;
  options.warm_up_iterations = CUAUDIT_WARM_UP_ITERATIONS;
  options.may_be_idle = CUAUDIT_MAY_BE_IDLE != 0;
  if (CUAUDIT_MOST_RECORDS != 0) options.most_records = CUAUDIT_MOST_RECORDS;
  std::istringstream kinds(CUAUDIT_TOLERATE);
  for (std::string kind; std::getline(kinds, kind, ',');) options.tolerate.push_back(kind);
  return options;
}

[[maybe_unused]] const bool appended = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new cuaudit::NeutralityListener(Options()));
  return true;
}();

}  // namespace
