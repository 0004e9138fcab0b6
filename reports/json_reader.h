// SPDX-License-Identifier: MIT
// json_reader.h: reads a JSON report (reports/schema/report.schema.json) back.
//
//   Threads   any, each with its own Run.
//   Errors    one line that says where, and what was expected. The Run is then worthless.
//
//     report::Run run;
//     if (const std::string expected = report::ReadJson(text, &run); !expected.empty()) Say(path + ": " + expected);
//
// WriteJson of what was read gives the same bytes again. What a report says in words only is kept as words: Message::told is the whole line
// of an audit that proved nothing, and a reason without a row in reports/words/reasons.def is its text. Frame::once is not in a report.
// Keys that this version does not know are passed over, since keys are only ever added.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "reports/json_node.h"
#include "reports/run.h"

namespace cuaudit::report {

// The mode of a report, also of none.
Mode ReadMode(const JsonNode& node);
Rule ReadRule(const JsonNode& node);

// Empty: it was read. A report is not empty text.
[[nodiscard]] std::string ReadJson(std::string_view text, Run* run, const ReadSoFar& told = {});

}  // namespace cuaudit::report
