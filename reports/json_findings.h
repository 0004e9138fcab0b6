// SPDX-License-Identifier: MIT
// json_findings.h: the findings and defects of a JSON report, for json_reader.h.
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

template <words::HasRows E>
E Worded(const JsonNode& node, std::string_view text, std::string_view what) {
  if (const std::optional<E> known = words::Named<E>(text)) return *known;
  node.Expected(what);
  return E{};
}

std::vector<Frame> ReadStack(const JsonNode& node);
Acquired ReadPlace(const JsonNode& node);
Finding ReadFinding(const JsonNode& node);

// [{"why": "renamed", "function": "open_device", "fingerprint": "v2-..."}]
nlohmann::ordered_json TakenForToJson(const std::vector<TakenFor>& defects);

// Of a run whose findings are read already.
void ReadDefects(const JsonNode& node, Run* run);

}  // namespace cuaudit::report
