// SPDX-License-Identifier: MIT
// host_notes.h: counts notes about host resources that the audit saw but did not judge, so that a clean report can mention them.
#pragma once

#include <string>

#include "reports/run.h"

namespace cuaudit::report {

// Notes of these rules never change the outcome. Each has one note per place.
constexpr bool IsHostNote(Rule rule) { return rule == Rule::HostLeft || rule == Rule::HostMisused; }

// "3 host places left, 1 misused, judged with --host"; empty when there are none.
std::string HostNotes(const Run& run);

}  // namespace cuaudit::report
