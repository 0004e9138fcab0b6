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

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/json_node.h"
#include "reports/run.h"

namespace cuaudit::report {

// The findings and defects of a JSON report.

// The enumerator of `choices` whose name the node has.
template <typename E, std::size_t size>
E OneOf(const JsonNode& node, const std::array<E, size>& choices, std::string_view what) {
  const std::string text = node.Text();
  for (const E choice : choices) {
    if (Name(choice) == text) return choice;
  }
  node.Expected(what);
  return choices.front();
}

std::vector<Frame> ReadStack(const JsonNode& node);
Acquired ReadPlace(const JsonNode& node);
Finding ReadFinding(const JsonNode& node);

// [{"why": "renamed", "function": "open_device", "fingerprint": "v2-..."}]
nlohmann::ordered_json TakenForToJson(const std::vector<TakenFor>& defects);

// Of a run whose findings are read already.
void ReadDefects(const JsonNode& node, Run* run);

// Empty: it was read. A report is not empty text.
[[nodiscard]] std::string ReadJson(std::string_view text, Run* run, const ReadSoFar& told = {});

}  // namespace cuaudit::report
