// SPDX-License-Identifier: MIT
// cycles.h: does the program leave more behind after ten cycles than after one?
//
//   Owns      nothing; journals and outputs go into the work directory.
//   Threads   one thread, one process at a time.
//   Units     cycles.
//   Errors    Status: a run is unfit, or the command has neither {n} nor cycle marks.
//   Faults    makes no driver calls.
//   Source    design section 7, step 5.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cycle/certificate.h"
#include "harness/cycle/snapshot.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/work_dir.h"
#include "reports/run.h"

namespace cuaudit::harness {

// With {n} in the command: one run per count. Without: one run whose own marks (cuaudit/mark.h) tell its cycles apart; then `counts` is
// not looked at. `counts` increases and has at least two entries.
Status RunCycles(const Subject& subject, const WorkDir& dir, const std::vector<std::uint64_t>& counts,
                 const CertificateOptions& certificate, const std::string& reproduce, report::Run* run, int* interrupted);

// The end marks of a journal's first and last cycle, as snapshots; fewer than two when fewer cycles were marked.
std::vector<Snapshot> MarkedSnapshots(const Observation& run, SiteTexts* sites);

}  // namespace cuaudit::harness
