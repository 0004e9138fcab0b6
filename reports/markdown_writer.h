// SPDX-License-Identifier: MIT
// markdown_writer.h: writes an audit as Markdown, for a comment, a wiki or the step summary of a GitHub workflow.
//
// What changed since the base comes first, then a row for each report, then the defects of each case: a table, and for each defect a fold
// with its stacks and the command that shows it again.
#pragma once

#include <cstddef>
#include <ostream>

#include "reports/audit.h"

namespace cuaudit::report {

struct MarkdownOptions {
  // The page stops before it has more bytes, and says how much is missing. GitHub shows no step summary of more than 1 MiB.
  std::size_t most_bytes = static_cast<std::size_t>(-1);
};

// Returns false when the stream failed.
bool WriteMarkdown(const Audit& audit, std::ostream& out, const MarkdownOptions& options = {});

}  // namespace cuaudit::report
