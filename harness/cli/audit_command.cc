// SPDX-License-Identifier: MIT
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cli/commands.h"
#include "harness/cli/comparison.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/session.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_options.h"
#include "harness/process/process.h"
#include "harness/process/program.h"
#include "harness/project/project.h"
#include "reports/escape.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

constexpr const char* kState = ".cuaudit";  // folder in the result directory: unfinished work, and what is known of finished cases

// A signal that arrived while no program ran; 0: none.
int PendingSignal() {
  const sigset_t asked = EndingSignals();
  const timespec at_once = {};
  const int number = sigtimedwait(&asked, nullptr, &at_once);
  return number > 0 ? number : 0;
}

// What a report is made of beside the settings of its case. The day is no part of it: a finished report is looked at again when a
// suppression in it has expired (ExpireKept). A driver that cannot be chosen is an error when the case begins.
std::string Surroundings(const ProjectCase& one) {
  std::string text(ToolVersion());
  const Result<Machine> machine = LookAround(one.options.real_driver);
  const Result<ChosenDriver> chosen = machine.ok() ? ChooseDriver(one.options.driver, *machine) : machine.status();
  if (chosen.ok()) {
    text += " " + std::string(Name(chosen->driver));
    if (chosen->driver == DriverKind::Genuine) text += " " + machine->genuine_driver;
  }
  return text;
}

class Audit {
 public:
  using Clock = Progress::Clock;

  Audit(const Options& options, std::optional<std::chrono::seconds> budget, std::optional<AuditBase> base, std::vector<ProjectCase> cases,
        std::vector<bool> selected)
      : options_(options),
        base_(std::move(base)),
        cases_(std::move(cases)),
        selected_(std::move(selected)),
        seen_(cases_.size()),
        spent_(cases_.size()),
        progress_(options.progress) {
    if (budget.has_value()) until_ = Clock::now() + *budget;
  }

  Exit Run() {
    Status opened = Open();
    if (!opened.ok()) return Refuse(opened);
    const SignalsTaken signals;
    Result<std::vector<std::string>> inherited = CurrentEnvironment();
    if (!inherited.ok()) return Refuse(inherited.status());
    inherited_ = ThatMatter(std::move(*inherited));
    for (std::size_t i = 0; i < cases_.size(); ++i) TakeFinished(i);
    Status written = WriteIndex({{Detail::AuditNotYet}});
    std::vector<std::size_t> left;
    for (const std::size_t i : Order()) {
      if (seen_[i].result.line.empty()) {
        left.push_back(i);
        continue;
      }
      ++kept_;
      if (written.ok()) written = Tell(i);
    }
    // With a budget what is new in any case comes first, then the first faults of all cases, their cycles, and last second faults.
    if (!until_.has_value()) {
      if (written.ok()) written = CarryOutAll(left, Step::Whole);
    } else {
      for (const Step step : {Step::NewPlaces, Step::FirstFaults, Step::Cycles}) {
        if (written.ok()) written = CarryOutAll(left, step);
      }
      // What the last cases leave of the time is for those that their part has cut.
      const auto goes_on = [&] {
        const auto is_cut = [this](std::size_t i) { return HasWork(i, Step::SecondFaults); };
        return written.ok() && signal_ == 0 && Clock::now() < *until_ && std::any_of(left.begin(), left.end(), is_cut);
      };
      while (goes_on()) written = CarryOutAll(left, Step::SecondFaults);
      if (written.ok()) written = TellRest(left);
    }
    if (written.ok() && signal_ != 0)
      written = WriteIndex({{Detail::InterruptedBy, {words::SignalName(signal_)}}, {Detail::BeforeItsTurn}});
    if (!written.ok()) {
      Say(written.message());
      return written.exit();
    }
    return Sum();
  }

 private:
  enum class Step : std::uint8_t { Whole, NewPlaces, FirstFaults, Cycles, SecondFaults };

