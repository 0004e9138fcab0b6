// SPDX-License-Identifier: MIT
// audit_defects.h: the defects of an audit as the writers list them: each cause once, what is new first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/audit.h"

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

struct Tally {
  std::size_t defects = 0;  // that count
  std::size_t fresh = 0;    // new
  std::size_t changed = 0;
  std::size_t unchanged = 0;
  std::size_t suppressed = 0;
  std::size_t expired = 0;  // of those that count: a suppression accepted them until a day that has passed
  std::size_t fixed = 0;
  std::size_t not_run = 0;   // of the base, and nobody looked for them
  std::size_t unproved = 0;  // cases that were not carried out, or have a report that proves nothing
};
Tally TallyOf(const Audit& audit, const std::vector<Listed>& defects);

// "3 defects: 1 new, 2 unchanged; 1 suppressed; 2 fixed, 1 not run". Without defects: "no defects".
std::string Headline(const Audit& audit, const Tally& tally);

// True when the report says something about the program: clean, findings or left.
bool Proves(const Run& run);

// "player" or "player, sweep"; the mode alone for a case without a name.
std::string NameOf(const Case& one, const Run& run);

// "player, decoder and 3 more"; empty when no case has a name.
std::string CasesOf(const Listed& listed);

// " (case player)" or " (cases player, decoder and 3 more)".
std::string InCases(const Listed& listed);

}  // namespace cuaudit::report
