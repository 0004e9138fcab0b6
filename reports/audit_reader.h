// SPDX-License-Identifier: MIT
// audit_reader.h: reads the result of a release audit, or one report, as an Audit.
//
//   Errors    one line with the file, where in it, and what was expected. The Audit is then worthless.
#pragma once

#include <functional>
#include <string>

#include "reports/audit.h"

namespace cuaudit::report {

// A result is refused when a file of it is larger: 1 GiB.
inline constexpr std::size_t kMostReportBytes = std::size_t{1} << 30U;

// `path` is a result directory (with audit.json in it), the audit.json of one, or one JSON report, which becomes the only case, without a
// name. Empty: it was read.
[[nodiscard]] std::string ReadAudit(const std::string& path, Audit* audit);

// Gives the bytes of a file of a result by its name without directories. Answers why it cannot, or empty text.
using ReadNamed = std::function<std::string(const std::string& name, std::string* bytes)>;

// The same for a result whose files are somewhere else. Errors begin with the name of the file.
[[nodiscard]] std::string ReadAuditFiles(const ReadNamed& read, Audit* audit);

// Reads a regular file that is not larger than a report may be. Answers why it cannot, or empty text.
[[nodiscard]] std::string ReadReportFile(const std::string& path, std::string* bytes);

}  // namespace cuaudit::report
