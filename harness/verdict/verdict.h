// SPDX-License-Identifier: MIT
// verdict.h: what is judged of one trial: the possible verdicts, the reasons why less was tried or judged than planned, and the options.
//
// reports/words holds the enumerations and their words. The harness only compares and passes on enumerators.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/ledger/rules.h"
#include "harness/verdict/evidence/finding.h"
#include "reports/words/words.h"

namespace cuaudit::harness {

using words::Because;
using words::Counted;
using words::Fallback;
using words::Filled;
using words::Graver;
using words::Isolation;
using words::kMissed;
using words::kReasonGroups;
using words::kReasons;
using words::kVerdictCount;
using words::kVerdicts;
using words::Missed;
using words::MissedRow;
using words::Named;
using words::Reason;
using words::ReasonRow;
using words::Verdict;
using words::VerdictOf;
using words::VerdictRow;
using words::Words;

// What the program reported about the faulted cycle.
enum class Said : std::uint8_t { Nothing, Success, Failure };

// Of a trial in which nothing is wrong or worth a note.
constexpr Verdict VerdictOf(Said said) { return said == Said::Success ? Verdict::Absorbed : Verdict::Pass; }

// Whether the clean cycle after the faulted one was checked, and if not, why.
enum class Recovery : std::uint8_t { NoFault, Checked, NoMarks, NoCycleAfter, GaveUp, Refused, Died, GivenContext, LostKept, OlderContext };

// Number of times that something was left out, by reason.
using Tally = std::map<Reason, std::uint64_t>;
using TallyInWords = std::map<std::string, std::uint64_t>;  // of a lifecycle's Audit

inline void Count(Reason reason, std::uint64_t count, TallyInWords* to) { (*to)[Words(reason)] += count; }
inline void Count(Reason reason, std::uint64_t count, Counted* to) { (*to)[Because{reason}] += count; }
template <typename Counts>
void Count(const Tally& tally, Counts* to) {
  for (const auto& [reason, count] : tally) Count(reason, count, to);
}

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

struct JudgeOptions {
  bool abandoned_is_leak = false;
  bool exit_is_said = false;       // after a fault, a successful exit status counts as the report "all went well"
  bool nothing_may_stay = false;   // without a rehearsal: driver objects that are left are findings
  bool own_orphans_count = false;  // objects that end with a context of the program itself are orphaned, not relied_on_context
  bool any_code = false;           // the steps of the lifecycle translate errors into their own codes
};

}  // namespace cuaudit::harness