  static double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }
  std::string State(const std::string& name) const { return options_.out + "/" + kState + "/" + name; }
  // A case may have any name, so that each sort of files has a folder of its own.
  std::string WorkOf(std::size_t i) const { return State("work/" + cases_[i].name); }
  std::string DoneFile(std::size_t i) const { return State("done/" + cases_[i].name); }

  Status Open() {
    std::error_code error;
    std::filesystem::create_directories(options_.out, error);
    if (error) return {Exit::Usage, OptionFlag{"--out"}, options_.out + ": cannot create the directory: " + error.message()};
    Result<WorkDir> state = WorkDir::Open(options_.out + "/" + kState);
    if (!state.ok()) return {state.status().exit(), OptionFlag{"--out"}, state.status().message()};
    state_.emplace(std::move(*state));
    for (const char* const folder : {"work", "done"}) {
      std::filesystem::create_directories(State(folder), error);
      if (error) return {Exit::Usage, OptionFlag{"--out"}, State(folder) + ": cannot create the directory: " + error.message()};
    }
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

  bool HasWork(std::size_t i, Step step) const {
    const CaseSeen& seen = seen_[i];
    if (seen.complete || (step == Step::NewPlaces && !base_.has_value())) return false;
    if (!seen.sweep.has_value()) return step == Step::Whole || step == Step::NewPlaces || step == Step::FirstFaults;
    if (seen.sweep->refused) return false;
    if (step == Step::FirstFaults) return seen.sweep->cut;
    if (step == Step::Cycles) return !seen.cycles.has_value() && !CountsOf(cases_[i]).empty();
    return step == Step::SecondFaults && seen.sweep->cut;
  }

  // Of the time that is left each case may take an equal part for its faults; what it does not need is for those behind it.
  Status CarryOutAll(const std::vector<std::size_t>& which, Step step) {
    std::vector<std::size_t> todo = which;
    std::erase_if(todo, [&](std::size_t i) { return !HasWork(i, step); });
    for (std::size_t at = 0; at < todo.size() && signal_ == 0; ++at) {
      signal_ = PendingSignal();
      if (signal_ != 0) break;
      Turn turn;
      turn.sweep = step != Step::Cycles;
      turn.cycles = step == Step::Whole || step == Step::Cycles;
      turn.spend.new_places_only = step == Step::NewPlaces;
      turn.spend.first_faults_only = step == Step::FirstFaults;
      if (until_.has_value()) {
        const Clock::time_point now = Clock::now();
        if (now >= *until_ && step != Step::Cycles) return {};  // a case itself says that there is no time for its cycles
        turn.spend.until = now + (*until_ - now) / static_cast<Clock::rep>(todo.size() - at);
        turn.cycles_until = until_;
      }
      Status written = CarryOut(todo[at], at, todo.size(), turn);
      if (!written.ok()) return written;
    }
    return {};
  }

  // Tells the cases that the budget has cut, and those that it had no time for.
  Status TellRest(const std::vector<std::size_t>& which) {
    for (const std::size_t i : which) {
      CaseSeen& seen = seen_[i];
      if (seen.result.line.empty()) {
        if (signal_ != 0) continue;
        seen.not_run = Words({Detail::BudgetSpent});
        seen.result.line = cases_[i].name + ": not run: " + seen.not_run;
        seen.result.exit = Exit::Environment;
      }
      Status told = Tell(i);
      if (!told.ok()) return told;
    }
    return WriteIndex({{Detail::AuditNotYet}});
  }

  // A case that nobody asks for keeps its reports as well, as long as they hold.
  void TakeFinished(std::size_t i) {
    CaseSeen& seen = seen_[i];
    seen.suppressions = cases_[i].options.suppressions;
    digests_.push_back(ConfigDigest(cases_[i], Surroundings(cases_[i]), inherited_));
    if (options_.fresh && selected_[i]) return;
    std::optional<FinishedCase> finished = ReadFinished(DoneFile(i), digests_.back(), options_.out);
    if (!finished.has_value() || (!seen.suppressions.empty() && !ExpireKept(cases_[i].name, options_.out, &*finished))) return;
    seen.result = std::move(*finished);
    seen.complete = true;
  }

  // Unfinished work of the same case with other settings is of no use.
  Status PrepareWork(std::size_t i) {
    const std::string work = WorkOf(i);
    const std::string begun = work + "/settings";
    const Result<std::string> before = ReadFile(begun);
    std::error_code error;
    const bool anew = options_.fresh && !begun_.contains(i);
    begun_.insert(i);
    if (anew || !before.ok() || *before != digests_[i]) std::filesystem::remove_all(work, error);
    std::filesystem::remove(DoneFile(i), error);
    std::filesystem::create_directories(work, error);
    if (error) return {Exit::Failure, work + ": cannot create the directory: " + error.message()};
    return WriteFile(begun, digests_[i], Exit::Failure);
  }

  Status CarryOut(std::size_t i, std::size_t at, std::size_t of, const Turn& turn) {
    Status prepared = PrepareWork(i);
    if (!prepared.ok()) return prepared;
    const Clock::time_point begun = Clock::now();
    const std::string number = std::to_string(at + 1) + " of " + std::to_string(of) + ": " + cases_[i].name;
    if (FormOf(options_.progress, false) == ProgressForm::Plain) Say("case " + number);
    progress_.Begin("trials", number, slowest_.empty() ? "" : "slowest: " + slowest_ + ", " + RoughTime(Seconds(longest_)));
    const CasePlaces places = {options_.out, WorkOf(i)};
    std::optional<TriedBefore> before;
    if (base_.has_value()) before = base_->TriedIn(cases_[i].name);
    Turn mine = turn;
    mine.before = before.has_value() ? &*before : nullptr;
    seen_[i] = CarryOutCase(cases_[i], places, options_.tool, mine, seen_[i], &progress_);
    CaseSeen& seen = seen_[i];
    spent_[i] += Clock::now() - begun;
    if (spent_[i] > longest_) {
      longest_ = spent_[i];
      slowest_ = cases_[i].name;
    }
    signal_ = seen.signal;
    if (signal_ != 0) seen.not_run = Words({Detail::InterruptedBy, {words::SignalName(signal_)}});
    Status written = WriteIndex({{Detail::AuditNotYet}});
    if (!written.ok()) return written;
    if (seen.complete) written = Finish(i);
    // What the budget has cut so far may go on, and is told at the end.
    return written.ok() && (!seen.cut || signal_ != 0) ? Tell(i) : written;
  }

  Status Finish(std::size_t i) {
    FinishedCase finished = seen_[i].result;
    finished.digest = digests_[i];
    AddModules(seen_[i].modules, &finished);
    Status written = WriteFinished(DoneFile(i), finished);
    if (!written.ok()) return written;
    std::error_code error;
    std::filesystem::remove_all(WorkOf(i), error);
    return {};
  }

  // Each case is told once.
  Status Tell(std::size_t i) {
    if (!told_.insert(i).second) return {};
    return WriteAll(STDOUT_FILENO, report::ForTerminal(seen_[i].result.line) + "\n", "stdout");
  }

  // `why` is said of selected cases that have no result yet.
  Status WriteIndex(const Details& why) const {
    report::AuditIndex index;
    std::error_code error;
    const std::filesystem::path project = std::filesystem::absolute(options_.config_file, error);
    if (!error && std::filesystem::is_regular_file(project, error)) index.project = project.string();
    index.unused_suppressions = UnusedSuppressions(seen_);
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      report::IndexedCase row = RowOf(seen_[i], cases_[i].name, cases_[i].tags);
      if (row.reports.empty() && row.not_run.empty()) row.not_run = selected_[i] ? Words(why) : Words({Detail::NotSelected});
      index.cases.push_back(std::move(row));
    }
    return harness::WriteIndex(std::move(index), options_.out);
  }

  Exit Sum() const {
    AuditSum sum = SumOf(selected_, seen_);
    if (signal_ != 0) sum.line += "; interrupted by " + words::SignalName(signal_) + ", the same command goes on from here";
    if (kept_ != 0) {
      sum.line += "; " + std::to_string(kept_) + " kept from before";
      Say("kept: settings, program, files named in its arguments, libraries that call the driver, environment and inputs are as they were; "
          "no other file that a program opens was compared (inputs in cuaudit.toml, or --fresh)");
    }
    for (const std::string& place : UnusedSuppressions(seen_)) Say("warning: " + place + ": the suppression fits no defect");
    const Status told = WriteAll(STDOUT_FILENO, sum.line + "; results in " + report::ForTerminal(options_.out) + "\n", "stdout");
    if (!told.ok()) return Refuse(told);
    if (base_.has_value()) sum.exit = base_->Compare(options_.out, sum.exit);
    return signal_ != 0 ? static_cast<Exit>(kSignalled + signal_) : sum.exit;
  }

  const Options& options_;
  const std::optional<AuditBase> base_;
  const std::vector<ProjectCase> cases_;
  const std::vector<bool> selected_;
  std::vector<CaseSeen> seen_;
  std::vector<std::string> digests_;
  std::vector<std::string> inherited_;  // variables that the programs inherit
  std::set<std::size_t> begun_;         // by this command
  std::set<std::size_t> told_;
  std::vector<Clock::duration> spent_;
  Progress progress_;
  std::optional<Clock::time_point> until_;  // end of the budget
  Clock::duration longest_ = {};
  std::string slowest_;           // the case that has taken longest
  std::optional<WorkDir> state_;  // holds the lock on the result directory
  std::size_t kept_ = 0;
  int signal_ = 0;
};

// A file of suppressions that cannot be read is told before anything runs.
Status CheckSuppressions(const std::vector<ProjectCase>& cases, const std::vector<bool>& selected) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string& file = cases[i].options.suppressions;
    if (!selected[i] || !seen.insert(file).second) continue;
    const Result<Suppressions> read = Suppressions::Given(file);
    if (!read.ok()) return AtItsPlace(cases[i], read.status());
  }
  return {};
}

}  // namespace

Exit AuditCommand(const Options& options) {
  const Result<std::optional<std::chrono::seconds>> budget = ParseBudget(options.budget);
  if (!budget.ok()) return Refuse(budget.status());
  Result<std::optional<AuditBase>> base = AuditBase::Read(options);
  if (!base.ok()) return Refuse(base.status());
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
  const Status readable = CheckSuppressions(*cases, *selected);
  if (!readable.ok()) return Refuse(readable);
  return Audit(options, *budget, std::move(*base), std::move(*cases), std::move(*selected)).Run();
}

}  // namespace cuaudit::harness
