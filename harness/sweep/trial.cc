// SPDX-License-Identifier: MIT
#include "harness/sweep/trial.h"

#include <algorithm>
#include <utility>

namespace cuaudit::harness {
namespace {

std::vector<std::string> Unfired(const std::vector<std::string>& faults, bool any_fired, const faults::JournalHeader& header) {
  if (!any_fired) return faults;
  std::vector<std::string> unfired;
  for (std::size_t i = 0; faults.size() > 1 && i < std::min(faults.size(), faults::kMaxFaults); ++i) {
    if (header.fired[i].load() == 0) unfired.push_back(faults[i]);
  }
  return unfired;
}

bool LostStack(const Observation& trial, const Site& site) { return site.stack == 0 && (trial.flags() & faults::kStacksDropped) != 0; }

// The first call that each of `count` faults hit, null for one that hit none.
std::vector<const faults::Record*> FirstHits(std::size_t count, const faults::JournalView& journal) {
  std::vector<const faults::Record*> first(count, nullptr);
  for (const faults::Record& record : journal.own_records()) {
    if (record.fault == 0 || record.fault > count || record.begin == 0) continue;
    const faults::Record*& known = first[record.fault - 1];
    if (known == nullptr || record.begin < known->begin) known = &record;
  }
  return first;
}

// Some fault hit another place than it was meant for.
bool HitElsewhere(std::span<const std::uint64_t> sites, const Observation& trial) {
  const std::vector<const faults::Record*> first = FirstHits(sites.size(), trial.journal);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (sites[i] == 0 || first[i] == nullptr || LostStack(trial, RecordSite(*first[i]))) continue;
    if (SiteKey(trial.journal, RecordSite(*first[i])) != sites[i]) return true;
  }
  return false;
}

bool SawLess(const Observation& rehearsal, const Observation& trial) { return rehearsal.saw_host() && trial.ledger.host_unseen != 0; }

// Somebody asked for the host (--host): what nobody saw of it is no pass.
bool IsHostJudged(const Observation& rehearsal) {
  return (rehearsal.flags() & faults::kHostProbesActive) != 0 && (rehearsal.flags() & faults::kHeapLeftOut) == 0;
}

// Of a run that was looked at: what the fault changed about that.
const char* WhyHostLeftOut(const Observation& rehearsal, const Observation& trial) {
  if (!rehearsal.saw_host()) return "";
  if (SawLess(rehearsal, trial)) return "in which a process did not load the library of the host probes";
  if ((trial.flags() & faults::kHostStopped) != 0)
    return "whose host probes stopped, since their records came to half of the journal (--records)";
  const bool disputed = (trial.flags() & ~rehearsal.flags() & faults::kDescriptorsDisputed) != 0;
  return disputed ? "at whose end a call under way may have been opening or closing descriptors" : "";
}

}  // namespace

std::string_view Name(Missed missed) noexcept {
  switch (missed) {
    case Missed::Nothing:
      return "nothing";
    case Missed::Unfired:
      return "unfired";
    case Missed::Elsewhere:
      return "elsewhere";
    case Missed::Overflow:
      return "overflow";
    case Missed::NoSpace:
      return "no_space";
    case Missed::Vanished:
      return "vanished";
    case Missed::Unseen:
      return "unseen";
    case Missed::Late:
      return "late";
  }
  return {};
}

std::vector<TrialFindingText> Texts(const std::vector<TrialFinding>& findings, const faults::JournalView& journal, SiteTexts* sites) {
  std::vector<TrialFindingText> texts;
  texts.reserve(findings.size());
  for (const TrialFinding& finding : findings) {
    TrialFindingText text;
    text.rule = std::string(Name(finding.rule));
    if (finding.kind != driver::Kind::None) text.kind = std::string(driver::Name(finding.kind));
    text.count = finding.count;
    text.bytes = finding.bytes;
    text.acquired_key = finding.acquired_key;
    text.where_key = finding.where_key;
    text.other_key = finding.other_key;
    text.detail = finding.detail;
    text.acquired = sites->Text(journal, finding.acquired, finding.acquired_key);
    text.where = sites->Text(journal, finding.where, finding.where_key);
    text.other = sites->Text(journal, finding.other, finding.other_key);
    texts.push_back(std::move(text));
  }
  return texts;
}

TrialResult JudgeTrial(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                       const Observation& rehearsal, const Observation& trial, const JudgeOptions& options, SiteTexts* texts) {
  TrialResult result;
  result.index = index;
  result.faults = faults;
  result.ending = trial.ending;
  result.verdict = std::string(Name(Verdict::NotExercised));
  if ((trial.flags() & faults::kRecordsDropped) != 0 && !trial.ending.timed_out) {
    result.missed = (trial.flags() & faults::kNoSpace) != 0 ? Missed::NoSpace : Missed::Overflow;
    return result;
  }
  const Judgement judgement = Judge(rehearsal.evidence(), trial.evidence(), true, options);
  result.fault_key = judgement.fault_key;
  result.fault_site = texts->Text(trial.journal, judgement.fault_site, judgement.fault_key);
  const std::vector<const faults::Record*> hits = FirstHits(faults.size(), trial.journal);
  for (std::size_t i = 1; i < hits.size(); ++i) {
    const Site site = hits[i] == nullptr ? Site() : RecordSite(*hits[i]);
    result.later_keys.push_back(hits[i] == nullptr ? 0 : SiteKey(trial.journal, site));
    result.later_sites.push_back(texts->Text(trial.journal, site, result.later_keys.back()));
  }
  result.said = judgement.said;
  result.recovery = judgement.recovery;
  result.host_left_out = WhyHostLeftOut(rehearsal, trial);
  result.findings = Texts(judgement.findings, trial.journal, texts);
  result.notes = Texts(judgement.notes, trial.journal, texts);
  result.unfired = Unfired(faults, judgement.fired, trial.journal.header());
  if (!result.unfired.empty()) {
    result.missed = trial.ending.timed_out ? Missed::Late : Missed::Unfired;
  } else if (HitElsewhere(sites, trial)) {
    result.missed = Missed::Elsewhere;
  } else if (judgement.unjudged && judgement.verdict == Verdict::NotExercised) {
    result.missed = Missed::Vanished;
  } else if (judgement.findings.empty() && IsHostJudged(rehearsal) && SawLess(rehearsal, trial)) {
    result.missed = Missed::Unseen;
  } else {
    result.verdict = std::string(Name(judgement.verdict));
    result.fired = true;
  }
  return result;
}

TrialResult JudgeBesideAll(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                           const Observation& rehearsal, std::span<const Observation> others, const Observation& trial,
                           const JudgeOptions& options, SiteTexts* texts) {
  TrialResult best = JudgeTrial(index, faults, sites, rehearsal, trial, options, texts);
  for (const Observation& other : others) {
    if (best.findings.empty()) break;
    TrialResult next = JudgeTrial(index, faults, sites, other, trial, options, texts);
    if (next.findings.size() < best.findings.size()) best = std::move(next);
  }
  return best;
}

}  // namespace cuaudit::harness
