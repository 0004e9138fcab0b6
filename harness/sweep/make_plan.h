// SPDX-License-Identifier: MIT
// make_plan.h: which faults a sweep tries, in a stable order, from what the fault-free run called.
//
//   Owns      its texts.
//   Threads   pure.
//   Errors    ParseHows names what it did not understand. Calls that are left out are counted by reason.
//   Faults    makes no driver calls.
//
// Order: that of CallStates. Every call that can fail is tried, in each of the ways asked for: a fault that was never made proves nothing,
// whatever a journal takes it for. Only Prune::All lets the first of calls in one state (call_state.h) stand for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faults/journal/journal_view.h"
#include "faults/plan/fault.h"
#include "harness/sweep/call_state.h"
#include "harness/sweep/coverage.h"
#include "harness/sweep/prune.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

struct PlanOptions {
  std::vector<std::string> hows = {"refuse"};
  bool all_codes = false;
  std::vector<std::string> calls;  // base entry points; empty: all
  std::size_t limit = 0;           // trials, 0: no limit
  Prune prune = Prune::Second;
};

// A fault that is possible and is not pruned.
struct PlannedWay {
  WayToFail way;
  std::uint64_t state = 0;        // in which it hits; 0: unknown
  Reason why_not = Reason::None;  // why it is not tried; None: it is
  std::size_t trial = 0;          // its number in PlannedFaults::faults
};

struct PlannedFaults {
  std::vector<std::string> faults;
  std::vector<std::uint64_t> sites;  // one per fault: SiteKey of the call it is meant for, 0 when its call stack was not kept
  std::size_t possible = 0;          // faults without --call, --limit and pruning
  Tally skipped;                     // calls or trials
  Tally pruned;                      // faults that another one stands for
  std::vector<PlannedWay> ways;      // all that are possible and not pruned, in order
};

// What `hows` may hold; K stands for a number.
struct HowWord {
  std::string_view word;
  std::string_view meaning;
};
[[nodiscard]] std::span<const HowWord> HowWords() noexcept;

// Checks `hows` and `calls` before anything runs.
Status CheckPlanOptions(const PlanOptions& options);

// Whether --call asks for this fault.
bool IsChosen(const PlanOptions& options, const std::string& fault);

// `by_site`: faults are addressed by call stack and occurrence there, not by count.
PlannedFaults MakePlan(const CallStates& rehearsal, const PlanOptions& options, bool by_site = false);

// How one call can fail on the way back from an earlier fault; empty for a call that cannot.
std::vector<faults::Fault> WaysWhileUnwinding(const faults::Record& record);

// The same fault, addressed by where this call comes from; as it is where that is not known.
void AddressBySite(const CallState& call, faults::Fault* fault);

// The same fault, addressed as the n-th call from this place since the fault before it, on the thread which that one hit.
void AddressAfter(std::uint64_t site, std::uint32_t calls_since, faults::Fault* fault);

std::string TextOf(const faults::Fault& fault);

// One way to fail at one place or in one state: what comes after '#n' in the text is code and how.
std::uint64_t WayAt(const std::string& fault, std::uint64_t where);

}  // namespace cuaudit::harness
