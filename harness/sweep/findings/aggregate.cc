// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/aggregate.h"

#include <algorithm>
#include <utility>

#include "harness/defect/blame.h"
#include "harness/ledger/rules.h"
#include "harness/process/shell.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {
namespace {

report::Finding ToFinding(const TrialFindingText& text) {
  report::Finding finding;
  finding.rule = text.rule;
  finding.title = Row(text.rule).title;
  finding.kind = KindName(text);
  finding.count = text.count;
  finding.bytes = text.bytes;
  finding.detail = text.detail;
  finding.acquired = text.acquired;
  finding.where = text.where->call;
  finding.where_stack = text.where->stack;
  finding.other = text.other;
  return finding;
}

// The reason why the clean cycle was not checked. The rows of the table have the order of the enumeration.
constexpr Reason ReasonOf(Recovery recovery) {
  const auto first = static_cast<std::size_t>(Reason::RecoveryNoMarks);
  return static_cast<Reason>(first + static_cast<std::size_t>(recovery) - static_cast<std::size_t>(Recovery::NoMarks));
}
static_assert(ReasonOf(Recovery::OlderContext) == Reason::RecoveryOlderContext);

// Merges equal groups into one entry that counts its trials.
class Collector {
 public:
  enum class Counts : std::uint8_t {
    Most,     // the largest number of objects that a trial shows
    OfFirst,  // that of the first trial, which the reproduce line replays
  };
  Collector(std::unordered_map<std::uint64_t, std::size_t>* index, FingerprintSet* fingerprints, std::vector<report::Finding>* findings,
            Counts counts)
      : index_(index), fingerprints_(fingerprints), findings_(findings), counts_(counts) {}

  // Counts one more trial that shows the entry, and answers its index. Most trials show what is known, so only a new entry is made: by
  // `make`, with its fingerprint.
  template <typename Make>
  std::size_t Add(std::uint64_t group, const TrialFindingText& text, const Make& make) {
    const auto [at, fresh] = index_->try_emplace(group, findings_->size());
    if (fresh) {
      report::Finding& made = findings_->emplace_back(make());
      made.fingerprint = fingerprints_->Claim(made.fingerprint);
      return at->second;
    }
    report::Finding& known = (*findings_)[at->second];
    ++known.trials;
    if (counts_ == Counts::OfFirst) return at->second;
    known.count = std::max(known.count, text.count);
    known.bytes = std::max(known.bytes, text.bytes);
    return at->second;
  }

 private:
  std::unordered_map<std::uint64_t, std::size_t>* index_;
  FingerprintSet* fingerprints_;
  std::vector<report::Finding>* findings_;
  Counts counts_;
};

// The faults of a trial as far as a key takes them: enough to know an entry by.
struct ShownFaults {
  const report::Fault* first = nullptr;
  std::vector<const report::Fault*> then;

