// SPDX-License-Identifier: MIT
#include "harness/sweep/run/trial.h"

#include <map>
#include <set>
#include <utility>

#include "faults/driver/effects.h"
#include "harness/defect/blame.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {
namespace {

// Indices of the faults that never fired.
std::vector<std::size_t> Unfired(std::size_t faults, bool any_fired, const faults::JournalHeader& header) {
  std::vector<std::size_t> unfired;
  for (std::size_t i = 0; i < faults; ++i) {
    const bool counted = faults > 1 && i < faults::kMaxFaults;
    if (!any_fired || (counted && header.fired[i].load() == 0)) unfired.push_back(i);
  }
  return unfired;
}

bool LostStack(const Observation& trial, const Site& site) { return site.stack == 0 && (trial.flags() & faults::kStacksDropped) != 0; }

// True when some fault hit another place than planned.
bool HitElsewhere(std::span<const std::uint64_t> sites, const Observation& trial) {
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const faults::Record* const hit = trial.evidence().hit(i);
    if (sites[i] == 0 || hit == nullptr || LostStack(trial, SiteOf(*hit))) continue;
    if (SiteKey(trial.journal, SiteOf(*hit)) != sites[i]) return true;
  }
  return false;
}

bool SawLess(const Evidence& rehearsal, const Observation& trial) { return rehearsal.saw_host() && trial.ledger.host_unseen != 0; }

// True when host findings were asked for (--host). A trial whose host was not seen is then no pass.
bool IsHostJudged(const Evidence& rehearsal) {
  return (rehearsal.flags() & faults::kHostProbesActive) != 0 && (rehearsal.flags() & faults::kHeapLeftOut) == 0;
}

// For a rehearsal whose host was watched: why less of the trial's host was watched.
Reason WhyHostLeftOut(const Evidence& rehearsal, const Observation& trial) {
  if (!rehearsal.saw_host()) return Reason::None;
  if (SawLess(rehearsal, trial)) return Reason::HostNotLoaded;
  if ((trial.flags() & faults::kHostStopped) != 0) return Reason::HostStopped;
  const bool disputed = (trial.flags() & ~rehearsal.flags() & faults::kDescriptorsDisputed) != 0;
  return disputed ? Reason::HostDisputed : Reason::None;
}

using faults::Record;

bool IsReleaseCall(const Record& record) {
  return record.kind == faults::RecordKind::Call && driver::IsRelease(driver::EffectOf(BaseOf(record)).effect);
}

class Blamer {
 public:
  Blamer(const Rehearsed& rehearsal, const Observation& trial, const Record& failed, SiteTexts* sites)
      : rehearsal_(rehearsal), trial_(trial), evidence_(trial.evidence()), sites_(sites), failed_(failed), failed_stack_(Text(failed)) {
    std::set<std::uint32_t> known;
    for (const std::uint32_t call : evidence_.own_calls()) {
      const Record& record = evidence_.record(call);
      if (record.pid != failed.pid || record.begin < failed.begin || record.cycle != failed.cycle) continue;
      if (known.insert(record.stack).second) afterwards_.push_back(&Text(record));
    }
  }

  void Blame(const TrialFinding& finding, TrialFindingText* text) {
    const faults::JournalView& journal = *rehearsal_.run().journal;
    const bool entry = SortOf(finding.rule) == RuleSort::Entry && finding.acquired.record_kind != faults::RecordKind::Empty;
    if (IsLoss(finding.rule) || entry) {
      const auto found = rehearsal_.releases().find({finding.kind, finding.acquired_key});
      if (found != rehearsal_.releases().end()) text->released = sites_->Text(journal, found->second);
      const std::size_t running =
          OnFailingThread(finding.acquired.begin) ? StillRunningSince(finding.acquired.begin) : failed_stack_.size();
      text->blame = BlameForLoss({text->acquired->stack, failed_stack_, text->released->stack, running, afterwards_, RehearsedCalls(),
                                  WasPassedOver(finding, text->released->stack)});
    } else if (SortOf(finding.rule) == RuleSort::Changed) {
      text->released = sites_->Text(journal, rehearsal_.put_back_at(finding));
      // Whoever was running when it was changed and when the call failed owes the change back.
      const bool held = finding.where.begin < failed_.begin && OnFailingThread(finding.where.begin);
      text->blame = held ? BlameForLoss({text->where->stack, failed_stack_, {}, StillRunningSince(finding.where.begin), afterwards_, {}})
                         : BlameForCall(text->where->stack);
    } else if (finding.rule == Rule::NotRecovered) {
      text->blame = BlameForNoRecovery(text->where->stack.empty() ? failed_stack_ : text->where->stack);
    } else {
      text->blame = BlameForCall(text->where->stack.empty() ? failed_stack_ : text->where->stack);
    }
  }

