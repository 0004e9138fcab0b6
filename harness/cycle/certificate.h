// SPDX-License-Identifier: MIT
// certificate.h: runs a program for enough cycles to say how small a leak would have been detected, beside a control program without leaks.
//
//   Owns      nothing; journals and outputs go into the work directory.
//   Threads   one thread, one process at a time.
//   Units     bytes per cycle; cycles.
//   Errors    Status: a run is unfit. A bound that cannot be reached is no error: the report says which bound was reached.
#pragma once

#include <cstdint>
#include <string>

#include "harness/cycle/meters.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct CertificateOptions {
  std::uint64_t warm_up = 2;  // cycles that are not judged
  std::uint64_t detect = 0;   // smallest leak to detect in bytes per cycle; 0: judge the readings there are
  std::string control;        // path of the control program; empty: none
};

// Reads "4KiB", "4KiB/cycle", "512" or "2MiB" as bytes. An error names the text and what was expected. An empty text is 0.
Result<std::uint64_t> ParseDetect(std::string_view text);

// Makes one fault-free run. `name` is the path of its journal and output without suffix.
Result<Observation> RunOnce(const Subject& subject, const std::string& name, int* interrupted);

// Fills run->meters. Adds a growth finding for each meter that grows, unless some kind of object grows. `seen` holds the meters of the run
// with the most cycles so far.
Status Certify(const Subject& subject, const WorkDir& dir, const CertificateOptions& options, RunMeters seen, const std::string& reproduce,
               report::Run* run, int* interrupted);

}  // namespace cuaudit::harness
