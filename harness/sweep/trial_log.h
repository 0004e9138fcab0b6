// SPDX-License-Identifier: MIT
// trial_log.h: finished trials, one JSON object per line, appended as they finish, so that a killed sweep goes on where it was.
//
//   Owns      the open file.
//   Threads   one thread; the work directory's lock keeps other processes away.
//   Errors    one line: file, line number, expectation. A last line that was cut short is dropped and its trial run again; a whole
//             line that makes no sense refuses the file.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/files.h"
#include "harness/sweep/trial.h"

namespace cuaudit::harness {

std::string FormatTrial(const TrialResult& trial);  // one line with its line feed

struct TrialLogContent {
  std::vector<TrialResult> trials;
  std::vector<std::size_t> lines;  // one per trial, counted from 1
  std::size_t whole_bytes = 0;     // up to and including the last whole line
};

Result<TrialLogContent> ParseTrialLog(std::string_view text, const std::string& name);

class TrialLog {
 public:
  // Reads what is there, cuts off an unfinished line, and stands ready to append.
  static Result<TrialLog> Open(const std::string& path);

  // The finished attempts of the trial with that number in the plan, in order. A line with other faults is refused.
  Result<std::vector<TrialResult>> Take(std::size_t index, const std::vector<std::string>& faults);
  // Refuses the file when it has lines that nobody took: trials of another plan.
  Status CheckTaken() const;
  Status Append(const TrialResult& trial);

 private:
  struct Logged {
    TrialResult trial;
    std::size_t line = 0;
  };
  Status NotOfThePlan(std::size_t line) const;

  std::string path_;
  FileDescriptor file_;
  std::map<std::size_t, std::vector<Logged>> logged_;  // by index
};

}  // namespace cuaudit::harness
