// SPDX-License-Identifier: MIT
// handles.h: checks that questions exist, without a current context and with another one, for each entry point that is handed an object.
#pragma once

#include <string>
#include <vector>

namespace cuaudit::contract {

// One line for each entry point that no none.* or no elsewhere.* question calls and that unasked.def does not excuse, and for each row of
// unasked.def that excuses nothing. Asks those questions of the simulated driver.
std::vector<std::string> HandlesWithoutQuestion();

}  // namespace cuaudit::contract
