// SPDX-License-Identifier: MIT
// json_writer.h: writes a report as JSON, for programs. reports/schema/report.schema.json describes every key.
#pragma once

#include <ostream>

#include "reports/run.h"

namespace cuaudit::report {

inline constexpr char kJsonSchema[] = "cuaudit.report/1";

// Writes the keys in one fixed order, so that two reports can be compared line by line. Keys are never left out, apart from `message`,
// `interrupted`, `faults`, `coverage` and rare keys of a finding. `header` comes last and holds what may differ between equal runs. A
// growth per cycle has no fraction when it is a whole number. Strings that are not UTF-8 get U+FFFD in place of each bad byte.
// Returns false when the stream failed.
bool WriteJson(const Run& run, std::ostream& out);

}  // namespace cuaudit::report
