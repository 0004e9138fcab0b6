// SPDX-License-Identifier: MIT
// trial_evidence.h: what one trial of a lifecycle shows: evidence for the judge, or at a glance that nothing is wrong.
//
//   Threads   pure.
//   Errors    never fails.
//   Faults    makes no driver calls.
//
// Most trials unwind cleanly, and a call stack costs several times the call. So a trial runs without stacks first and is settled when
// everything is released, no rule is broken, the error was reported and the clean cycle afterwards works. Anything else runs again with
// stacks and is judged (harness/verdict) as the trial of a program is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/sweep/benign.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/runner.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// The first cycle of a run: the journal has its calls only, the ledger is that of its end. What was there before is nobody's leak.
Observation ObserveCycle(const faults::JournalView& journal, const TrialTrace& trace, const Ending& ending);

// The same with all that the judge asks: what the steps answered, and the clean cycle afterwards. The run had call stacks.
Observation Observe(const Lifecycle& lifecycle, std::span<const faults::Fault> faults, const faults::JournalView& journal,
                    const TrialTrace& trace, const Ending& ending);

// What is left or wrong in a run, whatever a rehearsal says; needs no call stacks.
enum class Balance : std::uint8_t {
  Spotless,
  ReleaseRefused,  // of the first cycle, and nothing else
  Upset,
};
Balance BalanceOf(const faults::JournalView& journal, const TrialTrace& trace);

bool AllFired(const faults::JournalView& journal, std::size_t faults);

// What a trial came to about which nothing more is to be said; none when it must be judged. Its rehearsal was spotless.
std::optional<Settled> Settle(const Lifecycle& lifecycle, const std::vector<Benign>& benign, std::span<const faults::Fault> faults,
                              const faults::JournalView& journal, const TrialTrace& trace);

}  // namespace cuaudit::harness
