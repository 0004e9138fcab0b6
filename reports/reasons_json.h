// SPDX-License-Identifier: MIT
// reasons_json.h: reasons and the parts of a message as JSON by the ids of reports/words, and back.
//
//   Errors    an id that this version does not know fails at its JsonNode.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/json_node.h"
#include "reports/run.h"

namespace cuaudit::report {

// {"reason": "copy_differs", "of": "the heap"}; `of` only where it is not empty.
nlohmann::ordered_json ReasonToJson(const Because& why);
Because ReasonFromJson(const JsonNode& node);

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

}  // namespace cuaudit::report
