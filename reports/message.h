// SPDX-License-Identifier: MIT
// message.h: the one line of a report that says what its outcome does not say, and other parts of the model in words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "reports/run.h"

namespace cuaudit::report {

std::string_view Name(Mode mode);  // "sweep"
std::string_view OutcomeName(const Run& run);

// Why the audit would not be clean without what it has found: faults that never fired, counts that are undecided, too little coverage, a
// bad end, or a part that did not take place. Empty: nothing is missing but what --call, --limit or --budget left out on purpose.
std::string WhyInPart(const Message& message);

// Of a sweep with Message::untried, and of its case.
inline constexpr char kUntried[] = "the budget was spent before each place was tried once";

// How many calls or checks were left out for this reason, whatever its part that varies.
std::uint64_t Skipped(const Run& run, Reason why);

// Trials that were planned, and not made because --budget was spent or --limit was reached.
struct LeftOut {
  std::uint64_t over_budget = 0;
  std::uint64_t beyond_limit = 0;
};
LeftOut LeftOutOf(const Run& run);

// "12 trials left out when --budget was spent, 3 beyond --limit". Empty when neither left any out.
std::string Describe(const LeftOut& left_out);

// Why the outcome is not clean; for a clean one what of the plan it is for. Empty when there is nothing to add.
std::string Explanation(const Run& run);

// How a headline says that the outcome is clean: "clean", or "clean for 1 of 44 planned faults" when --call or --limit left out faults that
// no other one stands for.
std::string CleanInWords(const Run& run);

// The explanation as a line that stands alone: "not exercised: no fault fired, ...", "clean; 1 host place left, judged with --host".
std::string MessageLine(const Run& run);

// Number by text; equal texts are added up.
using InWords = std::map<std::string, std::uint64_t>;
InWords Words(const Counted& counts);
InWords Words(const std::map<Verdict, std::uint64_t>& verdicts);
InWords Words(const std::map<Ran, std::uint64_t>& trials);

std::string_view Words(const NotReached& row);

// Notes about host resources that the audit saw but did not judge. Notes of these rules never change the outcome. Each has one note per
// place.
constexpr bool IsHostNote(Rule rule) { return rule == Rule::HostLeft || rule == Rule::HostMisused; }

// "3 host places left, 1 misused, judged with --host"; empty when there are none.
std::string HostNotes(const Run& run);

std::string_view Name(Trend trend);  // "bounded"

// "0.98 to 1 more a cycle, up to 80 cycles", "8 after 10 cycles, no more after 20"; empty for what did not grow.
std::string Describe(const Course& course);

// "2 places grew, and these cycles do not tell a leak from a cache that fills: 160 cycles would".
std::string Describe(const Undecided& undecided);

// "host kernels stood in for 4; 2 launches of kernels did nothing: ..."
std::string Describe(const Kernels& kernels);

// "96.1 %: 124 of 129 ways to fail, 12 of 148 documented errors of these calls"
std::string Describe(const Coverage& coverage);

}  // namespace cuaudit::report
