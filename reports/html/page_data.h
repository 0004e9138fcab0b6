// SPDX-License-Identifier: MIT
// page_data.h: an audit as the JSON text that the page draws.
//
// The text is ASCII without '<', '>' and '&', so nothing in it ends the element that holds it. Bytes that are not UTF-8 become U+FFFD.
// Frames, call stacks and source lines stand once and are named by number. The form is private to page/*.js: it has no schema, and it
// changes with them. Programs read --format json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/audit.h"
#include "reports/html/place_table.h"
#include "reports/run.h"
#include "reports/source_root.h"

namespace cuaudit::report::html {

// One report, and its findings, as the JSON that the page draws.

using Json = nlohmann::ordered_json;

// [call, stack]; null when nothing is known of the place.
Json PlaceOf(const Acquired& place, PlaceTable* places);

Json FindingOf(const Finding& finding, PlaceTable* places);

// Without its defects and findings.
Json RunOf(const Run& run, PlaceTable* places);

// Source lines are taken from below `root`; null: none are.
std::string PageData(const Audit& audit, const SourceRoot* root);

}  // namespace cuaudit::report::html
