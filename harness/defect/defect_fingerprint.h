// SPDX-License-Identifier: MIT
// defect_fingerprint.h: names of a defect and of a function that stay the same when the program is built again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/run.h"

namespace cuaudit::harness {

// "v2-" and 16 digits, from the rule, the kind, the call and the function that acquired the object, and the blamed function. Lines,
// other calls, the failing calls and the numbers of trials do not change it. A function without a name counts as its module.
std::string DefectFingerprint(const report::Finding& root, const std::optional<report::Blame>& blame);

// Identifies a function within one report. A function without a name is identified by its address.
std::uint64_t FunctionKey(const report::Frame& frame);

// Identifies the way from the blamed function to a call within one report: however that function was called, what it loses is the same. A
// stack without that function, or nobody blamed: the whole way.
std::uint64_t WayKey(const report::Acquired& place, const std::optional<report::Blame>& blame);

// The function as it is written in the source: without parameters and without what a compiler adds to the name of a copy.
std::string_view PlainName(std::string_view function);

}  // namespace cuaudit::harness
