// SPDX-License-Identifier: MIT
// surplus.h: what a trial left or did wrong beyond the rehearsal, grouped by rule, kind and place.
//
//   Owns      its groups. Borrows ledgers and journals while it runs.
//   Units     bytes; counts of objects. User objects and physical memory count once per reference.
#pragma once

#include <vector>

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

class Rehearsed;

// Objects left at the end of the trial. Each list is in order of acquisition.
struct Leftovers {
  std::vector<TrialFinding> leaks;             // rules leak and orphaned, beyond the rehearsal's count at that place; left_at_exit
  std::vector<TrialFinding> refused;           // release_refused; also what destructors do not free because of a refused release
  std::vector<TrialFinding> retried;           // retained_for_retry: a later release succeeded
  std::vector<TrialFinding> process_lifetime;  // the rehearsal leaves these, too
  std::vector<TrialFinding> relied;            // relied_on_context, beyond the rehearsal's count at that place
  std::vector<TrialFinding> shown;             // host resources of leaks and refused, when nobody asked for host findings (TakeShown)
  std::vector<TrialFinding> unjudged;          // driver objects of vanished child processes, beyond the rehearsal's count at that place
};

// Without a rehearsal (null) everything left is process-lifetime, or left_at_exit when it is a driver object and nothing may stay. With
// one, objects of a child process that wrote no Exit event are unjudged, because it is unknown whether the child ended by itself.
[[nodiscard]] Leftovers CompareObjects(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options = {});

// Violations of the trial beyond those at the same place of the rehearsal. Without a rehearsal all violations are returned.
[[nodiscard]] std::vector<TrialFinding> CompareViolations(const Rehearsed* rehearsal, const Evidence& trial);

}  // namespace cuaudit::harness
