// SPDX-License-Identifier: MIT
// `suppress`: adds an entry to suppressions.toml.
#include <string>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/compare/known_defect.h"
#include "harness/compare/result_files.h"
#include "harness/compare/suppressions.h"

namespace cuaudit::harness {
namespace {

constexpr char kSuppressionsFile[] = "suppressions.toml";

Status CheckEntry(const Options& options) {
  if (options.operands[0].empty()) return {Exit::Usage, "expected a fingerprint that is not empty"};
  if (options.reason.empty()) return {Exit::Usage, "--reason: expected why the defect is accepted"};
  if (options.owner.empty()) return {Exit::Usage, "--owner: expected who looks after it"};
  if (!IsDay(options.until)) return {Exit::Usage, "--until: '" + options.until + "': expected a day such as 2027-03-31"};
  if (Status known = CheckToday(); !known.ok()) return known;
  if (options.until < Today()) return {Exit::Usage, "--until: '" + options.until + "': expected a day that has not passed"};
  if (const std::string last = LastDay(Today()); options.until > last) {
    return {Exit::Usage, "--until: '" + options.until + "': expected a day at most two years ahead, up to " + last};
  }
  if (options.report.empty()) return {Exit::Usage, "--report: expected the result that has the defect"};
  return {};
}

// The line above the entry: what the fingerprint stands for.
Result<std::string> CommentOf(const std::string& fingerprint, const std::string& result) {
  const Result<report::Audit> audit = ReadResult(result);
  if (!audit.ok()) return audit.status();
  for (const KnownDefect& defect : KnownDefects(*audit)) {
    if (defect.fingerprint == fingerprint) return (defect.case_name.empty() ? "" : defect.case_name + ": ") + defect.title;
  }
  return Status(Exit::Usage, result + ": expected a defect with the fingerprint '" + fingerprint + "'");
}

}  // namespace

Exit SuppressCommand(const Options& options) {
  Status status = CheckEntry(options);
  if (!status.ok()) return Refuse(status);
  Suppressions::Entry entry;
  entry.fingerprint = options.operands[0];
  entry.reason = options.reason;
  entry.owner = options.owner;
  entry.until = options.until;
  const Result<std::string> comment = CommentOf(entry.fingerprint, options.report);
  if (!comment.ok()) return Refuse(comment.status());
  const std::string file = options.suppressions.empty() ? kSuppressionsFile : options.suppressions;
  status = AppendEntry(file, entry, *comment);
  if (!status.ok()) return Refuse(status);
  Say(file + ": accepted until " + entry.until + ": " + *comment);
  return Exit::Clean;
}

}  // namespace cuaudit::harness
