// SPDX-License-Identifier: MIT
// sweep_settings.h: what the options say about a sweep, checked before anything runs.
//
//   Threads   pure.
//   Errors    one line that names the option and what was expected.
//   Faults    makes no driver calls.
#pragma once

#include <string>
#include <vector>

#include "harness/options/options.h"
#include "harness/sweep/benign.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

Result<SweepOptions> SweepOptionsOf(const Options& options);

Result<std::vector<Benign>> ParseBenignList(const std::vector<std::string>& texts);

}  // namespace cuaudit::harness
