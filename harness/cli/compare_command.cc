// SPDX-License-Identifier: MIT
// `compare` and `baseline`: what a result says beside an earlier one.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/compare/baseline.h"
#include "harness/compare/compare.h"
#include "harness/compare/result_files.h"
#include "harness/compare/suppressions.h"
#include "harness/options/report_files.h"
#include "harness/process/files.h"
#include "reports/comparison_text.h"
#include "reports/escape.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

// "new,changed,not-run" as the changes that make the exit status 1.
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

Status AcceptIn(const std::string& file, report::Audit* audit) {
  if (file.empty()) return {};
  Result<Suppressions> suppressions = Suppressions::Read(file);
  if (!suppressions.ok()) return {Exit::Usage, "--suppressions: " + suppressions.status().message()};
  const std::string today = Today();
  for (report::Case& one : audit->cases) {
    for (report::Run& run : one.runs) suppressions->Apply(today, &run);
  }
  audit->unused_suppressions = suppressions->Unused();
  for (const std::string& place : audit->unused_suppressions) Say("warning: " + place + ": the suppression fits no defect");
  return {};
}

bool HasExpired(const report::Audit& audit) {
  return std::any_of(audit.cases.begin(), audit.cases.end(), [](const report::Case& one) {
    return std::any_of(one.runs.begin(), one.runs.end(), [](const report::Run& run) {
      return std::any_of(run.defects.begin(), run.defects.end(),
                         [](const report::Defect& defect) { return defect.suppressed && defect.suppressed->expired; });
    });
  });
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

// Text and JSON are about the comparison; other formats show the defects of the head, each with what the comparison says of it.
Status WriteComparison(const report::Audit& audit, const Output& output) {
  if (output.format != Format::Text && output.format != Format::Json) return WriteAudit(audit, output);
  std::ostringstream text;
  const bool written = output.format == Format::Json ? report::WriteComparisonJson(audit, text)
                                                     : report::WriteComparisonText(audit, text, output.file.empty() && WantsColour());
  if (!written) return {Exit::Failure, "the comparison could not be written"};
  return output.file.empty() ? WriteAll(STDOUT_FILENO, text.str(), "stdout") : WriteFile(output.file, text.str(), Exit::Failure);
}

Exit WriteBaseline(const std::string& result, const std::string& file, bool allow_unproved) {
  const Result<report::Audit> audit = ReadResult(result);
  if (!audit.ok()) return Refuse(audit.status());
  const std::vector<report::NotProved> not_proved = report::NothingProved(*audit);
  if (!not_proved.empty() && !allow_unproved) {
    const report::NotProved& one = not_proved.front();
    const std::string more = not_proved.size() == 1 ? "" : ", and " + std::to_string(not_proved.size() - 1) + " more";
    return Refuse({Exit::Environment, report::ForTerminal(one.case_name.empty() ? result : one.case_name) + ": " + one.why + more +
                                          ": the baseline would lack its defects (--allow-unproved)"});
  }
  for (const report::NotProved& one : not_proved) {
    Say("warning: " + (one.case_name.empty() ? result : one.case_name) + ": " + one.why + ", so the baseline lacks its defects");
  }
  const std::string text = BaselineText(BaselineOf(*audit));
  if (file.empty()) return Print(text);
  const Status written = WriteFile(file, text, Exit::Usage);
  if (!written.ok()) return Refuse(written);
  return Exit::Clean;
}

Exit ShowBaseline(const std::string& file) {
  const Result<Baseline> known = ReadBaseline(file);
  if (!known.ok()) return Refuse(known.status());
  const auto many = [](std::size_t count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); };
  std::string text = many(known->defects.size(), "defect");
  if (!known->runs.empty()) text += ", " + many(known->runs.size(), "report");
  text += "\n";
  for (const KnownDefect& defect : known->defects) {
    text += "  " +
            report::ForTerminal((defect.case_name.empty() ? "" : defect.case_name + ", ") + std::string(report::Name(defect.mode)) + ": " +
                                defect.title + " (" + defect.fingerprint + ")") +
            "\n";
  }
  return Print(text);
}

}  // namespace

Exit CompareCommand(const Options& options) {
  const Result<std::set<report::Change>> policy = ReadPolicy(options.fail_on);
  if (!policy.ok()) return Refuse(policy.status());
  for (const Output& output : options.outputs) {
    const Status writable = CheckOutput(output.file, "--format");
    if (!writable.ok()) return Refuse(writable);
  }
  Result<Base> base = ReadBase(options.operands[0]);
  if (!base.ok()) return Refuse(base.status());
  Result<report::Audit> head = ReadResult(options.operands[1]);
  if (!head.ok()) return Refuse(head.status());
  const Status suppressed = AcceptIn(options.suppressions, &*head);
  if (!suppressed.ok()) return Refuse(suppressed);
  CompareWith(std::move(*base), &*head);
  head->comparison->fail_on = *policy;
  Exit exit = PolicyExit(*policy, *head);
  for (const Output& output : options.outputs) {
    const Status written = WriteComparison(*head, output);
    if (written.ok()) continue;
    Say(written.message());
    exit = written.exit();
  }
  return exit;
}

Exit BaselineCommand(const Options& options) {
  const std::vector<std::string>& words = options.operands;
  return words[0] == "show" ? ShowBaseline(words[1]) : WriteBaseline(words[1], words.size() > 2 ? words[2] : "", options.allow_unproved);
}

}  // namespace cuaudit::harness
