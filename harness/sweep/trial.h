// SPDX-License-Identifier: MIT
// trial.h: what one trial came to, free of its journal: verdict, findings and symbolised places.
//
//   Owns      its strings; the journal may be deleted once the result is made.
//   Threads   values; no shared state.
//   Errors    none: a trial that cannot be judged says why.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/observation.h"
#include "harness/sweep/place_text.h"
#include "harness/sweep/site_text.h"
#include "harness/sweep/unwinding.h"
#include "harness/verdict/judge.h"
#include "harness/verdict/rehearsed.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct TrialFindingText {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t acquired_key = 0;
  std::uint64_t where_key = 0;
  std::uint64_t other_key = 0;
  PlaceText acquired;
  PlaceText where;
  PlaceText other;
  std::string meter;        // of the host: what grew, where a meter saw it and no object has a name
  std::string detail;       // what the title does not say; may be empty
  std::string apart;        // where neither kind nor place does: what tells two entries apart
  std::int64_t least = -1;  // of several faults: the trial whose fewer faults show it too; known when the report is made
};

// "stream"; empty for what is about no object.
inline std::string_view KindName(const TrialFindingText& text) {
  if (!text.meter.empty()) return text.meter;
  return text.kind == driver::Kind::None ? std::string_view() : driver::Name(text.kind);
}

struct TrialResult {
  std::size_t index = 0;  // in the plan
  int attempt = 1;
  bool stray = false;                       // an attempt that missed and was followed by another: only what it found counts
  std::vector<std::string> faults;          // in the order in which they fire
  Verdict verdict = Verdict::NotExercised;  // and stays so when it missed, whatever it found
  bool fired = false;                       // every fault, where it was planned
  Missed missed = Missed::Nothing;
  Isolation isolation = Isolation::Unknown;
  Fallback fallback;                 // why it ran in nothing else
  std::vector<std::size_t> unfired;  // numbers of the faults that never fired, in `faults`
  Ending ending;
  std::uint64_t fault_key = 0;
  PlaceText fault_site;                // where the first one hit
  std::vector<PlaceText> later_sites;  // where the others did, one each
  std::vector<std::uint64_t> later_keys;
  PlaceText planned_site;  // where it was to hit; known when the report is made
  std::vector<TrialFindingText> findings;
  std::vector<TrialFindingText> notes;
  Said said = Said::Nothing;
  Recovery recovery = Recovery::NoFault;
  std::vector<std::size_t> benign;      // numbers of the declarations that its faults fall under, one for each such fault
  Reason host_left_out = Reason::None;  // why less of its host was looked at than of the fault-free run's; empty: no less
  std::vector<Reason> skipped;          // checks that could not be made
  Unwinding unwinding;                  // what the next round may try; the engine lets go of it when that round is planned
};

std::vector<TrialFindingText> Texts(const std::vector<TrialFinding>& findings, const faults::JournalView& journal, SiteTexts* sites);

// Judges `trial` beside the rehearsal. `sites`: per fault the SiteKey of the call that it is meant for; 0, or none at all, when any will
// do. A journal that lost records cannot be judged, unless the trial hung and filled it on the way.
TrialResult JudgeTrial(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                       const Rehearsed& rehearsal, const Observation& trial, const JudgeOptions& options, SiteTexts* texts);

// Where the faults of the trial hit, in words.
void NamePlaces(const Observation& trial, SiteTexts* texts, TrialResult* result);

// The same beside the fault-free run that explains most of it, the first of equals: what one of them leaves too is not the fault's.
TrialResult JudgeBesideAll(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                           std::span<const Rehearsed> rehearsals, const Observation& trial, const JudgeOptions& options, SiteTexts* texts);

}  // namespace cuaudit::harness
