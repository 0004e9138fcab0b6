// SPDX-License-Identifier: MIT
// `compare` and `baseline`: what a result says beside an earlier one.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/comparison.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/compare/baseline.h"
#include "harness/compare/compare.h"
#include "harness/compare/known_defect.h"
#include "harness/compare/result_files.h"
#include "harness/compare/suppressions.h"
#include "harness/options/report_files.h"
#include "harness/process/files.h"
#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/message.h"
#include "reports/text_page.h"

namespace cuaudit::harness {
namespace {

// Says which entries of the result's own suppressions accept nothing any more. `before` has the entry of each defect that one accepted.
void TellThrownAway(const std::map<const report::Defect*, std::string>& before, const std::string& file) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> entries;
  for (const auto& [defect, entry] : before) {
    if (!defect->suppressed) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  if (entries.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, entries.size()); ++i) text += (i == 0 ? "" : ", ") + entries[i];
  if (entries.size() > kMost) text += " and " + std::to_string(entries.size() - kMost) + " more";
  Say("warning: suppressions of the result that do not hold here, because --suppressions " + file + " stands in their place: " + text);
}

Status AcceptIn(const std::string& file, report::Audit* audit) {
  if (file.empty()) return {};
  Result<Suppressions> suppressions = Suppressions::Given(file);
  if (!suppressions.ok()) return suppressions.status();
  const std::string today = Today();
  std::map<const report::Defect*, std::string> before;
  for (report::Case& one : audit->cases) {
    for (report::Run& run : one.runs) {
      for (const report::Defect& defect : run.defects) {
        if (report::IsSuppressed(defect)) before.emplace(&defect, defect.suppressed->entry);
      }
      suppressions->Apply(today, &run);
    }
  }
  TellThrownAway(before, file);
  audit->unused_suppressions = suppressions->Unused();
  for (const std::string& place : audit->unused_suppressions) Say("warning: " + place + ": the suppression fits no defect");
  return {};
}

// Writes one result after the other, as the last steps of a command.
template <typename Write>
Exit WriteEach(const std::vector<Output>& outputs, std::size_t step, Progress* progress, Exit exit, const Write& write) {
  const std::size_t steps = step + outputs.size();
  for (const Output& output : outputs) {
    progress->Step(output.file.empty() ? "writing the result" : "writing " + ShortName(output.file), step++, steps);
    if (output.file.empty()) progress->Clear();
    const Status written = write(output);
    progress->Clear();
    if (written.ok()) continue;
    Say(written.message());
    exit = written.exit();
  }
  return exit;
}

Exit WriteBaseline(const Options& options, const std::string& result, const std::string& file) {
  if (file == "-") return Refuse({Exit::Usage, "-: expected a file; without one the baseline goes to stdout"});
  Progress progress(options.progress);
  const Result<report::Audit> audit = ReadResultShown(result, &progress);
  if (!audit.ok()) return Refuse(audit.status());
  const std::vector<report::NotProved> not_proved = report::NothingProved(*audit);
  if (!not_proved.empty() && !options.allow_unproved) {
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
  std::string text = report::Plural(known->defects.size(), "defect");
  if (!known->runs.empty()) text += ", " + report::Plural(known->runs.size(), "report");
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
  Progress progress(options.progress);
  Result<Base> base = ReadBaseShown(options.operands[0], &progress);
  if (!base.ok()) return Refuse(base.status());
  if (!base->audit && base->runs.empty()) {
    Say("warning: " + base->name +
        ": the baseline names no report, so nobody sees which ones vanish: write it anew (cuaudit baseline write)");
  }
  Result<report::Audit> head = ReadResultShown(options.operands[1], &progress);
  if (!head.ok()) return Refuse(head.status());
  const Status suppressed = AcceptIn(options.suppressions, &*head);
  if (!suppressed.ok()) return Refuse(suppressed);
  progress.Step("comparing", 0, 1 + options.outputs.size());
  CompareWith(std::move(*base), &*head);
  progress.Clear();
  head->comparison->fail_on = *policy;
  return WriteEach(options.outputs, 1, &progress, PolicyExit(*policy, *head),
                   [&](const Output& output) { return WriteComparison(*head, output); });
}

Exit BaselineCommand(const Options& options) {
  const std::vector<std::string>& words = options.operands;
  return words[0] == "show" ? ShowBaseline(words[1]) : WriteBaseline(options, words[1], words.size() > 2 ? words[2] : "");
}

// `report`: makes any format of results that are there already.

namespace {

// A report of one command has no case. Beside others it is named after its file: "sweep.json" -> "sweep".
std::string NameAfter(const std::string& path) {
  const std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  return file.has_filename() ? file.stem().string() : file.parent_path().filename().string();
}

// Cases of all results in the order in which they were given. The first result's comparison is kept, since two have two bases.
Result<report::Audit> ReadAll(const std::vector<std::string>& paths, Progress* progress) {
  report::Audit all;
  for (const std::string& path : paths) {
    Result<report::Audit> audit = ReadResultShown(path, progress);
    if (!audit.ok()) return audit;
    if (paths.size() == 1) return audit;
    for (report::Case& one : audit->cases) {
      if (one.name.empty()) one.name = NameAfter(path);
      const auto same = [&](const report::Case& other) { return other.name == one.name; };
      if (std::any_of(all.cases.begin(), all.cases.end(), same)) {
        return Status(Exit::Usage, path + ": case " + one.name + ": expected each case in one result only");
      }
      all.cases.push_back(std::move(one));
    }
    if (audit->comparison && all.comparison) return Status(Exit::Usage, path + ": expected at most one result with a comparison");
    if (audit->comparison) all.comparison = std::move(audit->comparison);
    std::move(audit->unused_suppressions.begin(), audit->unused_suppressions.end(), std::back_inserter(all.unused_suppressions));
    all.from_archive = all.from_archive || audit->from_archive;
    if (all.generated.empty()) all.generated = audit->generated;
    if (all.tool_version.empty()) all.tool_version = audit->tool_version;
    if (&path == &paths.front()) all.project = audit->project;
    if (all.project != audit->project) all.project.clear();
  }
  return all;
}

}  // namespace

Exit ReportCommand(const Options& options) {
  const Status writable = CheckOutputs(options);
  if (!writable.ok()) return Refuse(writable);
  Progress progress(options.progress);
  const Result<report::Audit> audit = ReadAll(options.operands, &progress);
  if (!audit.ok()) return Refuse(audit.status());
  return WriteEach(options.outputs, 0, &progress, Exit::Clean, [&](const Output& output) { return WriteAudit(*audit, output); });
}

// `suppress`: adds an entry to suppressions.toml.

namespace {

constexpr char kSuppressionsFile[] = "suppressions.toml";

Status CheckEntry(const Options& options) {
  if (options.operands[0].empty()) return {Exit::Usage, "expected a fingerprint that is not empty"};
  if (options.reason.empty()) return {Exit::Usage, OptionFlag{"--reason"}, "expected why the defect is accepted"};
  if (options.owner.empty()) return {Exit::Usage, OptionFlag{"--owner"}, "expected who looks after it"};
  if (!IsDay(options.until)) return {Exit::Usage, OptionFlag{"--until"}, "'" + options.until + "': expected a day such as 2027-03-31"};
  if (Status known = CheckToday(); !known.ok()) return known;
  if (options.until < Today()) return {Exit::Usage, OptionFlag{"--until"}, "'" + options.until + "': expected a day that has not passed"};
  if (const std::string last = LastDay(Today()); options.until > last) {
    return {Exit::Usage, OptionFlag{"--until"}, "'" + options.until + "': expected a day at most two years ahead, up to " + last};
  }
  std::error_code error;
  if (options.report.empty() && !std::filesystem::exists(options.out, error)) {
    return {Exit::Usage, OptionFlag{"--report"}, "expected the result that has the defect, since there is no " + options.out + " here"};
  }
  return {};
}

// The line above the entry: what the fingerprint stands for.
Result<std::string> CommentOf(const std::string& fingerprint, const std::string& result, Progress* progress) {
  const Result<report::Audit> audit = ReadResultShown(result, progress);
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
  Progress progress(options.progress);
  const Result<std::string> comment = CommentOf(entry.fingerprint, options.report.empty() ? options.out : options.report, &progress);
  if (!comment.ok()) return Refuse(comment.status());
  const std::string file = options.suppressions.empty() ? kSuppressionsFile : options.suppressions;
  status = AppendEntry(file, entry, *comment);
  if (!status.ok()) return Refuse(status);
  Say(file + ": accepted until " + entry.until + ": " + *comment);
  return Exit::Clean;
}

}  // namespace cuaudit::harness
