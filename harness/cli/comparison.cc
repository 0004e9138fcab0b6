// SPDX-License-Identifier: MIT
#include "harness/cli/comparison.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "harness/cli/session.h"
#include "harness/options/report_files.h"
#include "harness/process/files.h"
#include "reports/comparison_text.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

bool HasExpired(const report::Audit& audit) {
  return std::any_of(audit.cases.begin(), audit.cases.end(), [](const report::Case& one) {
    return std::any_of(one.runs.begin(), one.runs.end(), [](const report::Run& run) {
      return std::any_of(run.defects.begin(), run.defects.end(),
                         [](const report::Defect& defect) { return defect.suppressed && defect.suppressed->expired; });
    });
  });
}

}  // namespace

Result<std::set<report::Change>> ReadPolicy(const std::string& text) {
  std::set<report::Change> policy;
  if (text == "none") return policy;
  for (std::string word : SplitCommas(text)) {
    std::replace(word.begin(), word.end(), '-', '_');
    const std::optional<report::Change> change = words::Named<report::Change>(word);
    if (!change || *change == report::Change::None) {
      return Status(Exit::Usage,
                    "--fail-on: '" + text + "': expected new, changed, not-run, fixed or unchanged, with commas between, or none");
    }
    policy.insert(*change);
  }
  return policy;
}

// A base does not excuse a defect that was accepted until a day which has passed: somebody promised to look at it.
Exit PolicyExit(const std::set<report::Change>& policy, const report::Audit& audit) {
  if (!policy.empty() && HasExpired(audit)) return Exit::Findings;
  const report::Changes changes = report::CountChanges(audit);
  for (const report::Change change : policy) {
    const auto found = changes.defects.find(change);
    if (found != changes.defects.end() && found->second != 0) return Exit::Findings;
  }
  return policy.contains(report::Change::NotRun) && !report::NothingProved(audit).empty() ? Exit::Findings : Exit::Clean;
}

Status WriteComparison(const report::Audit& audit, const Output& output) {
  if (output.format != Format::Text && output.format != Format::Json) return WriteAudit(audit, output);
  std::ostringstream text;
  const bool written = output.format == Format::Json ? report::WriteComparisonJson(audit, text)
                                                     : report::WriteComparisonText(audit, text, output.file.empty() && WantsColour());
  if (!written) return {Exit::Failure, "the comparison could not be written"};
  return output.file.empty() ? WriteAll(STDOUT_FILENO, text.str(), "stdout") : WriteFile(output.file, text.str(), Exit::Failure);
}

}  // namespace cuaudit::harness
