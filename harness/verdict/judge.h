// SPDX-License-Identifier: MIT
// judge.h: what one trial amounts to, seen beside the fault-free rehearsal.
//
//   Owns      its findings; borrows ledgers and journals while judging.
//   Threads   values; no shared state.
//   Errors    never fails.
//   Faults    makes no driver calls.
//
// Objects and violations are matched between two runs by SiteKey: call and call stack as module-relative addresses, so address
// randomisation does not matter. What the rehearsal leaves at a site too, in the same number, is process-lifetime.
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
  int exit_status = 0;     // meaningful when signal == 0
  int signal = 0;          // 0: exited
  bool timed_out = false;  // we killed it at its deadline
  // Processes in a session or group of their own that it left: those that still ran, with them those that had ended, and those that could
  // not be ended.
  std::size_t left_behind = 0;
  std::size_t orphans = 0;
  std::size_t survived = 0;
  std::string step = {};  // of a lifecycle in C++ that died: the step in which it did
};

struct CycleSteps;
struct NextCycle;

struct Evidence {
  const Ledger* ledger = nullptr;
  const faults::JournalView* journal = nullptr;
  Ending ending;
  // Of a lifecycle in C++ (steps.h): what the steps of its faulted cycle answered, and the clean cycle afterwards, where there was one.
  // Null: a program, which speaks by its marks and its exit status.
  const CycleSteps* steps = nullptr;
  const NextCycle* next = nullptr;

  const Facts& facts() const noexcept { return ledger->facts; }
  const faults::Record& record(std::uint32_t index) const noexcept { return journal->records()[index]; }
  std::uint32_t flags() const noexcept { return journal->header().flags.load(); }
  // What the program called and marked in this run alone: all of it, or since the process was forked for its trial.
  std::span<const std::uint32_t> own_calls() const noexcept;
  std::span<const std::uint32_t> own_marks() const noexcept;
  // The first record that a fault hit, by its number in the plan from 0; null: none.
  const faults::Record* hit(std::size_t fault) const noexcept;
  const faults::Record* first_hit() const noexcept;  // of all faults
  // Host probes looked at every process that called the driver, to its end.
  bool saw_host() const noexcept;
};

// One broken rule with all objects of one kind, acquire site and state taken together.
struct TrialFinding {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Site acquired;                   // record_kind Empty when unknown
  Site where;                      // violation, crash or hang: the call at which it showed; record_kind Empty otherwise
  Site other;                      // what it collides with; record_kind Empty when there is nothing
  std::uint64_t acquired_key = 0;  // SiteKey of the three
  std::uint64_t where_key = 0;
  std::uint64_t other_key = 0;
  std::string detail;  // what the rule's title does not say; may be empty
};

struct Judgement {
  Verdict verdict = Verdict::NotExercised;
  bool fired = false;
  bool unjudged = false;  // a child process vanished with driver objects: without findings the verdict is NotExercised
  Site fault_site;        // of the first injected call
  std::uint64_t fault_key = 0;
  std::vector<TrialFinding> findings;  // rules of level Finding
  std::vector<TrialFinding> notes;     // rules of level Note
  Said said = Said::Nothing;
  Recovery recovery = Recovery::NoFault;
  std::vector<Reason> skipped;  // checks that could not be made
};

class Rehearsed;

struct JudgeOptions {
  bool abandoned_is_leak = false;
  bool exit_is_said = false;  // an exit status of success after a fault is a promise that all went well
  bool any_code = false;      // the steps of the lifecycle translate errors into codes of their own
};

// Of a trial beside a fault-free run; without one (null) the trial is judged as a run without faults, and nothing is process-lifetime.
[[nodiscard]] Judgement Judge(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options);

// The same for callers who judge one trial only. `faulted` false: `rehearsal` is not looked at.
[[nodiscard]] Judgement Judge(const Evidence& rehearsal, const Evidence& trial, bool faulted, const JudgeOptions& options);

// The same value for the same place in any run of the same program: call, module build id (or path) and offsets of all frames.
[[nodiscard]] std::uint64_t SiteKey(const faults::JournalView& journal, const Site& site);

// The same for the call instruction alone, whichever way led there.
[[nodiscard]] std::uint64_t CallerKey(const faults::JournalView& journal, const Site& site);

// Over the driver calls of each process and thread in order: call, stack, result. Equal hashes: the program did the same.
[[nodiscard]] std::uint64_t TraceHash(const Evidence& run);

}  // namespace cuaudit::harness