  ShownFaults(const TrialResult& trial, FaultKinds* kinds) {
    if (!trial.faults.empty()) first = kinds->Of(trial.faults.front());
    for (std::size_t i = 1; i < trial.faults.size(); ++i) {
      if (const report::Fault* const fault = kinds->Of(trial.faults[i])) then.push_back(fault);
    }
  }
};

// The faults as a report shows them.
void ShowFaults(const TrialResult& trial, const Reproduction& reproduction, report::Finding* finding) {
  if (!trial.faults.empty()) finding->fault = FaultText(trial.faults.front(), trial.fault_site);
  for (std::size_t i = 1; i < trial.faults.size(); ++i) {
    const PlaceText site = i - 1 < trial.later_sites.size() ? trial.later_sites[i - 1] : PlaceText();
    if (std::optional<report::Fault> fault = FaultText(trial.faults[i], site)) finding->then.push_back(std::move(*fault));
  }
  finding->reproduce = ReproduceLine(reproduction, trial.faults);
}

std::uint64_t KeyOf(const TrialFindingText& text, const ShownFaults& shown, const TrialResult& trial) {
  std::uint64_t key = GroupKey(text);
  if (shown.first != nullptr) key = AddFault(key, *shown.first, trial.fault_key);
  for (std::size_t i = 0; i < shown.then.size() && i < trial.later_keys.size(); ++i) {
    key = AddFault(key, *shown.then[i], trial.later_keys[i]);
  }
  return key;
}

// A function that aborts is one cause in whatever line the same functions call it.
std::uint64_t AbortPlace(const report::Acquired& where, const std::optional<report::Blame>& blame) {
  std::uint64_t place = WayKey(where, blame);
  for (auto frame = where.stack.rbegin(); blame && frame != where.stack.rend() && !SameFunction(*frame, blame->function); ++frame)
    place = HashNumber(FunctionKey(*frame), place);
  return place;
}

// The place that tells one thing that is wrong from another, whichever fault showed it.
std::uint64_t PlaceOf(const TrialFindingText& text, const TrialResult& shows) {
  if (IsLoss(text.rule)) return HashText(text.meter, WayKey(text.acquired, text.blame));
  // The function that gives back too much is one cause, whoever calls it.
  if (text.rule == Rule::Deficit || text.rule == Rule::NullReleased) return WayKey(text.where, text.blame);
  if (text.rule == Rule::Abort) return AbortPlace(*text.where, text.blame);
  if (text.rule == Rule::Crash && !text.where->stack.empty()) return WayKey(text.where, std::nullopt);  // the same lines are one place
  // A function that fails and leaves a mutex locked is one cause, whichever of its calls failed.
  const auto failed = text.rule == Rule::MutexLocked ? BlameForCall(shows.fault_site->stack) : std::nullopt;
  if (failed) return HashNumber(FunctionKey(failed->function), WayKey(text.where, text.blame));
  if (text.where_key != 0) return HashNumber(OtherCallOf(text.rule).tells_apart ? text.other_key : 0, text.where_key);
  if (text.rule == Rule::BenignFailed || text.rule == Rule::BenignNeverFired) return HashText(text.detail);
  return text.acquired_key;
}

class Adder {
 public:
  Adder(const Reproduction& reproduction, Groups* groups, report::Run* run, const Fewer& fewer, std::span<const Benign> declared)
      : reproduction_(reproduction),
        run_(run),
        fewer_(fewer),
        declared_(declared),
        defects_(&groups->defects),
        findings_(&groups->findings, &groups->fingerprints, &run->findings, Collector::Counts::Most),
        notes_(&groups->notes, &groups->fingerprints, &run->notes, Collector::Counts::OfFirst) {}

  void FaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes) {
    for (const TrialFindingText& text : findings) FaultFree(text, &findings_);
    for (const TrialFindingText& text : notes) FaultFree(text, &notes_);
  }

  void Trial(const TrialResult& trial) {
    shown_.reset();
    for (const TrialFindingText& text : trial.findings) Add(text, trial);
    for (const TrialFindingText& text : trial.notes) {
      // What every run leaves was not caused by the fault of this trial.
      if (text.rule == Rule::ProcessLifetime) {
        FaultFree(text, &notes_);
      } else if (text.rule == Rule::HostLeft || text.rule == Rule::HostMisused) {
        HostNote(text, trial);
      } else {
        Note(text, trial);
      }
    }
    if (trial.stray) return;
    ++run_->totals.trials;
    ++run_->totals.verdicts[trial.verdict];
    if (trial.fired) ++run_->totals.fired;
    Recovered(trial);
    Counted& skipped = run_->totals.skipped;
    if (trial.ending.left_behind > trial.ending.survived) Count(Reason::LeftEnded, 1, &skipped);
    if (trial.ending.survived != 0) Count(Reason::LeftSurvived, 1, &skipped);
    if (trial.host_left_out != Reason::None) Count(trial.host_left_out, 1, &skipped);
    for (const Reason reason : trial.skipped) Count(reason, 1, &skipped);
    if (trial.verdict == Verdict::Absorbed) Became(Rule::Absorbed, trial);
    if (trial.verdict == Verdict::Benign) Became(Rule::BenignAbsorbed, trial);
    if (!trial.fired) NotFired(trial);
  }

 private:
  void FaultFree(const TrialFindingText& text, Collector* entries) {
    entries->Add(GroupKey(text), text, [&] {
      report::Finding finding = ToFinding(text);
      finding.reproduce = ReproduceLine(reproduction_, {});
      finding.fingerprint = Fingerprint(text);
      return finding;
    });
  }

  void Add(const TrialFindingText& text, const TrialResult& trial) {
    if (const TrialResult* const fewer = fewer_ ? fewer_(trial, text) : nullptr) {
      const TrialFindingText* const same = FindSame(*fewer, text);
      if (same != nullptr) return Add(*same, *fewer, ShownFaults(*fewer, &kinds_), trial.faults);
    }
    Add(text, trial, Shown(trial), {});
  }

