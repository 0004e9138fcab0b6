// SPDX-License-Identifier: MIT
// judgement.h: what is judged of one trial, and the options that change it.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/verdict/evidence/finding.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

struct Judgement {
  Verdict verdict = Verdict::NotExercised;
  bool fired = false;
  bool unjudged = false;  // a child vanished with driver objects; without findings: NotExercised
  Site fault_site;        // site of the first injected call
  std::uint64_t fault_key = 0;
  std::vector<TrialFinding> findings;  // rules of level Finding
  std::vector<TrialFinding> notes;     // rules of level Note
  Said said = Said::Nothing;
  Recovery recovery = Recovery::NoFault;
  std::vector<Reason> skipped;  // checks that were not possible
};

struct JudgeOptions {
  bool abandoned_is_leak = false;
  bool exit_is_said = false;       // after a fault, a successful exit status counts as the report "all went well"
  bool nothing_may_stay = false;   // without a rehearsal: driver objects that are left are findings
  bool own_orphans_count = false;  // objects that end with a context of the program itself are orphaned, not relied_on_context
  bool any_code = false;           // the steps of the lifecycle translate errors into their own codes
};

}  // namespace cuaudit::harness
