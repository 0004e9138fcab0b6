// SPDX-License-Identifier: MIT
// surplus.h: what a trial left behind or did wrong beyond the rehearsal, grouped by rule, kind and place.
//
//   Owns      its groups; borrows ledgers and journals while it runs.
//   Threads   values; no shared state.
//   Units     bytes; counts of objects, for user objects and physical memory one per reference.
//   Errors    never fails.
//   Faults    makes no driver calls.
#pragma once

#include <vector>

#include "harness/verdict/judge.h"

namespace cuaudit::harness {

// Objects left at the end of the trial, in order of acquisition within each list.
struct Leftovers {
  std::vector<TrialFinding> leaks;             // rules leak and orphaned, beyond the rehearsal's count at that place
  std::vector<TrialFinding> refused;           // release_refused, and what a refused release keeps a destructor from freeing
  std::vector<TrialFinding> retried;           // retained_for_retry: released after all
  std::vector<TrialFinding> process_lifetime;  // what the rehearsal leaves there too
  std::vector<TrialFinding> shown;             // host resources of the first two kinds, where nobody asked for them (TakeShown)
  std::vector<TrialFinding> unjudged;          // driver objects of vanished children, beyond the rehearsal's count at that place
};

// Without a rehearsal (null) everything left is process-lifetime. Beside a rehearsal, what is left by a child process that wrote no
// Exit event is unjudged: nobody told us whether it chose to leave.
[[nodiscard]] Leftovers CompareObjects(const Rehearsed* rehearsal, const Evidence& trial);

// Violations of the trial beyond those that the rehearsal has at the same place; all of them without a rehearsal.
[[nodiscard]] std::vector<TrialFinding> CompareViolations(const Rehearsed* rehearsal, const Evidence& trial);

// Host probes that nobody asked for change no verdict. In such a run this takes what they saw out of `findings` and makes it notes:
// host_left, host_misused.
[[nodiscard]] std::vector<TrialFinding> TakeShown(const faults::JournalView& journal, std::vector<TrialFinding>* findings);

}  // namespace cuaudit::harness
