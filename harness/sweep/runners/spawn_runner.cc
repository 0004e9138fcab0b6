// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/spawn_runner.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace cuaudit::harness {

std::size_t TrialCapacity(const Subject& subject, const Observation& rehearsal) {
  if (subject.record_capacity != faults::kDefaultRecordCapacity) return subject.record_capacity;
  const std::size_t roomy = std::max<std::size_t>(1U << 16, 8 * rehearsal.journal.records().size());
  return std::min(subject.record_capacity, roomy);
}

Status SpawnRunner::Give(std::vector<TrialOrder> orders) {
  // A repeated trial goes first, because its round waits for it.
  const bool again = orders.size() == 1 && orders.front().attempt > 1;
  std::move(orders.begin(), orders.end(), std::inserter(waiting_, again ? waiting_.begin() : waiting_.end()));
  return {};
}

Status SpawnRunner::StartOne() {
  const TrialOrder order = std::move(waiting_.front());
  waiting_.pop_front();
  const std::string name =
      dir_.Journal(options_.name + std::to_string(order.index) + (order.attempt == 1 ? "" : "-attempt-" + std::to_string(order.attempt)));
  const Result<Launch> launch =
      PrepareRun(subject_, name + ".journal", options_.records, order.faults, options_.keep ? name + ".log" : std::string("/dev/null"));
  if (!launch.ok()) return launch.status();
  running_[order.index] = name + ".journal";
  return pool_.Start(order.index, *launch);
}

Result<TrialSeen> SpawnRunner::Next() {
  while (pool_.size() < options_.jobs && !waiting_.empty()) {
    Status started = StartOne();
    if (!started.ok()) return started;
  }
  const Result<ProcessPool::Ended> ended = pool_.WaitAny();
  if (!ended.ok()) return ended.status();
  const auto journal = running_.find(ended->tag);
  Result<Observation> seen = ReadObservation(journal->second, ended->ending);
  if (!seen.ok() && !IsDamaged(seen.status())) return Status(Exit::Failure, seen.status().message());
  if (!options_.keep) unlink(journal->second.c_str());
  running_.erase(journal);
  if (seen.ok()) return TrialSeen{ended->tag, std::move(*seen), Isolation::Spawn, {}};
  // One trial that destroys its journal must not end the sweep: the others stay judged.
  TrialSeen damaged{ended->tag, {}, Isolation::Spawn, {}, Settled{Verdict::NotExercised, Said::Nothing, Missed::Damaged}};
  damaged.seen.ending = ended->ending;
  return damaged;
}

}  // namespace cuaudit::harness
