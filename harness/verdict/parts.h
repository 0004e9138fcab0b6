// SPDX-License-Identifier: MIT
// parts.h: what Judge asks of a trial, question by question. The .cc of its name answers each.
//
//   Owns      findings and groups. Borrows ledgers and journals while judging.
//   Units     bytes; counts of objects. User objects and physical memory count once per reference.
//   Errors    never fails. Where a check is impossible, the answer says why.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "faults/journal/record.h"
#include "faults/plan/fault.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

class Rehearsed;

// surplus.cc: what a trial left or did wrong beyond the rehearsal, grouped by rule, kind and place.

// Objects left at the end of the trial. Each list is in order of acquisition.
struct Leftovers {
  std::vector<TrialFinding> leaks;             // rules leak and orphaned, beyond the rehearsal's count at that place; left_at_exit
  std::vector<TrialFinding> refused;           // release_refused; also what destructors do not free because of a refused release
  std::vector<TrialFinding> retried;           // retained_for_retry: a later release succeeded
  std::vector<TrialFinding> process_lifetime;  // the rehearsal leaves these, too
  std::vector<TrialFinding> relied;            // relied_on_context, beyond the rehearsal's count at that place
  std::vector<TrialFinding> shown;             // host resources of leaks and refused, when nobody asked for host findings (TakeShown)
  std::vector<TrialFinding> unjudged;          // driver objects of vanished child processes, beyond the rehearsal's count at that place
};

// Without a rehearsal (null) everything left is process-lifetime, or left_at_exit when it is a driver object and nothing may stay. With
// one, objects of a child process that wrote no Exit event are unjudged, because it is unknown whether the child ended by itself.
[[nodiscard]] Leftovers CompareObjects(const Rehearsed* rehearsal, const Evidence& trial, const JudgeOptions& options = {});

// Violations of the trial beyond those at the same place of the rehearsal. Without a rehearsal all violations are returned.
[[nodiscard]] std::vector<TrialFinding> CompareViolations(const Rehearsed* rehearsal, const Evidence& trial);

// how_left.cc: what is known of an object that is left: how it stayed, how its release answered, and what kept its destructor from running.

// In production a process without an end was killed, or still runs: what it held may be released yet, or died with it.
[[nodiscard]] bool WasCutOff(const Object& object, const Facts& facts);

// For left_at_exit: gone with its context, held by a thread or process that still ran.
[[nodiscard]] Details HowItStayed(const Object& object, const Facts& facts);

// For a leak whose release the driver declined: "cuMemAddressFree answered INVALID_VALUE". Empty when its record is gone.
[[nodiscard]] Details HowItAnswered(const Evidence& trial, const Site& release);

// Places (SiteKey) where process `pid` was told that it does not get what a call acquires.
[[nodiscard]] std::set<std::uint64_t> RefusedPlaces(const Evidence& trial, std::uint32_t pid);

// True for a call under `after` that made a graph, executable graph or user object. The program was told that the call failed, so nobody
// owes its release, and the user objects that it holds are never destroyed.
[[nodiscard]] bool MakesUnownedHolder(const faults::Record& call);

// The call that keeps a graph or user object alive: its release, which was refused, or one that MakesUnownedHolder. The destructors of user
// objects that it holds then never run. Empty when there is none.
[[nodiscard]] Site KeptFromDestruction(const Evidence& trial);

// Calls of the shared CUDA runtime, by RuntimeCallKey, that came no further than a driver call that the plan refused or denied and that
// is no release: the current context is asked for first, for example. What such a call was to release stays. One call may stand there
// several times.
using CutShort = std::multimap<std::uint64_t, Site>;
[[nodiscard]] CutShort CutShortIn(const Evidence& trial);

// deficit.cc: what a trial gave back without owning it, beside the fault-free run. README.md ("Less than the fault-free run") says what
// counts, and what is no finding.

// Adds findings of the rules deficit and null_released to what the trial did wrong. Where the ledger has blamed a later call for the same
// loss (the owner's release finds nothing left), the finding moves to the call that took it.
void AddDeficits(const Rehearsed& rehearsal, const Evidence& trial, std::vector<TrialFinding>* violations);

// Takes away what is told of objects that a reset has ended under their owner: the deficit among `violations` tells it.
void DropTaken(const Evidence& trial, const std::vector<TrialFinding>& violations, std::vector<TrialFinding>* leaks);

