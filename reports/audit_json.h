// SPDX-License-Identifier: MIT
// audit_json.h: writes audit.json, the index of a result directory: which cases there are, and the files with their reports.
//
// The reports themselves are beside it, each as json_writer.h writes them.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "reports/audit.h"

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

}  // namespace cuaudit::report
