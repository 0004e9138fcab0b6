// SPDX-License-Identifier: MIT
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/options/report_files.h"
#include "harness/process/process.h"
#include "harness/project/project.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr const char* kState = ".cuaudit";  // folder in the result directory: unfinished work, and what is known of finished cases

// A signal that arrived while no program ran; 0: none.
int PendingSignal() {
  sigset_t asked;
  sigemptyset(&asked);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&asked, number);
  const timespec at_once = {};
  const int number = sigtimedwait(&asked, nullptr, &at_once);
  return number > 0 ? number : 0;
}

std::string SignalName(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

class Audit {
 public:
  Audit(const Options& options, std::vector<ProjectCase> cases, std::vector<bool> selected)
      : options_(options), cases_(std::move(cases)), selected_(std::move(selected)), seen_(cases_.size()) {}

  Exit Run() {
    Status opened = Open();
    if (!opened.ok()) return Refuse(opened);
    const SignalsTaken signals;
    for (std::size_t i = 0; i < cases_.size(); ++i) TakeFinished(i);
    Status written = WriteIndex("the audit did not come to it");
    for (const std::size_t i : Order()) {
      if (!written.ok() || signal_ != 0) break;
      if (!seen_[i].line.empty()) {
        kept_ += 1;
        written = Tell(i);
        continue;
      }
      signal_ = PendingSignal();
      if (signal_ == 0) written = CarryOut(i);
    }
    if (written.ok() && signal_ != 0) written = WriteIndex("interrupted by " + SignalName(signal_) + " before its turn");
    if (!written.ok()) {
      Say(written.message());
      return written.exit();
    }
    return Sum();
  }

 private:
  std::string State(const std::string& name) const { return options_.out + "/" + kState + "/" + name; }
  std::string DoneFile(std::size_t i) const { return State(cases_[i].name + ".done"); }

  Status Open() {
    std::error_code error;
    std::filesystem::create_directories(options_.out, error);
    if (error) return {Exit::Usage, "--out: " + options_.out + ": cannot create the directory: " + error.message()};
    Result<WorkDir> state = WorkDir::Open(options_.out + "/" + kState);
    if (!state.ok()) return {state.status().exit(), "--out: " + state.status().message()};
    state_.emplace(std::move(*state));
    return CheckOutput(options_.out + "/" + report::kAuditFile, "--out");
  }

  // Heavy cases first, else in the order of the file.
  std::vector<std::size_t> Order() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (selected_[i]) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cases_[a].weight > cases_[b].weight; });
    return order;
  }

  // A case that nobody asks for keeps its reports as well, as long as they hold.
  void TakeFinished(std::size_t i) {
    CaseSeen& seen = seen_[i];
    seen.row.name = cases_[i].name;
    seen.row.tags = cases_[i].tags;
    digests_.push_back(ConfigDigest(cases_[i], std::string(ToolVersion())));
    const std::optional<FinishedCase> finished = ReadFinished(DoneFile(i), digests_.back(), options_.out);
    if (!finished.has_value()) return;
    seen.row.reports = finished->reports;
    seen.row.trials = finished->trials;
    seen.line = finished->line;
    seen.defects = finished->defects;
    seen.exit = finished->exit;
  }

  // Unfinished work of the same case with other settings is of no use.
  Status PrepareWork(std::size_t i) {
    const std::string work = State(cases_[i].name);
    const std::string begun = work + "/settings";
    const Result<std::string> before = ReadFile(begun);
    std::error_code error;
    if (!before.ok() || *before != digests_[i]) std::filesystem::remove_all(work, error);
    std::filesystem::remove(DoneFile(i), error);
    std::filesystem::create_directories(work, error);
    if (error) return {Exit::Failure, work + ": cannot create the directory: " + error.message()};
    return WriteFile(begun, digests_[i], Exit::Failure);
  }

  Status CarryOut(std::size_t i) {
    Status prepared = PrepareWork(i);
    if (!prepared.ok()) return prepared;
    CaseSeen seen = CarryOutCase(cases_[i], {options_.out, State(cases_[i].name)}, options_.tool);
    signal_ = seen.signal;
    if (signal_ != 0) seen.row.not_run = "interrupted by " + SignalName(signal_);
    seen_[i] = std::move(seen);
    Status written = WriteIndex("the audit did not come to it");
    if (!written.ok()) return written;
    if (signal_ == 0 && seen_[i].row.not_run.empty() && seen_[i].exit != Exit::Failure) written = Finish(i);
    return written.ok() ? Tell(i) : written;
  }

  Status Finish(std::size_t i) {
    const CaseSeen& seen = seen_[i];
    FinishedCase finished;
    finished.digest = digests_[i];
    finished.reports = seen.row.reports;
    finished.trials = seen.row.trials;
    finished.line = seen.line;
    finished.defects = seen.defects;
    finished.exit = seen.exit;
    AddModules(seen.modules, &finished);
    Status written = WriteFinished(DoneFile(i), finished);
    if (!written.ok()) return written;
    std::error_code error;
    std::filesystem::remove_all(State(cases_[i].name), error);
    return {};
  }

  Status Tell(std::size_t i) const { return WriteAll(STDOUT_FILENO, report::ForTerminal(seen_[i].line) + "\n", "stdout"); }

  // `why` is said of selected cases that have no result yet.
  Status WriteIndex(const std::string& why) const {
    report::AuditIndex index;
    index.generated = Timestamp();
    index.tool_version = std::string(ToolVersion());
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      report::IndexedCase row = seen_[i].row;
      if (row.reports.empty() && row.not_run.empty()) row.not_run = selected_[i] ? why : "not selected";
      index.cases.push_back(std::move(row));
    }
    std::ostringstream text;
    if (!report::WriteAuditIndex(index, text)) return {Exit::Failure, "the index could not be written"};
    return WriteFile(options_.out + "/" + report::kAuditFile, text.str(), Exit::Failure);
  }

  Exit Sum() const {
    Exit exit = Exit::Clean;
    std::size_t asked = 0;
    std::size_t with_defects = 0;
    std::size_t clean = 0;
    std::uint64_t defects = 0;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (!selected_[i]) continue;
      ++asked;
      exit = Worse(exit, seen_[i].exit);
      defects += seen_[i].defects;
      with_defects += seen_[i].exit == Exit::Findings ? 1 : 0;
      clean += seen_[i].exit == Exit::Clean && !seen_[i].line.empty() && seen_[i].signal == 0 ? 1 : 0;
    }
    const auto of = [](std::uint64_t count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); };
    std::string line =
        of(asked, "case") + ": " + of(defects, "defect") + " in " + std::to_string(with_defects) + ", " + std::to_string(clean) + " clean";
    if (asked > with_defects + clean) line += ", " + std::to_string(asked - with_defects - clean) + " without a result";
    if (signal_ != 0) line += "; interrupted by " + SignalName(signal_) + ", the same command goes on from here";
    if (kept_ != 0) line += "; " + std::to_string(kept_) + " kept from before";
    const Status told = WriteAll(STDOUT_FILENO, line + "; results in " + report::ForTerminal(options_.out) + "\n", "stdout");
    if (!told.ok()) return Refuse(told);
    return signal_ != 0 ? static_cast<Exit>(kSignalled + signal_) : exit;
  }

  const Options& options_;
  const std::vector<ProjectCase> cases_;
  const std::vector<bool> selected_;
  std::vector<CaseSeen> seen_;
  std::vector<std::string> digests_;
  std::optional<WorkDir> state_;  // holds the lock on the result directory
  std::size_t kept_ = 0;
  int signal_ = 0;
};

