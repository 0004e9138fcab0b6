// SPDX-License-Identifier: MIT
// grown.h: runs of a program as traces, one of few cycles and one of many, and the growth that the harness finds between them
// (harness/cycle). While something grows, there are runs of twice as many cycles, as in `cuaudit cycles`.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/cycle/snapshot.h"
#include "harness/defect/defects.h"
#include "suites/support/journal_image.h"
#include "suites/support/seen.h"

namespace cuaudit::testing {

// Returns the result and notes its findings and notes (seen.h). `program` writes the trace of a run with that number of cycles.
inline report::Run Grown(const std::function<Trace(std::uint64_t cycles)>& program, std::uint64_t few = 1, std::uint64_t many = 10,
                         std::uint64_t most = 80) {
  harness::SiteTexts sites;
  std::vector<harness::Snapshot> snapshots;
  for (std::uint64_t cycles = few; cycles != 0; cycles = cycles == few ? many : harness::NextCount(snapshots, most)) {
    const JournalImage image(program(cycles));
    harness::Observation run;
    run.journal = image.view();
    run.ledger = image.ledger();
    snapshots.push_back(harness::TakeSnapshot(run, cycles, harness::kAtExit, &sites));
  }
  report::Run run;
  harness::CompareSnapshots(snapshots, "", &run);
  for (const report::Finding& finding : run.findings) Saw(Name(finding.rule), finding.kind);
  for (const report::Finding& note : run.notes) Saw(Name(note.rule), note.kind);
  harness::FindDefects(&run);
  SawDefects(run.defects.size());
  return run;
}

// The same for a program that leaves `alive` streams after each number of cycles.
inline report::Run GrownTo(const std::function<std::uint64_t(std::uint64_t cycles)>& alive, std::uint64_t most = 80) {
  return Grown(
      [&](std::uint64_t cycles) {
        Trace t;
        for (std::uint64_t i = 1; i <= alive(cycles); ++i) t.CreateStream(i);
        return t;
      },
      1, 10, most);
}

}  // namespace cuaudit::testing
