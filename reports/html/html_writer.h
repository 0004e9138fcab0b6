// SPDX-License-Identifier: MIT
// html_writer.h: writes an audit as one HTML file that shows itself: no other file, no network.
//
//   Errors    returns false when the stream failed.
//
// The report is one JSON element in the page, and page/*.js draws it. Whatever bytes a name has, it stays inside that element and reaches
// the page as text. Lines of source files below the root are taken along when the files are still where the debug information says
// (place_table.h), so the same audit gives the same bytes as long as those files do not change. An audit from an archive was made with
// the files of another machine, and has none.
#pragma once

#include <ostream>

#include "reports/audit.h"
#include "reports/source_root.h"

namespace cuaudit::report {

bool WriteHtml(const Audit& audit, const SourceRoot& root, std::ostream& out);

// One report as an audit of one case without a name.
bool WriteHtml(const Run& run, const SourceRoot& root, std::ostream& out);

}  // namespace cuaudit::report
