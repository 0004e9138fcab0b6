// SPDX-License-Identifier: MIT
#include "harness/sweep/run/trial.h"

#include <algorithm>
#include <utility>

#include "harness/sweep/run/settle_references.h"

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

}  // namespace

std::vector<TrialFindingText> Texts(const std::vector<TrialFinding>& findings, const faults::JournalView& journal, SiteTexts* sites) {
  std::vector<TrialFindingText> texts;
  texts.reserve(findings.size());
  for (const TrialFinding& finding : findings) {
    TrialFindingText text;
    text.rule = finding.rule;
    text.kind = finding.kind;
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
  TrialResult result;
  result.index = index;
  result.faults = faults;
  result.ending = trial.ending;
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

}  // namespace cuaudit::harness