// Takes what a reset ended in a context that an error had ended before, or the last release after such a reset was refused.
[[nodiscard]] std::vector<TrialFinding> TakeLost(const Evidence& trial, std::vector<TrialFinding>* leaks);

// True for the reset of a primary context, which ends all that the process has on a device.
[[nodiscard]] bool ResetsPrimary(const faults::Record& record);

// False when none of the calls can be a deficit, so that no fault-free run need be asked.
[[nodiscard]] bool MayGiveTooMuch(const Evidence& run);

// death.cc: the finding of a run that crashed, aborted or missed its deadline: at which place, and of what.

// Hang, crash or abort. Pass when the process exited by itself.
[[nodiscard]] Verdict DeathOf(const Ending& ending);

// True when a program that hangs outside of the driver may be waiting for the destructor of a user object, which is held by a graph or a
// reference that the program was told it did not get.
[[nodiscard]] bool LacksDestructor(const Evidence& trial);

// `where` is the place of the death itself where the journal has it (faults::RecordKind::Stop): the interrupted code, or the driver call
// that a hanging thread is inside of. Otherwise it is the last driver call, and `detail` says so.
[[nodiscard]] TrialFinding DeathFinding(Verdict verdict, const Evidence& trial);

// said.cc: what the program told its caller about errors, compared with the results of its calls.
//
// A program reports by cuaudit_report (cuaudit/mark.h). Without reports there is only the exit status, which promises nothing about single
// calls: success after a fault is then a finding only on request (exit_is_said).
//
//   swallowed          The program reported success after a call was refused. No finding when as many calls of that entry point succeeded
//                      as in the rehearsal, because then a retry worked. Refused releases do not count: tear-down code often cannot report.
//   spurious_failure   The program reported failure in a cycle without faults in which no call failed.
//   wrong_code         The program reported an error that no call of the cycle returned.
//   output_on_failure  The program reported failure and declared an output as written.

struct Reporting {
  Said said = Said::Nothing;
  std::vector<TrialFinding> findings;
  std::vector<Reason> skipped;  // checks that were not possible

  void AddAtNewPlace(TrialFinding finding);  // one for each place
};

// Judges the reports of a trial in which a fault fired.
[[nodiscard]] Reporting JudgeReporting(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options);

// Judges the reports of a run without faults.
[[nodiscard]] std::vector<TrialFinding> SpuriousFailures(const Evidence& run);

// Refused calls of the cycle, releases included, whose work was never done: fewer calls of the entry point succeeded than in the
// rehearsal's cycle.
[[nodiscard]] std::vector<const faults::Record*> NeverDone(const Rehearsed& rehearsal, const Evidence& trial, std::uint32_t cycle);

// "OUT_OF_MEMORY", or the number when it is no CUresult.
std::string SaidCode(std::uint64_t argument);

// recovery.cc: whether the clean cycle after a faulted one works in the same process.
//
// A program that marks its cycles is checked in the cycle after the last injected call. That cycle must end, report what the same cycle of
// the rehearsal reports, have no failing call that does not fail there, and hold nothing at its end that the rehearsal does not hold.
// For a lifecycle in C++ the clean cycle is separate evidence (steps.h): its steps must succeed, and it must leave what the rehearsal
// leaves.

struct RecoveryCheck {
  Recovery recovery = Recovery::NoFault;
  std::vector<TrialFinding> findings;  // not_recovered, and what the clean cycle of a lifecycle left or did wrong
  std::vector<TrialFinding> excused;   // misuse in the clean cycle of a lifecycle that `excuse` excuses
};

// Of a lifecycle whose faulted cycle ends with these records: whether the clean cycle afterwards proves anything. `given` is true when the
// lifecycle was given its context: after a lost one it can only work if it makes a new context itself.
[[nodiscard]] Recovery RecoveryAfter(std::span<const faults::Fault> faults, bool given, std::span<const faults::Record> records);

// True for a misuse that exists only because of what `trial` was told.
using Excuse = bool (*)(const Evidence& trial, const TrialFinding& misuse);

// A null `excuse` excuses nothing.
[[nodiscard]] RecoveryCheck CheckRecovery(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options, Excuse excuse);

}  // namespace cuaudit::harness
