// SPDX-License-Identifier: MIT
#include "harness/cycle/cycles.h"

#include <utility>

#include "harness/cycle/counts.h"
#include "harness/sweep/findings/aggregate.h"

namespace cuaudit::harness {

Status RunCycles(const Subject& subject, const WorkDir& dir, const std::vector<std::uint64_t>& counts,
                 const CertificateOptions& certificate, const std::string& reproduce, report::Run* run, CyclesProgress* progress) {
  run->mode = report::Mode::Cycles;
  RunMeters meters;
  SiteTexts sites;
  std::vector<Snapshot> snapshots;
  if (TakesCount(subject.command)) {
    progress->planned = counts.size();
    for (const std::uint64_t count : counts) {
      Subject once = subject;
      once.command = WithCount(subject.command, count);
      const Result<Observation> seen = RunOnce(once, dir.Journal("cycles-" + std::to_string(count)), &progress->interrupted);
      if (!seen.ok()) {
        if (snapshots.size() > 1) CompareSnapshots(snapshots, reproduce, run);
        return seen.status();
      }
      ++progress->done;
      snapshots.push_back(TakeSnapshot(*seen, count, kAtExit, &sites));
      if (count != counts.back()) continue;
      DescribeRun(*seen, run);
      AddLeftBehind(seen->ending, "they were ended", run);
      meters = ReadMeters(*seen);
    }
  } else {
    progress->planned = 1;
    const Result<Observation> seen = RunOnce(subject, dir.Journal("cycles"), &progress->interrupted);
    if (!seen.ok()) return seen.status();
    progress->done = 1;
    snapshots = MarkedSnapshots(*seen, Moments::FirstAndLast, &sites);
    if (snapshots.size() < 2) {
      return {Exit::Usage, "expected {n} in the command, or a program that marks at least two cycles (cuaudit/mark.h): it marked " +
                               std::to_string(snapshots.size())};
    }
    DescribeRun(*seen, run);
    AddLeftBehind(seen->ending, "they were ended", run);
    meters = ReadMeters(*seen);
  }
  CompareSnapshots(snapshots, reproduce, run);
  Status certified = Certify(subject, dir, certificate, std::move(meters), reproduce, run, &progress->interrupted);
  if (!certified.ok()) return certified;
  run->outcome = run->findings.empty() ? words::Outcome::Clean : words::Outcome::Findings;
  return {};
}

}  // namespace cuaudit::harness