// The cases with the settings of CUAUDIT_AUDIT and of the command line over those of the files.
Result<std::vector<ProjectCase>> ReadCases(const Options& options) {
  Result<std::vector<ProjectCase>> cases = ReadProject(options.config_file);
  if (!cases.ok()) return cases;
  const Result<Options> variable = ParseAuditVariable();
  if (!variable.ok()) return variable.status();
  for (ProjectCase& one : *cases) {
    ApplyGiven(*variable, kAuditVariable, &one);
    ApplyGiven(options, "command line", &one);
    Status usable = CheckCase(one);
    if (usable.ok()) usable = AtItsPlace(one, WorldText(one.options).status());
    if (!usable.ok()) return usable;
  }
  return cases;
}

}  // namespace

Exit AuditCommand(const Options& options) {
  Result<std::vector<ProjectCase>> cases = ReadCases(options);
  if (!cases.ok()) return Refuse(cases.status());
  Result<std::vector<bool>> selected = SelectCases(*cases, options.operands, options.tag);
  if (!selected.ok()) return Refuse(selected.status());
  if (options.show_config) {
    std::string page;
    for (std::size_t i = 0; i < cases->size(); ++i) {
      if ((*selected)[i]) page += (page.empty() ? "" : "\n") + ShowCase((*cases)[i]);
    }
    return Print(page);
  }
  return Audit(options, std::move(*cases), std::move(*selected)).Run();
}

}  // namespace cuaudit::harness