  void Add(const TrialFindingText& text, const TrialResult& shows, const ShownFaults& shown, const std::vector<std::string>& shrunk_from) {
    const std::size_t entry = findings_.Add(KeyOf(text, shown, shows), text, [&] {
      report::Finding finding = ToFinding(text);
      ShowFaults(shows, reproduction_, &finding);
      finding.shrunk_from = shrunk_from;
      finding.fingerprint = Fingerprint(text, finding.fault, finding.then);
      return finding;
    });
    harness::Shown one{shows.index, entry, text.kind, PlaceOf(text, shows), text.blame, &*text.released};
    one.common_call = CommonCall(text);
    one.count = text.count;
    if ((one.faults = shows.faults.size()) != 0) one.first_fault = HashText(shows.faults.front());
    const auto at_first = std::count(shows.later_keys.begin(), shows.later_keys.end(), shows.fault_key);
    if (static_cast<std::size_t>(at_first) + 1 == shows.faults.size()) one.failed_at = shows.fault_key;
    if (const auto acquirer = BlameForCall(text.acquired->stack)) one.acquirer = FunctionKey(acquirer->function);
    defects_->Add(one, text.rule);
  }

  // Made on demand, because most trials have nothing to show.
  const ShownFaults& Shown(const TrialResult& trial) {
    if (!shown_.has_value()) shown_.emplace(trial, &kinds_);
    return *shown_;
  }

  // With several faults the last one identifies the note: one release refused while unwinding from a hundred faults is one note.
  void Note(const TrialFindingText& text, const TrialResult& trial) {
    const ShownFaults& shown = Shown(trial);
    const report::Fault* const last = shown.then.empty() ? shown.first : shown.then.back();
    const std::uint64_t key = shown.then.empty() || trial.later_keys.empty() ? trial.fault_key : trial.later_keys.back();
    notes_.Add(last == nullptr ? GroupKey(text) : AddFault(GroupKey(text), *last, key), text, [&] {
      report::Finding note = ToFinding(text);
      ShowFaults(trial, reproduction_, &note);
      note.fingerprint = Fingerprint(text, note.then.empty() ? note.fault : note.then.back());
      return note;
    });
  }

  // One note for each place, whatever the fault was. What a trial of the first faults alone shows is not repeated for longer lists.
  void HostNote(const TrialFindingText& text, const TrialResult& trial) {
    const std::uint64_t place = GroupKey(text);
    std::uint64_t faults = kHashSeed;
    for (const std::string& fault : trial.faults) {
      faults = HashText(fault, faults);
      if (host_noted_.contains({place, faults})) return;
    }
    host_noted_.emplace(place, faults);
    notes_.Add(HashText("after a fault", place), text, [&] {
      report::Finding note = ToFinding(text);
      ShowFaults(trial, reproduction_, &note);
      note.fingerprint = Fingerprint(text);
      return note;
    });
  }

  void Became(Rule rule, const TrialResult& trial) {
    TrialFindingText text;
    text.rule = rule;
    if (!trial.benign.empty() && trial.benign.front() < declared_.size()) text.detail = declared_[trial.benign.front()].text;
    Note(text, trial);
  }

  void Recovered(const TrialResult& trial) {
    if (trial.recovery == Recovery::Checked) ++run_->totals.recovered;
    if (trial.recovery > Recovery::Checked) Count(ReasonOf(trial.recovery), 1, &run_->totals.skipped);
  }

  void NotFired(const TrialResult& trial) {
    const MissedRow& missed = Row(trial.missed);
    if (missed.counted != Reason::None) Count(missed.counted, 1, &run_->totals.skipped);
    for (std::size_t i = 0; i < trial.faults.size(); ++i) {
      if (!trial.unfired.empty() && std::find(trial.unfired.begin(), trial.unfired.end(), i) == trial.unfired.end()) continue;
      const std::string& fault = trial.faults[i];
      TrialFindingText text;
      text.rule = Rule::NotExercised;
      text.apart = fault;
      const std::optional<report::Fault> of = FaultText(fault, trial.planned_site);
      notes_.Add(of ? AddFault(GroupKey(text), *of, 0) : GroupKey(text), text, [&] {
        report::Finding note = ToFinding(text);
        note.title = Filled(missed.note, std::to_string(trial.attempt));
        note.fault = of;
        note.reproduce = ReproduceLine(reproduction_, trial.faults);
        note.fingerprint = Fingerprint(text, of);
        return note;
      });
    }
  }

