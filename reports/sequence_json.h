// SPDX-License-Identifier: MIT
// sequence_json.h: the calls of a sweep and the way back of a defect as JSON, and back. reports/schema/report.schema.json has their form.
//
//   Errors    what cannot be read is refused whole: nothing.
//
// Places, faults and verdicts stand once and are named by number, so that a sweep of thousands of trials stays small.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>

#include "reports/run.h"

namespace cuaudit::report {

nlohmann::ordered_json SequenceToJson(const Sequence& sequence);
nlohmann::ordered_json UnwindingToJson(const Unwinding& unwinding);

// `defects` is the number of defects of the report: trials name them.
std::optional<Sequence> SequenceFromJson(const nlohmann::ordered_json& json, std::size_t defects);
// The numbers in it are those of `sequence`.
std::optional<Unwinding> UnwindingFromJson(const nlohmann::ordered_json& json, const Sequence& sequence);

}  // namespace cuaudit::report
