// SPDX-License-Identifier: MIT
// audit_defects.h: the defects of an audit as the writers list them: each cause once, what is new first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reports/audit.h"
#include "reports/message.h"

namespace cuaudit::report {

// A defect with all cases that show it. Defects with one fingerprint are one.
struct Listed {
  const Case* in = nullptr;  // the first case in which it is worst: new rather than unchanged, not suppressed rather than suppressed
  const Run* run = nullptr;
  const Defect* defect = nullptr;
  std::vector<std::string> cases;  // the names of all that show it; the case without a name is left out
};

// What counts first; then new, changed, not compared, unchanged; otherwise in the order of the cases.
std::vector<Listed> ListDefects(const Audit& audit);

// Why a run says nothing about what it does not show: it was interrupted, failed, or was not exercised. Empty: it does.
std::string WhyNothingProved(const Run& run);

// Runs of the base that the audit does not have. A case that is gone as a whole stands there once.
std::vector<NotProved> Missing(const Audit& audit);

// Cases and runs of the audit that prove nothing, or not all, and then those of the base that the audit does not have, each once: a run
// that says no more than its case is left out.
std::vector<NotProved> NothingProved(const Audit& audit);

// Number of defects by change. Suppressed ones are in none of them. What was not run is counted once: cases and runs that NothingProved
// lists, and defects of the base that nobody looked for in the others.
struct Changes {
  std::map<Change, std::uint64_t> defects;
  std::uint64_t suppressed = 0;
  std::uint64_t expired = 0;  // of the other numbers: a suppression accepted them until a day that has passed

  std::uint64_t Count(Change change) const;
};
Changes CountChanges(const Audit& audit);

// The same for each case: those of the audit in their order, then those that only the base has.
struct CaseChanges {
  std::string case_name;
  Changes changes;
  std::uint64_t not_proved = 0;  // of its reports
};
std::vector<CaseChanges> CountChangesOfCases(const Audit& audit);

struct Tally {
  std::size_t defects = 0;  // that count
  std::size_t fresh = 0;    // new
  std::size_t changed = 0;
  std::size_t unchanged = 0;
  std::size_t suppressed = 0;
  std::size_t expired = 0;  // of those that count: a suppression accepted them until a day that has passed
  std::size_t fixed = 0;
  std::size_t not_run = 0;   // as CountChanges counts
  std::size_t unproved = 0;  // cases that were not carried out as a whole, or have a report that proves nothing
  std::size_t cases = 0;     // with a name, that show the defects that count
  LeftOut left_out;
};
Tally TallyOf(const Audit& audit, const std::vector<Listed>& defects);

// "3 defects in 2 cases: 1 new, 2 unchanged; 1 suppressed; 2 fixed, 1 not run". Without defects: "no defects".
std::string Headline(const Audit& audit, const Tally& tally);

// True for what makes the comparison fail (--fail-on), or would by default.
bool FailsOn(const Audit& audit, Change change);

// True for a defect that counts: no suppression accepts it, and the policy fails on what the comparison says of it. A suppression that has
// expired fails under every policy but none: somebody promised to look at it.
bool Fails(const Audit& audit, const Defect& defect);

// True when the report says something about the program: clean, findings or left.
bool Proves(const Run& run);

// "12 trials left out when --budget was spent", and why a report with findings proves less than it should. Empty when a sweep made all
// trials that it had planned.
std::string CutShort(const Run& run);

// True when the report says something about the program and nothing keeps it from saying all.
bool ProvesAll(const Run& run);

// Of a case that was not carried out, or not as a whole: "not run" or "not all run". Otherwise empty.
std::string_view NotRun(const Case& one);

// Why it was not, in words.
std::string WhyNotRun(const Case& one);

// "player" or "player, sweep"; the mode alone for a case without a name.
std::string NameOf(const Case& one, const Run& run);

// The same of what was not run; "the report" when it has neither name nor mode.
std::string NameOf(const NotProved& one);

// "player, decoder and 3 more"; empty when no case has a name.
std::string CasesOf(const Listed& listed);

// " (case player)" or " (cases player, decoder and 3 more)".
std::string InCases(const Listed& listed);

// An identifier of the results of an audit: equal for equal results, whatever file they are in.
//
// SARIF names by it the run that a result was compared with.

// Case, mode and fingerprint of a defect; without a fingerprint a run that proved something.
using ResultKey = std::tuple<std::string, std::string, std::string>;

std::set<ResultKey> ResultKeysOf(const Audit& audit);

// "0123abcd-4567-5890-a123-456789abcdef", as RFC 9562 has identifiers that are made of a name.
std::string GuidOf(const std::set<ResultKey>& keys);

}  // namespace cuaudit::report