  const Reproduction& reproduction_;
  report::Run* run_;
  const Fewer& fewer_;
  std::span<const Benign> declared_;
  FaultKinds kinds_;
  DefectFinder* defects_;
  Collector findings_;
  Collector notes_;
  std::optional<ShownFaults> shown_;                              // of the trial being added
  std::set<std::pair<std::uint64_t, std::uint64_t>> host_noted_;  // place, and faults of a trial up to one of them
};

}  // namespace

std::string ReproduceLine(const Reproduction& reproduction, std::span<const std::string> faults) {
  if (reproduction.is_test) {
    std::string line = reproduction.lifecycle.empty() ? std::string() : "CUAUDIT_CASE=" + ShellQuote(reproduction.lifecycle) + " ";
    std::string texts;
    for (const std::string& fault : faults) texts.append(texts.empty() ? "" : ";").append(fault);
    if (!texts.empty()) line += "CUAUDIT_FAULT='" + texts + "' ";
    return line + reproduction.program;
  }
  std::string line = faults.empty() ? reproduction.run : reproduction.replay;
  for (const std::string& fault : faults) line += " --fault '" + fault + "'";
  return line + " -- " + reproduction.program;
}

std::optional<report::Fault> FaultText(const std::string& text, const report::Acquired& site) {
  const std::optional<faults::Fault> parsed = ParsedFault(text);
  if (!parsed) return std::nullopt;
  report::Fault fault;
  fault.text = TextOf(*parsed);
  const faults::FaultWords words = faults::WordsOf(fault.text);
  fault.call = words.call;
  fault.occurrence = parsed->occurrence;
  fault.how = words.how;
  fault.code = words.code;
  fault.stack = site.stack;
  return fault;
}

const report::Fault* FaultKinds::Of(const std::string& text) {
  const std::size_t hash = std::min(text.find('#'), text.size());
  const std::size_t rest = std::min(text.find_first_not_of("+0123456789", hash + 1), text.size());
  kind_.assign(text, 0, hash).append(text, rest);
  const auto known = known_.find(kind_);
  const auto& fault = known != known_.end() ? known->second : known_.emplace(kind_, FaultText(text, {})).first->second;
  return fault ? &*fault : nullptr;
}

void AddTrials(std::span<const TrialResult* const> trials, const Reproduction& reproduction, std::span<const Benign> declared,
               Groups* groups, report::Run* run, const Fewer& fewer) {
  Adder adder(reproduction, groups, run, fewer, declared);
  for (const TrialResult* const trial : trials) adder.Trial(*trial);
}

// On a GPU every kernel runs. Here, a program that polls for the result of a kernel without a host kernel never ends.
void ExplainHang(const faults::JournalView& journal, report::Run* run) {
  const std::optional<report::Kernels> kernels = KernelsOf(journal);
  if (!kernels || kernels->idle == 0) return;
  for (report::Finding& finding : run->findings) {
    if (finding.rule == Rule::Hang && !finding.fault) words::Add({Detail::MayAwaitKernel}, &finding.title);
  }
}

void AddFaultFree(const std::vector<TrialFindingText>& findings, const std::vector<TrialFindingText>& notes,
                  const Reproduction& reproduction, Groups* groups, report::Run* run) {
  Adder(reproduction, groups, run, {}, {}).FaultFree(findings, notes);
}

void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, Groups* groups, report::Run* run,
                  const JudgeOptions& options) {
  const Judgement judgement = Judge(Evidence(), run_seen.evidence(), false, options);
  std::vector<TrialFindingText> findings = Texts(judgement.findings, run_seen.journal, sites);
  for (TrialFindingText& text : findings) {
    // What a thread that still ran has acquired is told apart from what others have acquired at that place.
    if (text.rule == Rule::LeftAtExit && !text.detail.empty()) text.apart = std::string(KindName(text)) + " " + text.detail;
  }
  AddFaultFree(findings, Texts(judgement.notes, run_seen.journal, sites), reproduction, groups, run);
  ExplainHang(run_seen.journal, run);
}

std::uint64_t GroupOf(const TrialResult& trial, const TrialFindingText& finding, FaultKinds* kinds) {
  return KeyOf(finding, ShownFaults(trial, kinds), trial);
}

}  // namespace cuaudit::harness
