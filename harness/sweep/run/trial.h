// SPDX-License-Identifier: MIT
// trial.h: the result of one trial without its journal: verdict, findings and symbolised places.
//
//   Owns      its strings. The journal may be deleted once the result is made.
//   Errors    none: a trial that cannot be judged says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/sweep/run/after_fault.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"
#include "harness/sweep/run/unwinding.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/rehearsed.h"
#include "harness/verdict/verdict.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct TrialResult {
  std::size_t index = 0;  // in the plan
  int attempt = 1;
  bool stray = false;                       // an attempt that missed and was repeated; only its findings count
  std::vector<std::string> faults = {};     // in the order in which they fire
  Verdict verdict = Verdict::NotExercised;  // NotExercised when it missed, whatever it found
  bool fired = false;                       // every fault fired where it was planned
  Missed missed = Missed::Nothing;
  Isolation isolation = Isolation::Unknown;
  Fallback fallback = {};                 // why the chosen isolation was not used
  std::vector<std::size_t> unfired = {};  // indices in `faults` of those that never fired
  Ending ending = {};
  std::uint64_t fault_key = 0;
  PlaceText fault_site = {};                // where the first fault hit
  std::vector<PlaceText> later_sites = {};  // where the other faults hit, one each
  std::vector<std::uint64_t> later_keys = {};
  PlaceText planned_site = {};  // where the fault was planned; set when the report is made
  std::vector<TrialFindingText> findings = {};
  std::vector<TrialFindingText> notes = {};
  Said said = Said::Nothing;
  Recovery recovery = Recovery::NoFault;
  std::vector<std::size_t> benign = {};  // numbers of the declarations that cover its faults, one per covered fault
  Reason host_left_out = Reason::None;   // why less of the host was watched than in the fault-free run
  std::vector<Reason> skipped = {};      // checks that were not possible
  Unwinding unwinding = {};              // what the next round may try; emptied when that round is planned
  // How it went on after its last fault; null when it has no findings or no report will tell. Equal ones are shared.
  std::shared_ptr<const AfterFault> after = {};
};

// Judges `trial` beside the rehearsal. `sites` holds per fault the SiteKey of the planned call; 0, or an empty span, accepts any call. A
// journal that lost records cannot be judged, unless the trial hung and filled it while it hung.
TrialResult JudgeTrial(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                       const Rehearsed& rehearsal, const Observation& trial, const JudgeOptions& options, SiteTexts* texts);

// Fills in the text of the places that the trial's faults hit.
void NamePlaces(const Observation& trial, SiteTexts* texts, TrialResult* result);

// Judges beside the fault-free run that explains most of the trial, the first of equals. What one of these runs leaves as well is not
// blamed on the fault.
TrialResult JudgeBesideAll(std::size_t index, const std::vector<std::string>& faults, std::span<const std::uint64_t> sites,
                           std::span<const Rehearsed> rehearsals, const Observation& trial, const JudgeOptions& options, SiteTexts* texts);

// Adds findings that were made after the trial was judged. It amounts to the gravest.
void AddFindings(std::vector<TrialFindingText> found, TrialResult* trial);

}  // namespace cuaudit::harness
