// SPDX-License-Identifier: MIT
// sweep_options.h: converts the options of a sweep into EngineOptions, and checks them before anything runs.
//
//   Errors    one line that names the option and what was expected.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/options/options.h"
#include "harness/process/status.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

Result<EngineOptions> EngineOptionsOf(const Options& options);

// Adds each declaration that is not there yet. An error does not say where the texts come from.
Status AddBenign(const std::vector<std::string>& texts, std::vector<Benign>* declared);

// Reads the time that --budget allows: "90s", "10min" or "2h"; no time for an empty text.
Result<std::optional<std::chrono::seconds>> ParseBudget(const std::string& text);

}  // namespace cuaudit::harness
