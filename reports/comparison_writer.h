// SPDX-License-Identifier: MIT
// comparison_writer.h: an audit that was compared with a base, as text and as JSON (schema/comparison.schema.json).
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "reports/audit.h"

namespace cuaudit::report {

// Why a run says nothing about what it does not show: it was interrupted, failed, or was not exercised. Empty: it does.
std::string WhyNothingProved(const Run& run);

// The same, and of a run that proves something why that is not all: "in part: 3 of 40 planned faults never fired: ...". Findings do not
// stand for what nobody saw (WhyInPart). Trials that --limit left out, or --budget after each place was tried once, are none of it: without
// findings such a run is clean.
std::string WhyNotAllProved(const Run& run);

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
};
Changes CountChanges(const Audit& audit);

// The same for each case: those of the audit in their order, then those that only the base has.
struct CaseChanges {
  std::string case_name;
  Changes changes;
  std::uint64_t not_proved = 0;  // of its reports
};
std::vector<CaseChanges> CountChangesOfCases(const Audit& audit);

// Text for people: what is new first, then what changed and what nobody looked for, and the numbers of the rest. False when the stream
// failed.
bool WriteComparisonText(const Audit& audit, std::ostream& out, bool colour);

inline constexpr char kComparisonSchema[] = "cuaudit.comparison/1";
bool WriteComparisonJson(const Audit& audit, std::ostream& out);

}  // namespace cuaudit::report
