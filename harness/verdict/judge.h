// SPDX-License-Identifier: MIT
// judge.h: judges one trial by comparing it with the fault-free rehearsal.
//
//   Owns      its findings. Borrows ledgers and journals while judging.
//
// Objects and violations of two runs are matched by SiteKey: the call and its call stack as offsets in modules, so address randomisation
// does not matter. An object that the rehearsal leaves at the same place, in the same number, is process-lifetime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "faults/journal/journal_view.h"
#include "faults/plan/fault.h"
#include "harness/ledger/ledger.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

// How the audited process ended.
struct Ending {
  int exit_status = 0;     // valid when signal is 0
  int signal = 0;          // 0: the process exited
  bool timed_out = false;  // killed by cuaudit at its deadline
  // Processes that the program left in other sessions or groups: running when it ended, those plus the ones that had ended already, and
  // those that could not be killed.
  std::size_t left_behind = 0;
  std::size_t orphans = 0;
  std::size_t survived = 0;
  std::string step = {};  // for a lifecycle in C++ that died: the step that ran
};

struct CycleSteps;
struct NextCycle;

struct Evidence {
  const Ledger* ledger = nullptr;
  const faults::JournalView* journal = nullptr;
  Ending ending;
  // Only for a lifecycle in C++ (steps.h): what the steps of the faulted cycle returned, and the clean cycle afterwards. Both are null for
  // a program, which reports by marks and by its exit status.
  const CycleSteps* steps = nullptr;
  const NextCycle* next = nullptr;

  const Facts& facts() const noexcept { return ledger->facts; }
  const faults::Record& record(std::uint32_t index) const noexcept { return journal->records()[index]; }
  std::uint32_t flags() const noexcept { return journal->header().flags.load(); }
  // Calls and marks of this run alone: all of them, or those since the process was forked for its trial.
  std::span<const std::uint32_t> own_calls() const noexcept;
  std::span<const std::uint32_t> own_marks() const noexcept;
  // The first record that a fault hit, by the number of the fault in the plan from 0; null when it hit none.
  const faults::Record* hit(std::size_t fault) const noexcept;
  const faults::Record* first_hit() const noexcept;  // the first record that any fault hit
  const faults::Record* last_hit() const noexcept;   // of the records that each fault hit first, the last
  // True when the host probes watched every process that called the driver, to its end.
  bool saw_host() const noexcept;
};

// One broken rule. All objects of one kind, acquire site and state are one finding.
struct TrialFinding {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Site acquired;                   // record_kind is Empty when unknown
  Site where;                      // the call where a violation, crash or hang showed; else Empty
  Site other;                      // the call that it collides with; Empty when there is none
  std::uint64_t acquired_key = 0;  // SiteKey of acquired; likewise the next two
  std::uint64_t where_key = 0;
  std::uint64_t other_key = 0;
  Details detail;             // what the title of the rule does not say; may be empty
  bool refused_wait = false;  // a proved misuse that exists only because the plan refused a wait
};

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

class Rehearsed;

struct JudgeOptions {
  bool abandoned_is_leak = false;
  bool exit_is_said = false;       // after a fault, a successful exit status counts as the report "all went well"
  bool nothing_may_stay = false;   // without a rehearsal: driver objects that are left are findings
  bool own_orphans_count = false;  // objects that end with a context of the program itself are orphaned, not relied_on_context
  bool any_code = false;           // the steps of the lifecycle translate errors into their own codes
};

// Judges a trial beside a fault-free run. With `rehearsal` null the trial is judged as a fault-free run: all that it leaves is a note,
// unless nothing may stay.
[[nodiscard]] Judgement Judge(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options);

// Judge for a single trial. `rehearsal` is only used when `faulted` is true.
[[nodiscard]] Judgement Judge(const Evidence& rehearsal, const Evidence& trial, bool faulted, const JudgeOptions& options);

// Identifies a place in every run of the same program: the call, and build id (or path) and offset of each frame.
[[nodiscard]] std::uint64_t SiteKey(const faults::JournalView& journal, const Site& site);

// Identifies only the call instruction, whatever the callers are.
[[nodiscard]] std::uint64_t CallerKey(const faults::JournalView& journal, const Site& site);

// Hash over the driver calls of each thread in order: call, stack, result. Runs with equal hashes made the same calls.
[[nodiscard]] std::uint64_t TraceHash(const Evidence& run);

}  // namespace cuaudit::harness
