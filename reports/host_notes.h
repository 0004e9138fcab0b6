// SPDX-License-Identifier: MIT
// host_notes.h: counts notes about host resources that the audit saw but did not judge, so that a clean report can mention them.
#pragma once

#include <string>
#include <string_view>

#include "reports/run.h"

namespace cuaudit::report {

// Rules that never change the outcome. Each has one note per place.
inline constexpr std::string_view kHostLeft = "host_left";
inline constexpr std::string_view kHostMisused = "host_misused";

// "3 host places left, 1 misused, judged with --host"; empty when there are none.
std::string HostNotes(const Run& run);

}  // namespace cuaudit::report
