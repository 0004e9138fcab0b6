// SPDX-License-Identifier: MIT
// json_writer.h: a report as JSON, for programs.
//
//   Owns      nothing; borrows the run and the stream for the call.
//   Threads   safe on different streams.
//   Units     as in run.h; a growth per cycle is written without a fraction when it has none.
//   Errors    false when the stream failed. Strings that are not UTF-8 are written with U+FFFD in place of each bad byte.
//   Faults    makes no driver calls.
//   Source    ours; every key and its meaning in reports/schema/report.schema.json.
#pragma once

#include <ostream>

#include "reports/run.h"

namespace cuaudit::report {

inline constexpr char kJsonSchema[] = "cuaudit.report/1";

// Keys come in one fixed order and are all there in every report, so two reports can be compared line by line. `header` comes last and
// holds what may differ between equal runs.
bool WriteJson(const Run& run, std::ostream& out);

}  // namespace cuaudit::report
