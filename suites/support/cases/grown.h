// SPDX-License-Identifier: MIT
// grown.h: two runs of a program as traces, one of few cycles and one of many, and the growth that the harness finds between them
// (harness/cycle).
#pragma once

#include <cstdint>
#include <functional>

#include "harness/cycle/snapshot.h"
#include "harness/defect/defects.h"
#include "suites/support/journal_image.h"
#include "suites/support/seen.h"

namespace cuaudit::testing {

// Returns the findings and notes them (seen.h). `program` writes the trace of a run with that number of cycles.
inline report::Run Grown(const std::function<Trace(std::uint64_t cycles)>& program, std::uint64_t few = 1, std::uint64_t many = 10) {
  harness::SiteTexts sites;
  std::vector<harness::Snapshot> snapshots;
  for (const std::uint64_t cycles : {few, many}) {
    const JournalImage image(program(cycles));
    harness::Observation run;
    run.journal = image.view();
    run.ledger = image.ledger();
    snapshots.push_back(harness::TakeSnapshot(run, cycles, harness::kAtExit, &sites));
  }
  report::Run run;
  harness::CompareSnapshots(snapshots, "", &run);
  for (const report::Finding& finding : run.findings) Saw(Name(finding.rule), finding.kind);
  harness::FindDefects(&run);
  SawDefects(run.defects.size());
  return run;
}

}  // namespace cuaudit::testing
