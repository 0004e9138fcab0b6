// SPDX-License-Identifier: MIT
// text_findings.h: writes the findings and notes of a report as text. Findings at one place are written once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/run.h"
#include "reports/text_page.h"

namespace cuaudit::report {

// Findings with the same rule, kind and place of acquisition, and the same place where the finding showed if the rule has one. They
// differ in the call that was made to fail. The pointers are borrowed from the vector that was grouped.
using Group = std::vector<const Finding*>;

// Orders the groups by their first findings.
std::vector<Group> GroupByPlace(const std::vector<Finding>& findings);

// "cuStreamCreate < make_stream src/picture.c:61"
std::string Place(std::string_view call, const std::vector<Frame>& stack);
// "lost when cuEventCreate#2=OUT_OF_MEMORY,refuse failed", "... failed, and then cuCtxPopCurrent#3=INVALID_CONTEXT,refuse"
std::string Failing(const Finding& finding, const Page& page);

void AppendFindings(const std::vector<Group>& groups, Page* page);

// Number of objects that the run left at its end.
enum class Of : std::uint8_t { Driver, Host };
std::uint64_t LeftAtExit(const Run& run, Of of);
// Number of objects that the run never released and that died with their context.
std::uint64_t OrphanedBeforeExit(const Run& run);
void AppendLeftAtExit(const Run& run, Page* page);

// Writes the ways to fail that the sweep did not reach, by reason.
void AppendNotReached(const Run& run, Page* page);

// Writes the number of notes of each rule, and some of the notes. For `cuaudit run`, objects left at exit are below their table instead.
void AppendNotes(const Run& run, Page* page);

void AppendDefects(const Run& run, Page* page);

}  // namespace cuaudit::report