 private:
  const Stack& Text(const Record& record) {
    const Site site = SiteOf(record);
    return sites_->Text(trial_.journal, site, SiteKey(trial_.journal, site))->stack;
  }

  bool WasPassedOver(const TrialFinding& lost, const Stack& release) const {
    const std::vector<Object>& objects = evidence_.ledger->objects;
    return !release.empty() && std::any_of(objects.begin(), objects.end(), [&](const Object& object) {
      if (object.kind != lost.kind || object.acquired.begin <= lost.acquired.begin) return false;
      if (object.acquired.begin >= failed_.begin || object.released.begin <= failed_.begin) return false;
      const Stack& there = sites_->Text(trial_.journal, object.released)->stack;
      return !there.empty() && SamePlace(there.front(), release.front());
    });
  }

  // The calls of the fault-free run, when the call that failed is a release.
  std::span<const Stack* const> RehearsedCalls() {
    if (!rehearsed_.empty() || !IsReleaseCall(failed_)) return rehearsed_;
    const faults::JournalView& journal = *rehearsal_.run().journal;
    for (const Site& site : rehearsal_.call_stacks()) rehearsed_.push_back(&sites_->Text(journal, site)->stack);
    return rehearsed_;
  }

  // False when another thread made the call with this ticket: it may have been in the same functions, but not in the same calls of them.
  bool OnFailingThread(std::uint64_t ticket) const {
    const Record* const call = evidence_.call_at(ticket);
    return call == nullptr || call->tid == failed_.tid;
  }

  // Index in the failing stack of the innermost function that no call of the thread was outside of since `ticket`.
  std::size_t StillRunningSince(std::uint64_t ticket) {
    if (left_.empty()) LookBack();
    std::size_t running = 0;
    for (const auto& [when, index] : left_) {
      if (when >= ticket) running = index;
    }
    return running;
  }

  // Goes back from the failing call and notes each function of its stack that was entered on the way.
  void LookBack() {
    left_.emplace_back(~std::uint64_t{0}, 0);
    std::set<std::uint32_t> known;
    const std::vector<std::uint32_t>& calls = evidence_.facts().calls;
    for (auto call = calls.rbegin(); call != calls.rend() && left_.back().second + 1 < failed_stack_.size(); ++call) {
      const Record& record = evidence_.record(*call);
      if (record.tid != failed_.tid || record.pid != failed_.pid || record.begin >= failed_.begin) continue;
      if (!known.insert(record.stack).second) continue;
      const std::size_t running = RunningSince(Text(record), failed_stack_);
      if (running > left_.back().second) left_.emplace_back(record.begin, running);
    }
  }

  const Rehearsed& rehearsal_;
  const Observation& trial_;
  const Evidence evidence_;
  SiteTexts* const sites_;
  const Record& failed_;
  const Stack& failed_stack_;
  std::vector<const Stack*> afterwards_;
  std::vector<const Stack*> rehearsed_;
  std::vector<std::pair<std::uint64_t, std::size_t>> left_;  // from this ticket back, functions further in were not yet running
};

// The failed call on whose way back an object was lost: the last fault's, or, of an object that was acquired since, the first call of its
// thread after that which the same fault refused again.
const Record& WayBackFrom(const Evidence& trial, const Record& last, const TrialFinding& finding) {
  if (!IsLoss(finding.rule) || finding.acquired.begin < last.begin) return last;
  const Record* const made = trial.call_at(finding.acquired.begin);
  for (const std::uint32_t call : trial.own_calls()) {
    const Record& record = trial.record(call);
    if (made == nullptr || record.tid != made->tid || record.pid != made->pid) continue;
    if (record.begin > finding.acquired.begin && record.fault == last.fault) return record;
  }
  return last;
}

