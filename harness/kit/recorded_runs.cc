// SPDX-License-Identifier: MIT
#include "harness/kit/recorded_runs.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>

#include "harness/ledger/arguments.h"
#include "harness/ledger/ledger.h"
#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;
using faults::Record;

using Counts = std::map<std::uint32_t, std::size_t>;  // by process

Counts CallsMade(const Observation& run) {
  const Evidence evidence = run.evidence();
  Counts made;
  for (const std::uint32_t index : evidence.facts().calls) ++made[evidence.record(index).pid];
  return made;
}

std::uint32_t MostOf(const Counts& counts) {
  const auto most = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? 0 : most->first;
}

// How much of what is wanted each process shows in a run without faults.
Counts WrongByProcess(const Observation& run, std::span<const Wrong> wanted) {
  Counts wrong;
  const auto is_wanted = [&](Rule rule, Kind kind) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const Wrong& one) { return one.rule == rule && one.kind == kind; });
  };
  for (const Violation& violation : run.ledger.violations) {
    if (is_wanted(violation.rule, violation.kind)) ++wrong[violation.pid];
  }
  for (const Object& object : run.ledger.objects) {
    if (object.state != State::Released && is_wanted(Rule::LeftAtExit, object.kind)) ++wrong[object.pid];
  }
  return wrong;
}

const Record* FindCall(const Observation& run, const std::function<bool(const Record&)>& matches) {
  const Evidence evidence = run.evidence();
  for (const std::uint32_t index : evidence.facts().calls) {
    if (matches(evidence.record(index))) return &evidence.record(index);
  }
  return nullptr;
}

// The gate counts the calls of an entry point in all processes together.
bool IsSameCall(const Record& a, const Record& b) { return BaseOf(a) == BaseOf(b) && a.occurrence == b.occurrence; }

}  // namespace

std::size_t CallingProcesses(const Observation& run) { return CallsMade(run).size(); }

std::vector<std::uint32_t> ProcessesOf(std::span<const Observation> runs, std::span<const Wrong> wanted) {
  std::vector<std::uint32_t> processes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Observation& run = runs[i];
    const Counts wrong = runs.size() == 1 ? WrongByProcess(run, wanted) : Counts();
    processes.push_back(MostOf(wrong.empty() ? CallsMade(run) : wrong));
    // The first fault of the last run, and in a run before the call that fails next.
    const std::size_t fault = i + 1 == runs.size() ? 1 : i + 1;
    const Record* const failing = FindCall(runs.back(), [&](const Record& record) { return record.fault == fault; });
    if (failing == nullptr) continue;
    const Record* const same = FindCall(run, [&](const Record& record) { return IsSameCall(record, *failing); });
    if (same != nullptr) processes.back() = same->pid;
  }
  return processes;
}

Result<std::vector<Observation>> RecordTrial(const Subject& subject, const WorkDir& dir, const std::vector<std::string>& faults,
                                             int* interrupted) {
  Subject quiet = subject;
  quiet.launch.host_probes = HostProbes::None;
  quiet.launch.stacks_of_objects_only = false;
  std::vector<Observation> runs;
  for (std::size_t count = 0; count <= faults.size(); ++count) {
    const std::string journal = dir.Journal("reduce-" + std::to_string(count) + ".journal");
    const std::span<const std::string> some(faults.data(), count);
    const Result<Launch> launch = PrepareRun(quiet, journal, quiet.record_capacity, some, "/dev/null");
    if (!launch.ok()) return launch.status();
    const Result<Ending> ending = RunToEnd(*launch, interrupted);
    if (!ending.ok()) return ending.status();
    Result<Observation> run = ReadRun(quiet, journal, *ending);
    unlink(journal.c_str());
    if (!run.ok()) return run.status();
    const Status fit = count == 0 ? CheckFaultFree(quiet, *run) : CheckExercised(quiet, *run);
    if (!fit.ok()) return fit;
    runs.push_back(std::move(*run));
  }
  return runs;
}

}  // namespace cuaudit::harness
