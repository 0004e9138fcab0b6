// SPDX-License-Identifier: MIT
// cycles.h: checks whether a program leaves more behind after ten cycles than after one, and parses such numbers of cycles.
//
//   Owns      nothing; journals and outputs go into the work directory.
//   Threads   one thread, one process at a time.
//   Units     cycles.
//   Errors    Status: a run is unfit, or the command has neither {n} nor cycle marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cycle/meters.h"
#include "harness/cycle/snapshot.h"
#include "harness/process/status.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Parses the cycle counts of a comparison and puts them in the place of {n} in a command.
//
//   Errors    ParseCounts answers a Status that names the text and what was expected.

struct CycleCounts {
  std::vector<std::uint64_t> given;  // increasing, at least two
  std::uint64_t most = 0;            // cycles of a run at most, when the counts go on
};

// Reads "1,10": at least two increasing counts from 1.
Result<std::vector<std::uint64_t>> ParseCounts(std::string_view text);

bool TakesCount(std::span<const std::string> command);

// Replaces every {n} in every word by the number.
std::vector<std::string> WithCount(std::span<const std::string> command, std::uint64_t count);

// Keeps the first and the last cycle in the rows of a run whose program marks its cycles.
void ShowFirstAndLast(report::Run* run);

struct CyclesProgress {
  int interrupted = 0;  // number of the signal that ended it; 0: none
  std::size_t done = 0;
  std::size_t planned = 0;          // runs of the program, without those that judge its meters
  std::function<void()> told = {};  // called before each of these runs
};

// With {n} in the command there is one run per count, and longer runs while something grows that may be a cache that fills. When a longer
// run fails, it is counted, and the runs before it decide. Otherwise there is one run, whose cycles the program marks (cuaudit/mark.h), and
// `counts` is not used. When a signal ends the check, `run` holds the results so far.
Status RunCycles(const Subject& subject, const WorkDir& dir, const CycleCounts& counts, const CertificateOptions& certificate,
                 const std::string& reproduce, report::Run* run, CyclesProgress* progress);

}  // namespace cuaudit::harness
