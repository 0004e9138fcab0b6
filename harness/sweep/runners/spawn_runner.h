// SPDX-License-Identifier: MIT
// spawn_runner.h: runs every trial in a new process. Works for any program and any driver.
//
//   Owns      the running processes and their journals. Journals are removed once they are read, unless `keep`.
//   Threads   one thread; `jobs` processes at a time.
//   Units     records of a journal.
//   Errors    Status: as ProcessPool; a journal that cannot be made or read.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "harness/process/process.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/runners/runner.h"

namespace cuaudit::harness {

struct SpawnOptions {
  std::size_t jobs = 1;
  bool keep = false;            // journals and outputs of the trials stay in the work directory
  std::size_t records = 0;      // capacity of a trial's journal
  const char* name = "trial-";  // files in the work directory are called so, with the number of the trial
  std::size_t forks = 1;        // instead of `jobs`, where a trial is a fork
};

class SpawnRunner final : public Runner {
 public:
  SpawnRunner(const Subject& subject, const WorkDir& dir, const SpawnOptions& options) : subject_(subject), dir_(dir), options_(options) {}

  Status Give(std::vector<TrialOrder> orders) override;
  Result<TrialSeen> Next() override;
  bool idle() const noexcept override { return waiting_.empty() && running_.empty(); }
  int interrupted() const noexcept override { return pool_.interrupted(); }

 private:
  Status StartOne();

  const Subject& subject_;
  const WorkDir& dir_;
  const SpawnOptions options_;
  ProcessPool pool_;
  std::deque<TrialOrder> waiting_;
  std::map<std::size_t, std::string> running_;  // journal by index
};

// The capacity of a trial's journal: eight times the rehearsal, so that a trial with endless retries does not fill the disk before its
// deadline. A number chosen by the user replaces this limit, except the default, which is a limit for the rehearsal.
std::size_t TrialCapacity(const Subject& subject, const Observation& rehearsal);

}  // namespace cuaudit::harness
