// SPDX-License-Identifier: MIT
// run_data.h: one report, and its findings, as the JSON that the page draws.
#pragma once

#include <nlohmann/json.hpp>

#include "reports/html/place_table.h"
#include "reports/run.h"

namespace cuaudit::report::html {

using Json = nlohmann::ordered_json;

// [call, stack]; null when nothing is known of the place.
Json PlaceOf(const Acquired& place, PlaceTable* places);

Json FindingOf(const Finding& finding, PlaceTable* places);

// Without its defects and findings.
Json RunOf(const Run& run, PlaceTable* places);

}  // namespace cuaudit::report::html
