// SPDX-License-Identifier: MIT
// trial.h: what one trial came to, free of its journal: verdict, findings and symbolised places.
//
//   Owns      its strings; the journal may be deleted once the result is made.
//   Threads   values; no shared state.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/sweep/observation.h"
#include "harness/sweep/site_text.h"
#include "harness/verdict/judge.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct TrialFindingText {
  std::string rule;
  std::string kind;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t acquired_key = 0;
  std::uint64_t where_key = 0;
  report::Acquired acquired;
  report::Acquired where;
};

struct TrialResult {
  std::size_t index = 0;            // in the plan
  std::vector<std::string> faults;  // usually one
  std::string verdict;
  bool fired = false;
  Ending ending;
  std::uint64_t fault_key = 0;
  report::Acquired fault_site;
  std::vector<TrialFindingText> findings;
  std::vector<TrialFindingText> notes;
};

std::vector<TrialFindingText> Texts(const std::vector<TrialFinding>& findings, const faults::JournalView& journal, SiteTexts* sites);

// Judges `trial` beside the rehearsal. A journal that overflowed is an error unless the trial hung and filled it on the way.
Result<TrialResult> JudgeTrial(std::size_t index, const std::vector<std::string>& faults, const Observation& rehearsal,
                               const Observation& trial, const JudgeOptions& options, SiteTexts* sites);

}  // namespace cuaudit::harness
