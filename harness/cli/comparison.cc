// SPDX-License-Identifier: MIT
#include "harness/cli/comparison.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "harness/cli/session.h"
#include "harness/compare/result_files.h"
#include "harness/options/report_files.h"
#include "harness/process/files.h"
#include "reports/audit_defects.h"
#include "reports/message.h"
#include "reports/run.h"
#include "reports/writers.h"

namespace cuaudit::harness {
namespace {

// True when what a run has found hides that it did not try all, so that the status of the audit says nothing of it.
bool IsInPart(const report::Audit& audit) {
  return std::any_of(audit.cases.begin(), audit.cases.end(), [](const report::Case& one) {
    return std::any_of(one.runs.begin(), one.runs.end(), [](const report::Run& run) { return Proves(run) && !ProvesAll(run); });
  });
}

}  // namespace

Result<report::Audit> ReadResultShown(const std::string& path, Progress* progress) {
  Result<report::Audit> audit = ReadResult(path, ReadingOf(path, progress));
  progress->Clear();
  return audit;
}

Result<Base> ReadBaseShown(const std::string& path, Progress* progress) {
  Result<Base> base = ReadBase(path, ReadingOf(path, progress));
  progress->Clear();
  return base;
}

Result<std::set<report::Change>> ReadPolicy(const std::string& text) {
  std::set<report::Change> policy;
  if (text == "none") return policy;
  for (std::string word : SplitCommas(text)) {
    std::replace(word.begin(), word.end(), '-', '_');
    const std::optional<report::Change> change = words::Named<report::Change>(word);
    if (!change || *change == report::Change::None) {
      return Status(Exit::Usage, OptionFlag{"--fail-on"},
                    "'" + text + "': expected new, changed, not-run, fixed or unchanged, with commas between, or none");
    }
    policy.insert(*change);
  }
  return policy;
}

// A base does not excuse a defect that was accepted until a day which has passed: somebody promised to look at it.
Exit PolicyExit(const std::set<report::Change>& policy, const report::Audit& audit) {
  const report::Changes changes = report::CountChanges(audit);
  if (!policy.empty() && changes.expired != 0) return Exit::Findings;
  if (std::any_of(policy.begin(), policy.end(), [&](report::Change change) { return changes.Count(change) != 0; })) return Exit::Findings;
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

namespace {

// The same file or folder has the same path, whatever links and dots the user wrote.
std::filesystem::path Real(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::filesystem::path real = std::filesystem::weakly_canonical(absolute, error);
  if (error) real = absolute.lexically_normal();
  return real.has_filename() ? real : real.parent_path();
}

bool IsWithin(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// An audit or a merge that writes over its base would be compared with itself, and what is new in it would be old for the next one.
Status CheckApart(const std::string& base, const std::string& out) {
  const std::filesystem::path from = Real(base);
  const std::filesystem::path to = Real(out);
  if (!IsWithin(from, to) && !IsWithin(to, from)) return {};
  return {Exit::Usage, OptionFlag{"--base"},
          base + ": expected a result that is not in --out " + out + ", nor around it, because the result is written there"};
}

}  // namespace

Result<std::optional<AuditBase>> AuditBase::Read(const Options& options) {
  if (options.base.empty()) return std::optional<AuditBase>();
  Result<std::set<report::Change>> policy = ReadPolicy(options.fail_on);
  if (!policy.ok()) return policy.status();
  if (const Status apart = CheckApart(options.base, options.out); !apart.ok()) return apart;
  Progress progress(options.progress);
  Result<Base> base = ReadBaseShown(options.base, &progress);
  if (!base.ok()) return Status(base.status().exit(), OptionFlag{"--base"}, base.status().message());
  return std::optional(AuditBase(std::move(*base), std::move(*policy), options.progress));
}

TriedBefore AuditBase::TriedIn(const std::string& case_name) const {
  TriedBefore tried;
  const auto is_meant = [&](const std::string& name) { return name.empty() || name == case_name; };
  if (!base_.audit.has_value()) {
    for (const KnownDefect& defect : base_.defects) {
      if (!is_meant(defect.case_name) || defect.mode != report::Mode::Sweep) continue;
      for (const FailingWay& way : defect.failing) {
        if (!way.unwinding) tried.Add(way.call, way.function, 0);
      }
    }
    return tried;
  }
  for (const report::Case& one : base_.audit->cases) {
    if (!is_meant(one.name)) continue;
    for (const report::Run& run : one.runs) {
      if (run.mode != report::Mode::Sweep || !run.coverage.has_value()) continue;
      for (const report::Tried& way : run.coverage->tried) {
        if (!way.unwinding) tried.Add(way.call, way.function, way.places);
      }
    }
  }
  return tried;
}

Exit AuditBase::Compare(const std::string& directory, Exit of_the_audit) const {
  Progress progress(progress_);
  Result<report::Audit> head = ReadResultShown(directory, &progress);
  if (!head.ok()) return Refuse(head.status());
  CompareWith(base_, &*head);
  for (const Output& output : {Output{Format::Json, directory + "/comparison.json"}, Output{}}) {
    const Status written = WriteComparison(*head, output);
    if (!written.ok()) return Refuse(written);
  }
  const Exit compared = PolicyExit(policy_, *head);
  // Old defects are no reason for a status of 1, but what failed, or did not prove all, is never clean.
  if (of_the_audit == Exit::Findings && compared == Exit::Clean && IsInPart(*head)) return Exit::Environment;
  const bool proved = of_the_audit == Exit::Clean || of_the_audit == Exit::Findings;
  if (proved || (compared == Exit::Findings && of_the_audit == Exit::Environment)) return compared;
  return of_the_audit;
}

}  // namespace cuaudit::harness
