// SPDX-License-Identifier: MIT
// defect_words.h: defects in words, for all writers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reports/run.h"

namespace cuaudit::report {

// The first finding of the first member: it shows the defect with the fewest faults.
const Finding& RootOf(const Run& run, const Defect& defect);

// "leak, not_recovered": each rule once, in the order of the members.
std::string RulesOf(const Run& run, const Defect& defect);

// "1 context, 7 host_heap (640 bytes)": what is lost, by kind in the order of the members. Empty when nothing has a kind.
std::string AmountOf(const Run& run, const Defect& defect);

// "close_device returned without cuCtxDestroy". Empty when nobody is blamed, or when a call is wrong by itself and shows who made it.
std::string BlameOf(const Run& run, const Defect& defect);

std::string_view Name(BlamedBecause because);  // "held_it"

// What the other call of a finding did: "collides with", "destroyed by".
std::string_view OtherIs(Rule rule);

// True when an entry of the suppressions file accepts it and has not expired.
bool IsSuppressed(const Defect& defect);

// "3 defects, 438 findings"; "1 defect" when it is one finding. Without suppressed ones, whose number comes behind: "1 defect; 2
// suppressed".
std::string DefectCount(const Run& run);

// "2 defects suppressed"; empty when there are none.
std::string SuppressedCount(const Run& run);

// "suppressed until 2027-03-31 by ann: waits for the driver (suppressions.toml:7)", "its suppression expired on ..."; empty when no entry
// fits.
std::string SuppressionOf(const Defect& defect);

// "taken for open_device of the base (function renamed), v2-0123456789abcdef: open_device -> device_open src/device.c:3". Where the blamed
// function is another one than the acquiring one, both are told of the new program: either of them may be what has another name.
std::string Describe(const Run& run, const Defect& defect, const TakenFor& one);

// Driver objects of left_at_exit.
std::uint64_t ObjectsLeft(const Run& run);

}  // namespace cuaudit::report
