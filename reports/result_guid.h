// SPDX-License-Identifier: MIT
// result_guid.h: an identifier of the results of an audit: equal for equal results, whatever file they are in.
//
// SARIF names by it the run that a result was compared with.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "reports/audit.h"

namespace cuaudit::report {

// Case, mode and fingerprint of a defect; without a fingerprint a run that proved something.
using ResultKey = std::tuple<std::string, std::string, std::string>;

std::set<ResultKey> ResultKeysOf(const Audit& audit);

// "0123abcd-4567-5890-a123-456789abcdef", as RFC 9562 has identifiers that are made of a name.
std::string GuidOf(const std::set<ResultKey>& keys);

}  // namespace cuaudit::report
