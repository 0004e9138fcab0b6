// SPDX-License-Identifier: MIT
// audit.h: the document model of a release audit: the reports of several cases, and what a comparison with a base says of them.
//
// A report of one command is an Audit with one case that has no name. The defects of the cases say themselves how they compare with the
// base (Defect::change) and whether they are suppressed; what only the base has is in Comparison.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/run.h"

namespace cuaudit::report {

// A program with its parameters, and the reports of what was done with it.
struct Case {
  std::string name;  // unique; letters, digits, '.', '_' and '-'. Empty: the only one
  std::vector<std::string> tags;
  std::vector<Run> runs;  // its sweep first, then its cycles; empty: the case was not carried out
  std::string not_run;    // why it was not, in words
};

// A defect of the base that no case of this audit shows.
struct Gone {
  Change change = Change::NotRun;  // Fixed or NotRun
  std::string because;             // why it was not run, in words; empty when it is fixed
  std::string case_name;
  Mode mode = Mode::Unknown;
  std::string fingerprint;
  Rule rule{};
  std::string title;  // the line that the base has for it
};

// A run, or a whole case, that says nothing about what it does not show.
struct NotProved {
  std::string case_name;
  Mode mode = Mode::Unknown;  // Unknown: the case was not carried out
  std::string why;            // in words
};

struct Comparison {
  std::string base;  // as the user named it
  std::vector<Gone> gone;
  std::string base_guid = {};                                                 // of its results (audit_defects.h); empty: unknown
  std::set<Change> fail_on = {Change::New, Change::Changed, Change::NotRun};  // what makes the comparison fail
  std::vector<NotProved> not_run = {};  // runs that prove something in the base and are not in this audit, whether they have defects or not
  std::vector<std::string> warnings = {};  // what of the base cannot be compared, one line each
};

struct Audit {
  std::vector<Case> cases = {};
  std::optional<Comparison> comparison = {};
  std::vector<std::string> unused_suppressions = {};  // file and line of each entry that no defect matched
  std::string generated = {};                         // date, written into headers only: the one field that may differ between equal audits
  std::string tool_version = {};
  std::string project = {};   // file of the cases, whose folder has the sources; empty: unknown
  bool from_archive = false;  // files of this machine are not those that its call stacks name
};

// The sum, or the largest number when the sum is larger.
constexpr std::uint64_t Plus(std::uint64_t a, std::uint64_t b) { return a + b < a ? std::numeric_limits<std::uint64_t>::max() : a + b; }

}  // namespace cuaudit::report
