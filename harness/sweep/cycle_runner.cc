// SPDX-License-Identifier: MIT
#include "harness/sweep/cycle_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "faults/plan/cycle_file.h"

namespace cuaudit::harness {
namespace {

using faults::Fault;
using faults::Record;
using faults::RecordKind;

bool StopsWithTheCall(faults::How how) {
  return how == faults::How::Refuse || how == faults::How::RefuseGarbage || how == faults::How::After;
}

}  // namespace

std::string WhyUnfitForCycles(const Rehearsal& rehearsal) {
  if (rehearsal.drifting) return "two fault-free runs differ";
  std::set<std::pair<std::uint32_t, std::uint32_t>> threads;
  bool reports = false;
  for (const Record& record : rehearsal.run.journal.records()) {
    if (record.kind == RecordKind::Call) threads.emplace(record.pid, record.tid);
    reports = reports || (record.kind == RecordKind::Mark && record.call == static_cast<std::uint16_t>(faults::MarkKind::Report));
  }
  if (threads.size() != 1) return "several threads call the driver";
  if (rehearsal.run.ending.orphans != 0) return "a process of the program outlives the one that started it";
  const Cycles cycles(rehearsal.run.journal);
  if (cycles.count() == 0) return "the program marks no cycles";
  if (!reports) return "the program does not report from its cycles (cuaudit_report)";
  if (SteadyFrom(cycles) == 0) return "the program does not do the same in two cycles that follow one another";
  return {};
}

CycleRunner::CycleRunner(const Subject& subject, const WorkDir& dir, const SpawnOptions& options, const Rehearsal& rehearsal,
                         std::unique_ptr<Runner> other)
    : subject_(subject),
      dir_(dir),
      options_(options),
      rehearsal_(rehearsal.run.journal),
      cycles_(rehearsal.run.journal),
      unfit_(WhyUnfitForCycles(rehearsal)),
      steady_(unfit_.empty() ? SteadyFrom(cycles_) : 0),
      other_(std::move(other)) {}

// Why it has to run elsewhere; empty: it is armed.
std::string CycleRunner::Arm(const TrialOrder& order, Armed* armed) const {
  if (!unfit_.empty()) return unfit_;
  if (order.attempt > 1) return "the fault hit another place";
  if (order.faults.size() > faults::kCycleFaults) return "too many faults for a cycle";
  for (const std::string& text : order.faults) {
    Fault fault;
    if (faults::ParseFault(text, &fault).expected != nullptr || fault.site != 0) return "the fault is addressed by site";
    if (const faults::HostFaultRow* const host = faults::HostFaultOf(fault.base)) return std::string(host->what) + " is refused";
    if (fault.phase != faults::Phase::Any) return "the fault is addressed by phase";
    if (!StopsWithTheCall(fault.how)) return "the fault would outlast its cycle";
    armed->faults.push_back(fault);
  }
  const Fault& first = armed->faults.front();
  for (const Record& record : rehearsal_.records()) {
    const bool call = record.kind == RecordKind::Call && record.begin != 0 && record.call < driver::kCallCount;
    if (!call || record.occurrence != first.occurrence) continue;
    if (driver::BaseOf(static_cast<driver::CallId>(record.call)) != first.base) continue;
    const bool inside = record.cycle >= steady_ && record.cycle > 0 && record.cycle + 1 <= cycles_.count() &&
                        record.begin > cycles_.BeginOf(record.cycle) && record.begin < cycles_.EndOf(record.cycle);
    if (inside) armed->as = record.cycle;
  }
  if (armed->as == 0) return "the call is outside the cycles that repeat";
  for (Fault& fault : armed->faults) {
    const std::uint32_t before = cycles_.CallsBefore(armed->as, fault.base);
    if (fault.occurrence <= before) return "the call is outside the cycles that repeat";
    fault.occurrence -= before;
  }
  armed->order = order;
  return {};
}

Status CycleRunner::Give(std::vector<TrialOrder> orders) {
  for (TrialOrder& order : orders) {
    Armed armed;
    const std::string why = Arm(order, &armed);
    if (why.empty()) {
      waiting_.push_back(std::move(armed));
      continue;
    }
    why_[order.index] = why;
    Status given = other_->Give({std::move(order)});
    if (!given.ok()) return given;
  }
  return {};
}

// As many trials as the program has pairs of cycles from the one on that they all stand for.
Status CycleRunner::RunOne() {
  const std::uint32_t as = waiting_.front().as;
  std::vector<Armed> trials;
  std::string file(sizeof(faults::CycleHeader), '\0');
  for (std::uint32_t cycle = as; cycle + 1 <= cycles_.count() && !waiting_.empty() && waiting_.front().as == as; cycle += 2) {
    faults::CycleRow row;
    row.cycle = cycle;
    row.faults = static_cast<std::uint32_t>(waiting_.front().faults.size());
    std::copy(waiting_.front().faults.begin(), waiting_.front().faults.end(), row.fault);
    file.append(reinterpret_cast<const char*>(&row), sizeof(row));
    trials.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  faults::CycleHeader header{};
  std::memcpy(header.magic, faults::kCycleMagic, sizeof(header.magic));
  header.table_digest = driver::TableDigest();
  header.file_bytes = file.size();
  header.rows = trials.size();
  std::memcpy(file.data(), &header, sizeof(header));
  const std::string name = dir_.File("cycles-" + std::to_string(++runs_));
  Status written = WriteFile(name + ".cycles", file, Exit::Failure);
  if (!written.ok()) return written;
  const Result<Launch> launch = PrepareRun(subject_, name + ".journal", options_.records, {},
                                           options_.keep ? name + ".log" : std::string("/dev/null"), "cycles=" + name + ".cycles");
  if (!launch.ok()) return launch.status();
  Status started = pool_.Start(0, *launch);
  if (!started.ok()) return started;
  const Result<ProcessPool::Ended> ended = pool_.WaitAny();
  if (!ended.ok()) return ended.status();
  Result<Observation> run = ReadObservation(name + ".journal", ended->ending);
  if (!run.ok()) return {Exit::Failure, run.status().message()};
  if (!options_.keep) {
    unlink((name + ".journal").c_str());
    unlink((name + ".cycles").c_str());
  }
  Take(std::make_shared<const Observation>(std::move(*run)), std::move(trials), as);
  return {};
}

void CycleRunner::Elsewhere(std::vector<Armed> trials, const char* why) {
  for (Armed& one : trials) {
    why_[one.order.index] = why;
    (void)other_->Give({std::move(one.order)});
  }
}

void CycleRunner::Take(const std::shared_ptr<const Observation>& of, std::vector<Armed> trials, std::uint32_t first) {
  const Observation& run = *of;
  if (run.ending.left_behind != 0) return Elsewhere(std::move(trials), "a cycle left a process behind, tried again");
  const Cycles cycles(run.journal);
  const bool dropped = (run.flags() & faults::kRecordsDropped) != 0;
  const bool whole =
      !dropped && cycles.count() == cycles_.count() && cycles.Ended(cycles.count()) && run.ending.signal == 0 && !run.ending.timed_out;
  const auto cycle_of = [&](std::size_t i) { return first + 2 * static_cast<std::uint32_t>(i); };
  std::size_t counted = 0;  // trials from the first on whose result is their own
  if (whole) {
    while (counted < trials.size() && MayGoOn(run, cycles, cycle_of(counted), trials[counted].as, cycles_)) ++counted;
    if (counted < trials.size()) ++counted;  // its own result all the same, those after it are not
    for (std::size_t i = 0; i < counted; ++i) {
      ready_.push_back({trials[i].order.index, SliceOf(of, cycles, first, cycle_of(i), trials[i].as, cycles_, false), "cycle", {}});
    }
  }
  // The process ended early: by the last trial that it came to.
  std::size_t last = trials.size();
  for (std::size_t i = 0; !whole && i < trials.size(); ++i) {
    if (cycles.count() >= cycle_of(i)) last = i;
  }
  if (!whole && last == 0) {
    ready_.push_back({trials[0].order.index, SliceOf(of, cycles, first, first, trials[0].as, cycles_, true), "cycle", {}});
    counted = 1;
  } else if (!whole && last < trials.size()) {
    std::swap(trials[0], trials[last]);  // alone at the front of a process, it can be blamed for what it does
  } else if (!whole) {
    return Elsewhere(std::move(trials), "the program ended before its cycle");
  }
  for (std::size_t i = trials.size(); i > counted; --i) waiting_.push_front(std::move(trials[i - 1]));
}

Result<TrialSeen> CycleRunner::Next() {
  while (ready_.empty() && !waiting_.empty()) {
    Status ran = RunOne();
    if (!ran.ok()) return ran;
  }
  if (!ready_.empty()) {
    TrialSeen seen = std::move(ready_.front());
    ready_.pop_front();
    return seen;
  }
  Result<TrialSeen> seen = other_->Next();
  const auto why = seen.ok() ? why_.find(seen->index) : why_.end();
  if (why != why_.end()) seen->fallback = why->second + (seen->fallback.empty() ? "" : "; " + seen->fallback);
  return seen;
}

}  // namespace cuaudit::harness
