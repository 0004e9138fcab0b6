// SPDX-License-Identifier: MIT
// host_notes.h: what was seen of the host and judged by nobody, in a few words: a report that is clean says so where it says clean.
//
//   Owns      nothing.
//   Threads   pure.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <string>
#include <string_view>

#include "reports/run.h"

namespace cuaudit::report {

// Rules that change no outcome: one note for each place.
inline constexpr std::string_view kHostLeft = "host_left";
inline constexpr std::string_view kHostMisused = "host_misused";

// "3 host places left, 1 misused, judged with --host"; empty where there are none.
std::string HostNotes(const Run& run);

}  // namespace cuaudit::report
