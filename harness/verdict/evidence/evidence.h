// SPDX-License-Identifier: MIT
// evidence.h: one run as the judge sees it: its records, what they amount to, which function made its calls, and how the
// process ended.
//
//   Owns      nothing. Borrows the ledger and the journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"

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
  // A call of the run, by its number (Facts::calls).
  const faults::Record& call(std::size_t number) const noexcept { return record(facts().calls[number]); }
  // The number of the first call from that ticket on.
  std::size_t first_call_from(std::uint64_t ticket) const noexcept;
  std::uint32_t flags() const noexcept { return journal->header().flags.load(); }
  // Calls, marks and closes of this run alone: all of them, or those since the process was forked for its trial.
  std::span<const std::uint32_t> own_calls() const noexcept;
  std::span<const std::uint32_t> own_marks() const noexcept;
  std::span<const std::uint32_t> own_closes() const noexcept;
  // The call that began at this ticket; null when the run did not make it.
  const faults::Record* call_at(std::uint64_t begin) const noexcept;
  // The first record that a fault hit, by the number of the fault in the plan from 0; null when it hit none.
  const faults::Record* hit(std::size_t fault) const noexcept;
  const faults::Record* first_hit() const noexcept;  // the first record that any fault hit
  const faults::Record* last_hit() const noexcept;   // of the records that each fault hit first, the last
  // True when the host probes watched every process that called the driver, to its end.
  bool saw_host() const noexcept;
};

inline constexpr std::size_t kNoLevel = std::numeric_limits<std::size_t>::max();

// By the return addresses of call stacks: true when the call was made while the function that `frame` called was running.
[[nodiscard]] bool IsWithin(const Evidence& run, const faults::Record& record, std::uint64_t frame);

// The innermost function that made two calls of a thread and all its calls in between, as the index of the frame that called it in the
// stack of the first one; kNoLevel for none. Both are numbers of calls of the run (Facts::calls).
[[nodiscard]] std::size_t SharedLevel(const Evidence& run, std::size_t first, std::size_t last);

// The end of the marked cycle in which the call was made, when the same thread marks it; null for none.
[[nodiscard]] const faults::Record* EndOfCycle(const Evidence& run, const faults::Record& call);

}  // namespace cuaudit::harness
