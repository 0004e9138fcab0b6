// SPDX-License-Identifier: MIT
// blame_trial.h: the evidence of one trial by which harness/defect blames a function.
#pragma once

#include <span>
#include <vector>

#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"
#include "harness/sweep/run/trial.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {

// Adds the blame to `texts`, which are the texts of `findings`.
void BlameFindings(const Rehearsed& rehearsal, const Observation& trial, std::span<const TrialFinding> findings, SiteTexts* sites,
                   std::vector<TrialFindingText>* texts);

}  // namespace cuaudit::harness
