// SPDX-License-Identifier: MIT
#include "harness/sweep/report_rows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "faults/driver/result.h"
#include "faults/plan/fault.h"
#include "harness/process/files.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"
#include "reports/audit.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kMostCalls = 10000;
constexpr std::size_t kMostTrials = 20000;

// The innermost frame with a source line, else with a name, else the innermost.
std::optional<report::Frame> Innermost(const std::vector<report::Frame>& stack) {
  if (stack.empty()) return std::nullopt;
  const auto lined = std::find_if(stack.begin(), stack.end(), [](const report::Frame& one) { return one.line > 0; });
  if (lined != stack.end()) return *lined;
  const auto named = std::find_if(stack.begin(), stack.end(), [](const report::Frame& one) { return !one.function.empty(); });
  return named != stack.end() ? *named : stack.front();
}

class Teller {
 public:
  explicit Teller(report::Sequence* sequence) : sequence_(sequence) {}

  std::uint32_t Place(const report::Acquired& place) {
    std::optional<report::Frame> at = Innermost(place.stack);
    const report::Frame key = at.value_or(report::Frame());
    const auto [known, fresh] =
        known_.try_emplace(std::tuple(place.call, key.module, key.function, key.file, key.line, key.offset), sequence_->places.size());
    if (fresh) sequence_->places.push_back({place.call, std::move(at)});
    return static_cast<std::uint32_t>(known->second);
  }

  // Trials name the same text again and again.
  std::uint32_t Place(const PlaceText& place) {
    const auto known = shared_.find(&*place);
    return known != shared_.end() ? known->second : shared_.emplace(&*place, Place(*place)).first->second;
  }

 private:
  report::Sequence* sequence_;
  std::map<std::tuple<std::string, std::string, std::string, std::string, int, std::uint64_t>, std::size_t> known_;
  std::map<const report::Acquired*, std::uint32_t> shared_;
};

void TellMade(const Rehearsed& rehearsal, const FaultFreeCalls& calls, SiteTexts* sites, Teller* teller, report::Sequence* sequence) {
  const Evidence& run = rehearsal.run();
  for (const std::uint32_t index : calls.records()) {
    if (sequence->calls.size() == kMostCalls) break;
    const faults::Record& record = run.record(index);
    const std::uint32_t place = teller->Place(sites->Text(*run.journal, SiteOf(record)));
    sequence->calls.push_back(
        {place, record.phase == faults::Phase::Any ? std::string() : std::string(faults::Name(record.phase)), record.cycle});
  }
  sequence->more = calls.records().size() - sequence->calls.size();
}

report::TriedCall ToTried(const TrialResult& trial, const FaultFreeCalls& calls, std::size_t known_calls, Teller* teller) {
  report::TriedCall tried;
  tried.faults = trial.faults;
  tried.verdict = trial.verdict;
  if (!trial.faults.empty()) tried.call = calls.Hit(trial.faults.front());
  if (tried.call && *tried.call >= known_calls) tried.call.reset();
  if (!tried.call && !trial.fault_site->call.empty()) tried.at = teller->Place(trial.fault_site);
  for (const PlaceText& place : trial.later_sites) {
    tried.then.push_back(place->call.empty() ? std::nullopt : std::optional<std::uint32_t>(teller->Place(place)));
  }
  return tried;
}

report::Unwinding ToUnwinding(const TrialResult& trial, std::size_t known_calls, Teller* teller) {
  report::Unwinding unwinding;
  unwinding.faults = trial.faults;
  unwinding.more = trial.after->more;
  for (const AfterFault::Step& step : trial.after->steps) {
    const auto result = static_cast<CUresult>(step.result);
    unwinding.steps.push_back(
        {teller->Place(step.place), result == CUDA_SUCCESS ? std::string() : std::string(driver::ShortResultName(result))});
    if (step.result != 0 && unwinding.steps.back().result.empty()) unwinding.steps.back().result = std::to_string(step.result);
  }
  const auto known = [known_calls](std::uint32_t call) { return call < known_calls; };
  std::copy_if(trial.after->held.begin(), trial.after->held.end(), std::back_inserter(unwinding.held), known);
  std::copy_if(trial.after->missing.begin(), trial.after->missing.end(), std::back_inserter(unwinding.missing), known);
  return unwinding;
}

