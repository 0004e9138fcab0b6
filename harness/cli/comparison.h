// SPDX-License-Identifier: MIT
// comparison.h: an audit beside an earlier one: what `audit --base` begins from, and what `compare` and `audit --base` do with a compared
// audit: exit status by policy, and the comparison as a file.
//
//   Errors    a Status with one line.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "harness/cli/progress.h"
#include "harness/compare/compare.h"
#include "harness/options/options.h"
#include "harness/process/status.h"
#include "harness/sweep/findings/coverage.h"
#include "reports/audit.h"

namespace cuaudit::harness {

// Reads a result, or a base, and shows how far that has come.
Result<report::Audit> ReadResultShown(const std::string& path, Progress* progress);
Result<Base> ReadBaseShown(const std::string& path, Progress* progress);

// "new,changed,not-run" as the changes that make the exit status 1.
Result<std::set<report::Change>> ReadPolicy(const std::string& text);

Exit PolicyExit(const std::set<report::Change>& policy, const report::Audit& audit);

// Text and JSON are about the comparison; other formats show the defects of the head, each with what the comparison says of it.
Status WriteComparison(const report::Audit& audit, const Output& output);

// The earlier result that `audit --base` begins from and is compared with.
//
//   Errors    one line, before anything runs: the base or --fail-on cannot be read, or the base lies where the audit writes.

class AuditBase {
 public:
  // Reads what --base names; none without it.
  static Result<std::optional<AuditBase>> Read(const Options& options);

  // What the base has tried in the sweep of a case. A report of one program, whose case has no name, speaks for every case. Of a baseline
  // file only the failing calls of its defects are known.
  TriedBefore TriedIn(const std::string& case_name) const;

  // Compares the result in `directory` with the base, writes comparison.json there, and prints the comparison. The exit status is that of
  // the comparison, or `of_the_audit` when that says that the audit failed or proved nothing. Nothing that was tried in part is clean,
  // whatever the policy: Exit::Environment, as when its findings are suppressed.
  Exit Compare(const std::string& directory, Exit of_the_audit) const;

 private:
  AuditBase(Base base, std::set<report::Change> policy, std::string progress)
      : base_(std::move(base)), policy_(std::move(policy)), progress_(std::move(progress)) {}

  Base base_;
  std::set<report::Change> policy_;
  std::string progress_;  // --progress
};

}  // namespace cuaudit::harness
