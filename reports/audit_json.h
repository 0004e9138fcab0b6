// SPDX-License-Identifier: MIT
// audit_json.h: writes audit.json, the index of a result directory, and reads the result of a release audit, or one report, as an Audit.
//
// The reports themselves are beside it, each as WriteJson (writers.h) writes them.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "reports/audit.h"
#include "reports/json_node.h"

namespace cuaudit::report {

inline constexpr int kAuditSchema = 1;
inline constexpr char kAuditFile[] = "audit.json";

struct IndexedCase {
  std::string name;
  std::vector<std::string> tags;
  std::vector<std::string> reports;  // names of files in the directory, of the sweep first
  std::string trials;                // name of the file with the trials; empty: none
  std::string not_run;               // why the case was not carried out, or not to its end; empty: it was
  std::string left_out;              // what the budget cut, although the rest proves something; empty: nothing
};

struct AuditIndex {
  std::vector<IndexedCase> cases;
  std::optional<Comparison> comparison;
  std::vector<std::string> unused_suppressions;
  std::string generated;
  std::string tool_version;
  std::string project;  // the file with the cases; empty: none
};

// Names of the files of a case: "NAME.sweep.json", "NAME.trials.jsonl".
std::string ReportFile(const std::string& case_name, Mode mode);
std::string TrialsFile(const std::string& case_name);

// Writes the keys in one fixed order; `header` comes last and holds what may differ between equal audits. Returns false when the stream
// failed.
bool WriteAuditIndex(const AuditIndex& index, std::ostream& out);

// Reads the result of a release audit, or one report, as an Audit.
//
//   Errors    one line with the file, where in it, and what was expected. The Audit is then worthless.

// A result is refused when a file of it is larger: 1 GiB.
inline constexpr std::size_t kMostReportBytes = std::size_t{1} << 30U;

// `path` is a result directory (with audit.json in it), the audit.json of one, or one JSON report, which becomes the only case, without a
// name. Empty: it was read. `told` hears of reports, or of the parts of the only one.
[[nodiscard]] std::string ReadAudit(const std::string& path, Audit* audit, const ReadSoFar& told = {});

// Gives the bytes of a file of a result by its name without directories. Answers why it cannot, or empty text.
using ReadNamed = std::function<std::string(const std::string& name, std::string* bytes)>;

// The same for a result whose files are somewhere else. Errors begin with the name of the file.
[[nodiscard]] std::string ReadAuditFiles(const ReadNamed& read, Audit* audit, const ReadSoFar& told = {});

// Reads a regular file that is not larger than a report may be. Answers why it cannot, or empty text.
[[nodiscard]] std::string ReadReportFile(const std::string& path, std::string* bytes);

}  // namespace cuaudit::report