// Adds the blame of harness/defect to `texts`, which are the texts of `findings`.
void BlameFindings(const Rehearsed& rehearsal, const Observation& trial, std::span<const TrialFinding> findings, SiteTexts* sites,
                   std::vector<TrialFindingText>* texts) {
  if (findings.empty()) return;
  const Record* const last = trial.evidence().last_hit();
  if (last == nullptr) return;
  std::map<const Record*, Blamer> blamers;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Record* const failed = &WayBackFrom(trial.evidence(), *last, findings[i]);
    blamers.try_emplace(failed, rehearsal, trial, *failed, sites).first->second.Blame(findings[i], &(*texts)[i]);
  }
}

}  // namespace

void NamePlaces(const Observation& trial, SiteTexts* texts, TrialResult* result) {
  const auto name = [&](const faults::Record* hit, std::uint64_t* key) {
    const Site site = hit == nullptr ? Site() : SiteOf(*hit);
    *key = hit == nullptr ? 0 : SiteKey(trial.journal, site);
    return texts->Text(trial.journal, site, *key);
  };
  result->fault_site = name(trial.evidence().first_hit(), &result->fault_key);
  result->later_keys.clear();
  result->later_sites.clear();
  for (std::size_t i = 1; i < result->faults.size(); ++i)
    result->later_sites.push_back(name(trial.evidence().hit(i), &result->later_keys.emplace_back()));
}

TrialResult JudgeTrial(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                       const Rehearsed& rehearsal, const Observation& trial, const JudgeOptions& options, SiteTexts* texts) {
  TrialResult result = {.index = index, .faults = faults, .ending = trial.ending};
  if ((trial.flags() & faults::kRecordsDropped) != 0 && !trial.ending.timed_out) {
    result.missed = (trial.flags() & faults::kNoSpace) != 0 ? Missed::NoSpace : Missed::Overflow;
    return result;
  }
  Evidence evidence = trial.evidence();
  const std::optional<Ledger> settled = SettledAsRehearsed(rehearsal.run(), evidence, texts);
  if (settled) evidence.ledger = &*settled;
  const Judgement judgement = Judge(&rehearsal, evidence, options);
  NamePlaces(trial, texts, &result);
  result.said = judgement.said;
  result.recovery = judgement.recovery;
  result.skipped = judgement.skipped;
  result.host_left_out = WhyHostLeftOut(rehearsal.run(), trial);
  result.findings = Texts(judgement.findings, trial.journal, texts);
  BlameFindings(rehearsal, trial, judgement.findings, texts, &result.findings);
  result.notes = Texts(judgement.notes, trial.journal, texts);
  result.unfired = Unfired(faults.size(), judgement.fired, trial.journal.header());
  if (!result.unfired.empty()) {
    result.missed = trial.ending.timed_out ? Missed::Late : Missed::Unfired;
  } else if (HitElsewhere(sites, trial)) {
    result.missed = Missed::Elsewhere;
  } else if (judgement.unjudged && judgement.verdict == Verdict::NotExercised) {
    result.missed = Missed::Vanished;
  } else if (judgement.findings.empty() && IsHostJudged(rehearsal.run()) && SawLess(rehearsal.run(), trial)) {
    result.missed = Missed::Unseen;
  } else {
    result.verdict = judgement.verdict;
    result.fired = true;
  }
  return result;
}

TrialResult JudgeBesideAll(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                           std::span<const Rehearsed> rehearsals, const Observation& trial, const JudgeOptions& options, SiteTexts* texts) {
  TrialResult best = JudgeTrial(index, faults, sites, rehearsals.front(), trial, options, texts);
  for (const Rehearsed& other : rehearsals.subspan(1)) {
    if (best.findings.empty()) break;
    TrialResult next = JudgeTrial(index, faults, sites, other, trial, options, texts);
    if (next.findings.size() < best.findings.size()) best = std::move(next);
  }
  return best;
}

void AddFindings(std::vector<TrialFindingText> found, TrialResult* trial) {
  for (TrialFindingText& one : found) {
    trial->verdict = Graver(trial->verdict, VerdictOf(one.rule).value_or(trial->verdict));
    trial->findings.push_back(std::move(one));
  }
}

}  // namespace cuaudit::harness
