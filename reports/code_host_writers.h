// SPDX-License-Identifier: MIT
// code_host_writers.h: writes an audit for code hosts: as workflow commands of GitHub Actions, and as a code quality report of GitLab.
//
// What is new or not compared is an error, what the base has too is a notice, and what proves nothing is a warning. GitHub shows ten of
// each level for one step, so there are never more; a notice says how many are missing. Suppressed defects have none.
//
// Source: GitHub, "Workflow commands for GitHub Actions"; the escapes are those of @actions/core.
#pragma once

#include <ostream>

#include "reports/audit.h"
#include "reports/source_root.h"

namespace cuaudit::report {

// Each line is one command. Returns false when the stream failed.
bool WriteGithub(const Audit& audit, const SourceRoot& root, std::ostream& out);

// Writes an audit as a code quality report of GitLab (artifacts:reports:codequality), one issue for each defect.
//
// GitLab compares by fingerprint with the report of the target branch. A suppressed defect is an issue of the lowest severity. A defect
// without a known source line stands at the first line of its module, because GitLab drops an issue without a file.
//
// Source: GitLab, "Code Quality", section "Implement a custom tool".

// Returns false when the stream failed. Bytes that are not UTF-8 become U+FFFD.
bool WriteGitlab(const Audit& audit, const SourceRoot& root, std::ostream& out);

}  // namespace cuaudit::report
