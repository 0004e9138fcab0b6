// SPDX-License-Identifier: MIT
// grown.h: two runs of a program, one of few cycles and one of many, as traces, and what is held to grow between them.
//
//   Owns      nothing.
//   Threads   one thread.
//   Units     cycles.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    design section 7, step 5.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/cycle/snapshot.h"
#include "suites/unit/ledger/seen.h"
#include "suites/unit/verdict/journal_image.h"

namespace cuaudit::testing {

// The findings, also noted (seen.h). `program` writes a run of so many cycles.
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
  for (const report::Finding& finding : run.findings) Saw(finding.rule, finding.kind);
  return run;
}

}  // namespace cuaudit::testing
