// SPDX-License-Identifier: MIT
// certificate.h: runs a program for as many cycles as it takes to say how small a leak would have been seen, beside a control arm.
//
//   Owns      nothing; journals and outputs go into the work directory.
//   Threads   one thread, one process at a time.
//   Units     bytes per cycle; cycles.
//   Errors    Status: a run is unfit. A bound that cannot be reached is no error: the report says which was.
//   Faults    makes no driver calls; the programs it starts do.
#pragma once

#include <cstdint>
#include <string>

#include "harness/cycle/meters.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/work_dir.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct CertificateOptions {
  std::uint64_t warm_up = 2;  // cycles that are not judged
  std::uint64_t detect = 0;   // bytes per cycle that are to be seen, 0: judge what there is
  std::string control;        // path of the lifecycle that does nothing; empty: none
};

// "4KiB", "4KiB/cycle", "512", "2MiB" to bytes; a Status that names the text and what was expected. Empty is 0: nothing was asked.
Result<std::uint64_t> ParseDetect(std::string_view text);

// One fault-free run, named after the file that its journal and output go to.
Result<Observation> RunOnce(const Subject& subject, const std::string& name, int* interrupted);

// Fills run->meters, and a growth finding for each meter that grows when no kind of object does. `seen`: the meters of the run with the
// most cycles so far.
Status Certify(const Subject& subject, const WorkDir& dir, const CertificateOptions& options, RunMeters seen, const std::string& reproduce,
               report::Run* run, int* interrupted);

}  // namespace cuaudit::harness
