// SPDX-License-Identifier: MIT
// trial_log.h: finished trials, one JSON object per line, appended as they finish, so that a killed sweep goes on where it was.
//
//   Owns      the open file.
//   Threads   one thread; the work directory's lock keeps other processes away.
//   Errors    one line: file, line number, expectation. A last line that was cut short is dropped and its trial run again; a whole
//             line that makes no sense refuses the file.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/files.h"
#include "harness/sweep/trial.h"

namespace cuaudit::harness {

std::string FormatTrial(const TrialResult& trial);  // one line with its line feed

struct TrialLogContent {
  std::vector<TrialResult> trials;
  std::size_t whole_bytes = 0;  // up to and including the last whole line
};

// `plan`: the fault of each trial; a line that names another fault at that place is refused.
Result<TrialLogContent> ParseTrialLog(std::string_view text, const std::vector<std::string>& plan, const std::string& name);

class TrialLog {
 public:
  // Reads what is there, cuts off an unfinished line, and stands ready to append.
  static Result<TrialLog> Open(const std::string& path, const std::vector<std::string>& plan);

  std::vector<TrialResult>& trials() noexcept { return trials_; }
  Status Append(const TrialResult& trial);

 private:
  std::string path_;
  FileDescriptor file_;
  std::vector<TrialResult> trials_;
};

}  // namespace cuaudit::harness
