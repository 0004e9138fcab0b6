// SPDX-License-Identifier: MIT
// trial_log.h: finished trials, one JSON object per line (log_rows.h), appended as they finish, so that a killed sweep can continue.
//
//   Owns      the open file.
//   Threads   one thread; the lock of the work directory keeps other processes away.
//   Errors    one line: file, line number, expectation. An incomplete last line is dropped and its trial run again. Any other line that
//             makes no sense refuses the file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/files.h"
#include "harness/sweep/log_rows.h"
#include "harness/sweep/run/trial.h"

namespace cuaudit::harness {

struct TrialLogContent {
  std::vector<TrialResult> trials;  // one of each line
  std::size_t whole_bytes = 0;      // up to and including the last complete line
};

// `rows` gets the tables of the log, so that lines can be added to it.
Result<TrialLogContent> ParseTrialLog(std::string_view text, const std::string& name, LogRows* rows = nullptr);

class TrialLog {
 public:
  // Reads the existing lines, cuts off an incomplete one, and prepares to append.
  static Result<TrialLog> Open(const std::string& path);

  // Adds trials that others have finished. They are not written.
  void Add(std::vector<TrialResult> finished);
  // The finished attempts of the trial with that number, in order. A line with other faults is refused.
  Result<std::vector<TrialResult>> Take(std::size_t index, const std::vector<std::string>& faults);
  // Refuses the file when lines were not taken: they belong to another plan.
  Status CheckTaken() const;
  Status Append(const TrialResult& trial);

 private:
  struct Logged {
    TrialResult trial;
    std::size_t line = 0;  // 0: by Add
    bool taken = false;
  };
  void Sort();
  Status NotOfThePlan(const Logged& logged) const;

  std::string path_;
  FileDescriptor file_;
  LogRows rows_;
  std::vector<Logged> logged_;  // by index; attempts of one trial in their order
  std::size_t next_ = 0;        // behind the last one that was taken: trials are taken in order as a rule
  std::size_t left_ = 0;        // not taken
};

}  // namespace cuaudit::harness
