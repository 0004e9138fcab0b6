// SPDX-License-Identifier: MIT
// run_digest.h: whether the fault-free runs of a case, beside which every trial is judged, are those that the plan was made with.
//
//   Errors    one line: the file, and what the plan has.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/process/status.h"

namespace cuaudit::harness {

using RunDigests = std::map<std::string, std::uint64_t>;  // by name of the file

// Of all files of the directory but logs and locks. A file and its copy without holes have the same digest.
Result<RunDigests> DigestRuns(const std::string& directory);

// Names the first file that is changed, missing or not of the plan.
Status CheckRuns(const std::string& directory, const RunDigests& planned);

}  // namespace cuaudit::harness
