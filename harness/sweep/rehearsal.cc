// SPDX-License-Identifier: MIT
#include "harness/sweep/rehearsal.h"

#include <algorithm>
#include <vector>

#include "harness/sweep/site_text.h"

namespace cuaudit::harness {
namespace {

std::vector<const faults::Record*> CallsInOrder(const faults::JournalView& journal) {
  std::vector<const faults::Record*> calls;
  for (const faults::Record& record : journal.records()) {
    if (record.kind == faults::RecordKind::Call && (record.flags & faults::kNested) == 0) calls.push_back(&record);
  }
  std::sort(calls.begin(), calls.end(), [](const faults::Record* a, const faults::Record* b) { return a->begin < b->begin; });
  return calls;
}

}  // namespace

std::string FirstDifference(const faults::JournalView& first, const faults::JournalView& second) {
  const std::vector<const faults::Record*> a = CallsInOrder(first);
  const std::vector<const faults::Record*> b = CallsInOrder(second);
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i) {
    const std::string number = "call " + std::to_string(i + 1) + ": ";
    if (a[i]->call != b[i]->call) return number + CallName(RecordSite(*a[i])) + ", then " + CallName(RecordSite(*b[i]));
    if (a[i]->result != b[i]->result) return number + CallName(RecordSite(*a[i])) + " answered another result";
    if (SiteKey(first, RecordSite(*a[i])) != SiteKey(second, RecordSite(*b[i])))
      return number + CallName(RecordSite(*a[i])) + " from another call stack";
  }
  if (a.size() == b.size()) return "threads took turns in another order";
  return "call " + std::to_string(both + 1) + ": only one run made it (" + std::to_string(a.size()) + " calls, then " +
         std::to_string(b.size()) + ")";
}

Result<Rehearsal> Rehearse(const Subject& subject, const WorkDir& dir, int runs, int* interrupted) {
  Rehearsal rehearsal;
  for (int number = 1; number <= runs; ++number) {
    const std::string name = dir.File("rehearsal-" + std::to_string(number));
    const Result<Launch> launch = PrepareRun(subject, name + ".journal", subject.record_capacity, {}, name + ".log");
    if (!launch.ok()) return launch.status();
    const Result<Ending> ending = RunToEnd(*launch, interrupted);
    if (!ending.ok()) return ending.status();
    Result<Observation> run = ReadObservation(name + ".journal", *ending);
    if (!run.ok()) return run.status();
    Status fit = CheckFaultFree(subject, *run);
    if (!fit.ok()) return fit.With(LastLines(name + ".log", kQuotedLines));
    if (number == 1) {
      rehearsal.run = std::move(*run);
    } else if (TraceHash(rehearsal.run.journal) != TraceHash(run->journal)) {
      rehearsal.drifting = true;
      rehearsal.drift = FirstDifference(rehearsal.run.journal, run->journal);
    }
  }
  return rehearsal;
}

}  // namespace cuaudit::harness
