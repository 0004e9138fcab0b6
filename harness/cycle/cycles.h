// SPDX-License-Identifier: MIT
// cycles.h: does the program leave more behind after ten cycles than after one?
//
//   Owns      nothing; journals and outputs go into the work directory.
//   Threads   one thread, one process at a time.
//   Units     cycles.
//   Errors    Status: a run is unfit, or the command has neither {n} nor cycle marks.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/cycle/certificate.h"
#include "harness/cycle/snapshot.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/work_dir.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct CyclesProgress {
  int interrupted = 0;  // by this signal
  std::size_t done = 0;
  std::size_t planned = 0;  // runs of the program, without those that judge its meters
};

// With {n} in the command: one run per count. Without: one run whose own marks (cuaudit/mark.h) tell its cycles apart; then `counts` is
// not looked at. `counts` increases and has at least two entries. When a signal ends it, `run` holds what the runs so far tell.
Status RunCycles(const Subject& subject, const WorkDir& dir, const std::vector<std::uint64_t>& counts,
                 const CertificateOptions& certificate, const std::string& reproduce, report::Run* run, CyclesProgress* progress);

// The end marks of a journal's first and last cycle, as snapshots; fewer than two when fewer cycles were marked.
std::vector<Snapshot> MarkedSnapshots(const Observation& run, SiteTexts* sites);

}  // namespace cuaudit::harness