// The first trial that shows the defect and went on after its fault; best the one whose faults the report names.
const TrialResult* Shows(const report::Run& run, const report::Defect& defect, const std::map<std::size_t, TrialResult>& results) {
  const report::Finding& root = run.findings[defect.members.front().findings.front()];
  std::vector<std::string> faults;
  if (root.fault) faults.push_back(root.fault->text);
  for (const report::Fault& fault : root.then) faults.push_back(fault.text);
  const TrialResult* first = nullptr;
  for (const std::uint64_t number : defect.shown_by) {
    const auto found = results.find(number);
    if (found == results.end() || found->second.after == nullptr) continue;
    if (found->second.faults == faults) return &found->second;
    if (first == nullptr) first = &found->second;
  }
  return first;
}

void AddDifference(const TrialFindingText& finding, std::vector<report::Difference>* to) {
  const std::string_view kind = KindName(finding);
  const auto same =
      std::find_if(to->begin(), to->end(), [&](const report::Difference& one) { return one.rule == finding.rule && one.kind == kind; });
  report::Difference& one = same == to->end() ? to->emplace_back() : *same;
  one.rule = finding.rule;
  one.kind = kind;
  one.count = report::Plus(one.count, finding.count);
  one.bytes = report::Plus(one.bytes, finding.bytes);
}

bool IsDeath(const TrialResult& trial) { return trial.ending.timed_out || trial.ending.signal != 0; }

}  // namespace

void TellCalls(const Rehearsed& rehearsal, const FaultFreeCalls& calls, const std::map<std::size_t, TrialResult>& results,
               const std::function<bool(std::size_t)>& only_shrinks, SiteTexts* sites, report::Run* run) {
  report::Sequence& sequence = run->sequence.emplace();
  Teller teller(&sequence);
  TellMade(rehearsal, calls, sites, &teller, &sequence);
  std::map<std::uint64_t, std::vector<std::uint32_t>> shows;
  for (std::size_t i = 0; i < run->defects.size(); ++i) {
    for (const std::uint64_t trial : run->defects[i].shown_by) shows[trial].push_back(static_cast<std::uint32_t>(i));
  }
  for (const auto& [index, trial] : results) {
    if (only_shrinks(index)) continue;
    if (sequence.trials.size() == kMostTrials) {
      ++sequence.more_trials;
      continue;
    }
    report::TriedCall& tried = sequence.trials.emplace_back(ToTried(trial, calls, sequence.calls.size(), &teller));
    if (const auto found = shows.find(index); found != shows.end()) tried.defects = found->second;
  }
  for (report::Defect& defect : run->defects) {
    if (const TrialResult* const trial = Shows(*run, defect, results)) {
      defect.unwinding = ToUnwinding(*trial, sequence.calls.size(), &teller);
    }
  }
}

report::TrialRow RowOf(const TrialResult& trial) {
  report::TrialRow row;
  row.number = trial.index;
  row.faults = trial.faults;
  row.fired = trial.fired;
  row.verdict = trial.verdict;
  row.missed = trial.missed;
  row.attempts = trial.attempt;
  for (const TrialFindingText& finding : trial.findings) AddDifference(finding, &row.differs);
  if (trial.isolation == Isolation::InProcess && !IsDeath(trial)) return row;
  row.end = report::TrialEnd{trial.ending.exit_status, {}, trial.ending.timed_out};
  if (trial.ending.signal != 0) row.end->signal = words::SignalName(trial.ending.signal);
  return row;
}

Status WriteTrialRows(const std::vector<report::TrialRow>& trials, const report::Run& run, const std::string& file) {
  std::ostringstream text;
  if (!report::WriteTrials(run, trials, text)) return {Exit::Failure, OptionFlag{"--trials"}, file + ": the lines could not be written"};
  const Status written = WriteFile(file, text.view(), Exit::Failure);
  return written.ok() ? written : Status(written.exit(), OptionFlag{"--trials"}, written.message());
}

}  // namespace cuaudit::harness
