// SPDX-License-Identifier: MIT
// reasons_json.h: reasons, the parts of a message, what is said of a defect beside a base, the calls of a sweep and the way back of a
// defect as JSON, and back. reports/schema/report.schema.json has their form.
//
//   Errors    an id that this version does not know fails at its JsonNode.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "reports/audit.h"
#include "reports/json_node.h"
#include "reports/run.h"

namespace cuaudit::report {

// The enumerator of these words; `what` was expected where there is none.
template <words::HasRows E>
E Worded(const JsonNode& node, std::string_view text, std::string_view what) {
  if (const std::optional<E> known = words::Named<E>(text)) return *known;
  node.Expected(what);
  return E{};
}

// [{"reason": "beyond_limit", "count": 3}]
nlohmann::ordered_json ReasonsToJson(const Counted& counts);
Counted ReasonsFromJson(const JsonNode& node);

// {"device_memory": {"reason": ...}}
nlohmann::ordered_json ReasonsToJson(const std::map<std::string, Because>& reasons);
std::map<std::string, Because> NamedReasonsFromJson(const JsonNode& node);

// [{"in": "spawn", "instead_of": [{"reason": ...}], "count": 2}]
nlohmann::ordered_json IsolationToJson(const std::map<Ran, std::uint64_t>& trials);
std::map<Ran, std::uint64_t> IsolationFromJson(const JsonNode& node);

// What the message of a report says, each part under its own key. An object without keys: the outcome says all.
nlohmann::ordered_json MessageToJson(const Message& message);
Message MessageFromJson(const JsonNode& node);

// {"reason": ..., "owner": ..., "until": "2027-03-31", "expired": false, "entry": "suppressions.toml:12"}
nlohmann::ordered_json SuppressedToJson(const Suppressed& one);

// The rows of the table of live objects; "orphaned" where there are some.
nlohmann::ordered_json LiveToJson(const std::vector<LiveRow>& live);

// What only the base has; "because" where it is not fixed.
nlohmann::ordered_json GoneToJson(const Gone& gone);

// Adds what a comparison and a suppression say of a defect, each under its own key and only where it is said: "was", "taken_for",
// "suppressed".
void AddJudged(const Defect& defect, nlohmann::ordered_json* json);

// The calls of a sweep and the way back of a defect as JSON, and back. reports/schema/report.schema.json has their form.
//
//   Errors    what cannot be read is refused whole: nothing.
//
// Places, faults and verdicts stand once and are named by number, so that a sweep of thousands of trials stays small.

nlohmann::ordered_json SequenceToJson(const Sequence& sequence);
nlohmann::ordered_json UnwindingToJson(const Unwinding& unwinding);

// `defects` is the number of defects of the report: trials name them.
std::optional<Sequence> SequenceFromJson(const JsonNode& json, std::size_t defects);
// The numbers in it are those of `sequence`.
std::optional<Unwinding> UnwindingFromJson(const JsonNode& json, const Sequence& sequence);

}  // namespace cuaudit::report
