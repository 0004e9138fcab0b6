// SPDX-License-Identifier: MIT
// github_writer.h: writes an audit as workflow commands of GitHub Actions, which show defects as annotations at their lines.
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

}  // namespace cuaudit::report
