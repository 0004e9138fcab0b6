// SPDX-License-Identifier: MIT
// html_writer.h: writes an audit as one HTML file that shows itself: no other file, no network.
//
//   Errors    returns false when the stream failed.
//
// The report is one JSON element in the page, and page/*.js draws it. Whatever bytes a name has, it stays inside that element and reaches
// the page as text. Lines of source files are taken along when the files are still where the debug information says (source_lines.h), so
// the same audit gives the same bytes as long as those files do not change.
#pragma once

#include <ostream>

#include "reports/audit.h"

namespace cuaudit::report {

bool WriteHtml(const Audit& audit, std::ostream& out);

// One report as an audit of one case without a name.
bool WriteHtml(const Run& run, std::ostream& out);

}  // namespace cuaudit::report
