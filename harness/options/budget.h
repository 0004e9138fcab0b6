// SPDX-License-Identifier: MIT
// budget.h: the time that --budget allows.
//
//   Units     seconds.
//   Errors    one line that names the option and what was expected.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "harness/process/status.h"

namespace cuaudit::harness {

// Reads "90s", "10min" or "2h"; no time for an empty text.
Result<std::optional<std::chrono::seconds>> ParseBudget(const std::string& text);

}  // namespace cuaudit::harness
