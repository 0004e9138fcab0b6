// SPDX-License-Identifier: MIT
// trial_evidence.h: what one trial of a lifecycle says to the judge, beside the journal of its calls.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "faults/plan/fault.h"
#include "harness/probes/host_meters.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/runners/runner.h"
#include "harness/verdict/steps.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// What the steps of one trial returned, in addition to the journal of its calls.
//
//   Owns      plain values, which may lie in memory shared with a forked child.
//   Units     records and tickets of the journal.
//   Errors    `finished` false: the trial did not reach the end of that cycle.

// What the host drop-in saw of one cycle: heap blocks as numbers, all else as records of its journal.
struct HostSpan {
  HostNet net;
  std::uint64_t first = 0;  // ticket of that journal at its begin; `end` at its end
  std::uint64_t end = 0;
  // Requests of the program's own modules, when they are counted.
  std::uint32_t allocations = 0;
  std::uint32_t threads = 0;
};

struct CycleTrace : CycleSteps {
  bool finished = false;
  std::size_t first_record = 0;
  std::size_t end_record = 0;  // one past the last
  std::uint64_t begin = 0;     // ticket at its begin; `end` at its end
  std::uint64_t end = 0;
  HostChange host;               // of the meters that were asked for
  std::uint64_t heap_bytes = 0;  // heap bytes at the end, when asked for
  HostSpan seen;
};

inline constexpr std::size_t kMostCycles = 2;

struct TrialTrace {
  bool opened = false;           // a world was opened
  bool finished = false;         // the run reached its end, whatever the steps returned
  bool prepared = false;         // the preparation of the case succeeded
  std::uint32_t kept = 0;        // objects that could not be released on the genuine driver
  std::uint32_t unguarded = 0;   // released objects that the case believes alive and whose handles could reach the genuine driver
  std::uint64_t unheard = 0;     // statements of a pool about blocks through another table than the trial's gate
  CUresult lost = CUDA_SUCCESS;  // sticky error of the genuine driver's context after the trial
  StepTrace prepare;
  CycleTrace cycle[kMostCycles];  // the faulted cycle, then a clean one in the same world
  std::size_t first_failed = 0;   // first cycle that reported a failure, from 1; 0: none
  CycleTrace failed;              // the trace of that cycle
};

// Why a lifecycle whose steps fail without any fault is not audited. `where` names the cycle, unless that is clear.
Details FailedWithoutFault(const TrialTrace& trace, const Details& where);

// Makes evidence for the judge from one trial of a lifecycle, or settles the trial at once when nothing is wrong (README.md, "Settled at
// once").

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

bool AllFired(const faults::JournalView& journal, std::size_t faults);

// The result of a trial in which all is well; empty when the trial must be judged. Only for a lifecycle whose fault-free run left nothing.
//
// Each question is answered by what the judge asks, too, and needs neither call stacks nor a comparison:
//
//   did each fault hit a call, and is none missing   the journal
//   does the clean cycle prove that it works         RecoveryAfter (harness/verdict/parts.h), CycleSteps::failed
//   is anything left or wrong                        BalanceOf: the ledger, MayGiveTooMuch (parts.h), MayLeaveChanged (put_back.h), MayLeaveSettings, IsOwed
//   what did the steps say                           JudgeSteps (steps.h), as if no refused call were made good
//   are the faults declared benign                   DeclaredOf (harness/sweep/findings/benign.h)
//
// An answer that is bad or unknown sends the trial to the judge. An object that is left because the plan refused its release is no bad one.
std::optional<Settled> Settle(const Lifecycle& lifecycle, const DeclaredFaults& declared, std::span<const faults::Fault> faults,
                              const faults::JournalView& journal, const TrialTrace& trace);

}  // namespace cuaudit::harness
