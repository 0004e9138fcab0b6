// SPDX-License-Identifier: MIT
// trial_evidence.h: makes evidence for the judge from one trial of a lifecycle, or settles the trial at once when nothing is wrong.
//
// Most trials unwind cleanly, and a call stack costs several times the call. So a trial runs without stacks first. It is settled when
// everything is released, no rule is broken, the error was reported and the clean cycle afterwards works. Any other trial runs again with
// stacks and is judged (harness/verdict) like the trial of a program.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/lifecycle/trial_trace.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/runners/runner.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// The first cycle of a run. The journal has only the calls of this cycle, the ledger its state at the end. Older objects are not judged.
Observation ObserveCycle(const faults::JournalView& journal, const TrialTrace& trace, const Ending& ending);

// The same with what the steps returned and the clean cycle afterwards. The run must have had call stacks.
Observation Observe(const Lifecycle& lifecycle, std::span<const faults::Fault> faults, const faults::JournalView& journal,
                    const TrialTrace& trace, const Ending& ending);

// Whether anything is left or wrong in a run, without a rehearsal and without call stacks.
enum class Balance : std::uint8_t {
  Spotless,
  ReleaseRefused,  // by the first cycle, and nothing else is wrong
  Upset,
};
Balance BalanceOf(const faults::JournalView& journal, const TrialTrace& trace);

// One bit for each fault, as CycleSteps::benign_faults has it. Declarations that name a function count for none: without call stacks nobody
// knows where a fault hit.
std::uint64_t BenignFaults(const std::vector<Benign>& benign, std::span<const faults::Fault> faults);

bool AllFired(const faults::JournalView& journal, std::size_t faults);

// The result of a trial that needs no judgement; empty when it must be judged. The rehearsal must have been spotless.
std::optional<Settled> Settle(const Lifecycle& lifecycle, const std::vector<Benign>& benign, std::span<const faults::Fault> faults,
                              const faults::JournalView& journal, const TrialTrace& trace);

}  // namespace cuaudit::harness
