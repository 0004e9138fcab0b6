// SPDX-License-Identifier: MIT
// gitlab_writer.h: writes an audit as a code quality report of GitLab (artifacts:reports:codequality), one issue for each defect.
//
// GitLab compares by fingerprint with the report of the target branch. A suppressed defect is an issue of the lowest severity. A defect
// without a known source line stands at the first line of its module, because GitLab drops an issue without a file.
//
// Source: GitLab, "Code Quality", section "Implement a custom tool".
#pragma once

#include <ostream>

#include "reports/audit.h"
#include "reports/source_root.h"

namespace cuaudit::report {

// Returns false when the stream failed. Bytes that are not UTF-8 become U+FFFD.
bool WriteGitlab(const Audit& audit, const SourceRoot& root, std::ostream& out);

}  // namespace cuaudit::report
