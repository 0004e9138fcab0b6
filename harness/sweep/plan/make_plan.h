// SPDX-License-Identifier: MIT
// make_plan.h: chooses the faults of a sweep from the calls of the fault-free run, in a stable order.
//
//   Errors    CheckPlanOptions names what it did not understand. Calls that are left out are counted by reason.
//
// The order is that of CallStates. README.md says which faults are pruned, and which of these are tried all the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/process/status.h"
#include "harness/sweep/plan/call_state.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

enum class Pruning : std::uint8_t {
  None,
  Second,  // second faults only: by exact state, and by the shape of the unwinding
  All,     // first faults, too; states are coarse, so a loop is tried for its first turns. Never for calls of an interpreter
};

constexpr StatesAre StatesFor(Pruning prune) { return prune == Pruning::All ? StatesAre::Coarse : StatesAre::Exact; }

// A second fault that another one stands for.
struct StoodFor {
  std::uint64_t shape = 0;
  std::size_t after = 0;  // number of the first fault's trial
};

// One in twenty, but at least so many that a short sweep leaves out nothing.
constexpr std::size_t SpreadBudget(std::size_t stood_for, std::size_t at_least) { return std::max(at_least, stood_for / 20); }

// One answer per row: whether it is tried all the same. Rows of one trial stand together.
[[nodiscard]] std::vector<bool> Spread(std::span<const StoodFor> rows, std::size_t budget);

struct PlanOptions {
  std::vector<std::string> hows = {"refuse"};
  bool all_codes = false;
  std::vector<std::string> calls;  // base entry points; empty: all
  std::size_t limit = 0;           // number of trials; 0: no limit
  Pruning prune = Pruning::Second;
  std::size_t spread_at_least = 32;  // second faults that are tried although an equal unwinding stands for them
};

struct WayToFail {
  std::string fault;  // text of the fault
  std::uint64_t site = 0;
  faults::Phase phase = faults::Phase::Any;
  bool unwinding = false;  // while unwinding from an earlier fault; false once the program recovered
};

// A fault that is possible and not pruned.
struct PlannedWay {
  WayToFail way;
  std::uint64_t state = 0;        // the state in which it hits; 0: unknown
  Reason why_not = Reason::None;  // why it is not tried; None: it is tried
  std::size_t trial = 0;          // number in PlannedFaults::faults
};

struct PlannedFaults {
  std::vector<std::string> faults;
  std::vector<std::uint64_t> sites;  // per fault the SiteKey of its call; 0 when the stack was not recorded
  std::size_t possible = 0;          // faults before --call, --limit and pruning
  Tally skipped;                     // calls or trials
  Tally pruned;                      // faults that another one stands for
  std::vector<PlannedWay> ways;      // all possible faults that are not pruned, in order
};

// A word that `hows` may hold. K stands for a number.
struct HowWord {
  std::string_view word;
  std::string_view meaning;
};
[[nodiscard]] std::span<const HowWord> HowWords() noexcept;

// Checks `hows` and `calls` before anything runs.
Status CheckPlanOptions(const PlanOptions& options);

// True when --call selects faults of this call.
bool IsChosen(const PlanOptions& options, driver::BaseId base);

// With `by_site` faults are addressed by call stack and occurrence there instead of by count.
PlannedFaults MakePlan(const CallStates& rehearsal, const PlanOptions& options, bool by_site = false);

// Gets the faults of a plan one by one, in order: the text, which lasts until it returns, and the site.
using FaultSink = std::function<void(std::string_view fault, std::uint64_t site)>;

// The faults of MakePlan for who only writes them down, so that ten million of them take no memory. Answers how many there are.
std::uint64_t ListFaults(const CallStates& rehearsal, const PlanOptions& options, bool by_site, const FaultSink& sink);

// The ways in which one call can fail while the program unwinds: refused, and some also carried out and denied; none when the call cannot
// fail. A sweep asks of millions of calls, so they are not in a vector.
struct WaysBack {
  faults::Fault way[2];
  std::size_t count = 0;
  std::span<faults::Fault> all() noexcept { return {way, count}; }
};
WaysBack WaysWhileUnwinding(const faults::Record& record);

// Addresses the fault by the call's site. Leaves it unchanged when the site is unknown.
void AddressBySite(const CallState& call, faults::Fault* fault);

// Addresses the fault as the n-th call from this site after the previous fault, on the thread which that fault hit.
void AddressAfter(std::uint64_t site, std::uint32_t calls_since, faults::Fault* fault);

std::string TextOf(const faults::Fault& fault);

// The call that a fault in text form makes fail: "cuMemAlloc".
std::string CallInText(const std::string& fault);

// Hash of one way to fail at one place or in one state: of code and how. No other part of the fault counts.
std::uint64_t WayAt(const faults::Fault& fault, std::uint64_t where);
std::uint64_t WayAt(const std::string& fault, std::uint64_t where);  // of its text

}  // namespace cuaudit::harness
