// SPDX-License-Identifier: MIT
// judge.h: what one trial amounts to, seen beside the fault-free rehearsal.
//
//   Owns      its findings; borrows ledgers and journals while judging.
//   Threads   values; no shared state.
//   Errors    never fails.
//   Faults    makes no driver calls.
//   Source    design section 7: fired, reported, balanced, disciplined, alive.
//
// Objects and violations are matched between two runs by SiteKey: call and call stack as module-relative addresses, so address
// randomisation does not matter. What the rehearsal leaves at a site too, in the same number, is process-lifetime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faults/journal/journal_view.h"
#include "faults/plan/fault.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

enum class Verdict : std::uint8_t {
  Pass,      // fired, reported by the exit status, balanced
  Absorbed,  // fired, balanced, and the program ended like the rehearsal
  Leak,      // rules leak, orphaned
  Misuse,    // double release, use after release, wrong context...
  Crash,
  Abort,
  Hang,
  NotRecovered,      // the clean cycle afterwards failed
  Misreported,       // swallowed, wrong code, output written on failure
  ReleaseRefused,    // only what the refused call itself was to release is left
  RetainedForRetry,  // its release was refused, kept, and released later
  AbandonedAtExit,   // left by exit right after the fault without unwinding
  NotExercised,      // the fault did not fire
  Benign,            // absorbed, and declared to be (decided by the sweep, which knows the declarations)
};
std::string_view Name(Verdict verdict) noexcept;  // "pass", "absorbed", "leak", "misuse", "crash", "abort", "hang", "release_refused", ...

// What the program told its caller about the faulted cycle.
enum class Said : std::uint8_t { Nothing, Success, Failure };

// Whether the clean cycle after the faulted one was looked at, and if not, why.
enum class Recovery : std::uint8_t { NoFault, Checked, NoMarks, NoCycleAfter, GaveUp, Refused, Died };

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
};

struct Evidence {
  const Ledger* ledger = nullptr;
  const faults::JournalView* journal = nullptr;
  Ending ending;
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
};

struct JudgeOptions {
  bool abandoned_is_leak = false;
  bool exit_is_said = false;  // an exit status of success after a fault is a promise that all went well
};

// `faulted` false judges a run without faults: then `rehearsal` is not looked at and nothing is process-lifetime.
[[nodiscard]] Judgement Judge(const Evidence& rehearsal, const Evidence& trial, bool faulted, const JudgeOptions& options);

// The same value for the same place in any run of the same program: call, module build id (or path) and offsets of all frames.
[[nodiscard]] std::uint64_t SiteKey(const faults::JournalView& journal, const Site& site);

// The same for the call instruction alone, whichever way led there.
[[nodiscard]] std::uint64_t CallerKey(const faults::JournalView& journal, const Site& site);

// Over the driver calls of each process and thread in order: call, stack, result. Equal hashes: the program did the same.
[[nodiscard]] std::uint64_t TraceHash(const faults::JournalView& journal);

}  // namespace cuaudit::harness
