// SPDX-License-Identifier: MIT
// text_findings.h: findings and notes of a report as text: what happened at one place is told once.
//
//   Owns      groups borrow the findings they were made from.
//   Threads   safe on different pages.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <vector>

#include "reports/run.h"
#include "reports/text_page.h"

namespace cuaudit::report {

// Findings of one rule about one kind, acquired at one place and, where the rule has such, seen at one place. They differ in the call
// that was made to fail.
using Group = std::vector<const Finding*>;

// In the order of each group's first finding.
std::vector<Group> GroupByPlace(const std::vector<Finding>& findings);

void AppendFindings(const std::vector<Group>& groups, Page* page);

// How many objects the run left at its end, and from which places.
enum class Of : std::uint8_t { Driver, Host };
std::uint64_t LeftAtExit(const Run& run, Of of);
// How many it never released that died with their context.
std::uint64_t OrphanedBeforeExit(const Run& run);
void AppendLeftAtExit(const Run& run, Page* page);

// What a sweep could have failed and did not, by reason.
void AppendNotReached(const Run& run, Page* page);

// Counts per rule, and some notes of each. For `run`, what is left at exit stands under its table instead.
void AppendNotes(const Run& run, Page* page);

}  // namespace cuaudit::report
