// SPDX-License-Identifier: MIT
// defect_shown.h: what a CallList shows on the simulated driver, judged by the engine that judges programs and lifecycles; and the defect
// of a result that it is to show.
//
//   Owns      the names of places, which all lists share.
//   Threads   one thread.
//   Errors    Status: there is no world.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "faults/driver/kinds.h"
#include "harness/kit/call_list.h"
#include "harness/process/status.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/verdict.h"
#include "reports/audit.h"
#include "reports/run.h"

namespace cuaudit::harness {

class CallReplay;

// What is wrong, without places.
struct Wrong {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;

  friend bool operator==(const Wrong&, const Wrong&) = default;
};

struct DefectShown {
  std::vector<Wrong> wrong;                                 // each rule and kind once, in the order of rule and kind
  std::array<std::uint64_t, driver::kKindCount> left = {};  // objects that the run without faults leaves
  std::vector<const Step*> unlike;  // calls that fail, without a fault of their own, and did not when they were recorded
  std::string why_nothing;          // why the trial shows nothing at all; empty: the faults fired
};

// Puts together what has the same rule and kind.
std::vector<Wrong> Together(std::vector<Wrong> wrong);

class DefectJudge {
 public:
  explicit DefectJudge(const JudgeOptions& options) : options_(options) {}

  Result<DefectShown> Look(const CallList& list);
  // What a trial leaves is compared with what the run without faults leaves at the same place. See CallReplay for `one_place`.
  void CallFrom(bool one_place) noexcept { one_place_ = one_place; }
  std::size_t looks() const noexcept { return looks_; }

 private:
  Result<DefectShown> LookAtTrial(const CallList& list, CallReplay& replay);
  Result<DefectShown> LookWithoutFaults(CallReplay& replay);

  const JudgeOptions options_;
  bool one_place_ = false;
  SiteTexts sites_;
  std::size_t looks_ = 0;
};

// The defect of a result that is to be reduced, and what of it driver calls alone can show.
//
//   Owns      plain values and a share of the report.
//   Errors    Status: no such defect, or one that no driver call shows; Exit::Usage.

struct WantedDefect {
  report::Run run;  // the report that has it
  report::Defect defect;
  report::Finding root;  // the finding that shows it with the fewest faults
  std::vector<std::string> faults;
  std::vector<Wrong> wanted;           // Together, with counts of one trial; what a run without faults leaves is LeftAtExit
  std::vector<report::Acquired> lost;  // where what is wanted was acquired; empty: the rules name no such place
  std::vector<std::string> left_out;   // "host_heap 2: ..."
};

Result<WantedDefect> FindDefect(const report::Audit& audit, const std::string& fingerprint, const std::string& source);

// Whether two places are the same call below the same call stack.
bool IsSamePlace(const report::Acquired& a, const report::Acquired& b);

// Takes the counts of this one trial: a finding of a sweep has the most of all its trials, and other defects of the trial may lose objects
// of the same kind. An error when `replayed` lacks one.
Status TakeCounts(const report::Run& replayed, WantedDefect* defect);

// What a report shows under these faults, in the same form.
std::vector<Wrong> WrongIn(const report::Run& run, const std::vector<std::string>& faults);

// What grows is LeftAtExit in `wanted` and has its own rule in a report.
Rule RuleInReport(const WantedDefect& defect, const Wrong& wrong);

// True when a rule of the defect compares places: what code gives back must be what the same code took.
bool IsByPlace(const WantedDefect& defect);

// "leak 1 stream, deficit 1 context_stack_entry"
std::string InWords(const WantedDefect& defect, const std::vector<Wrong>& wrong);

}  // namespace cuaudit::harness
