// SPDX-License-Identifier: MIT
// trials_writer.h: the trials of a sweep as lines of JSON, for programs. reports/schema/trials.schema.json describes every key.
//
//   Errors    returns false when the stream failed.
//
// The first line is the header, each further line one trial, in the order of the plan. Equal sweeps have equal bytes: nothing in a line
// depends on the time, on the machine, or on which trial ended first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "reports/run.h"

namespace cuaudit::report {

inline constexpr char kTrialsSchema[] = "cuaudit.trials/1";

// What a trial left or did wrong beside the fault-free run, by rule and kind.
struct Difference {
  Rule rule{};
  std::string kind;  // empty: a finding without an object
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// How the process of a trial ended.
struct TrialEnd {
  int exit = 0;
  std::string signal = {};  // "SIGSEGV"; then `exit` says nothing
  bool hung = false;        // it was stopped at its deadline
};

struct TrialRow {
  std::size_t number = 0;
  std::vector<std::string> faults = {};  // in the order in which they fire
  bool fired = false;
  Verdict verdict{};
  Missed missed = Missed::Nothing;  // why nothing is proved
  std::vector<Difference> differs = {};
  std::optional<TrialEnd> end = {};  // absent for a trial in the process that audits
  int attempts = 1;
};

// The header is taken from `run`: command, driver, and the outcome of the sweep, which is empty when a signal ended it.
bool WriteTrials(const Run& run, std::span<const TrialRow> trials, std::ostream& out);

}  // namespace cuaudit::report
