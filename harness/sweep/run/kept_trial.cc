// SPDX-License-Identifier: MIT
#include "harness/sweep/run/kept_trial.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "harness/process/files.h"
#include "harness/recording/recording.h"

namespace cuaudit::harness {
namespace {

std::string RunOfTrial(const std::string& directory, std::size_t faults) {
  return directory + "/run-" + std::to_string(faults) + ".journal";
}

}  // namespace

bool IsKeptTrial(const std::string& directory) {
  std::error_code error;
  return std::filesystem::is_regular_file(RunOfTrial(directory, 0), error);
}

Status KeepRun(const std::string& directory, std::size_t faults, const faults::JournalView& journal) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return {Exit::Usage, directory + ": " + error.message()};
  return WriteFile(RunOfTrial(directory, faults), PackWithoutData(journal), Exit::Failure);
}

Result<std::vector<Observation>> ReadKeptRuns(const std::string& directory, std::size_t faults) {
  std::vector<Observation> runs;
  for (std::size_t count = 0; count <= faults; ++count) {
    const std::string path = RunOfTrial(directory, count);
    Result<Observation> run = ReadObservation(path, Ending());
    if (!run.ok()) return run.status();
    if (run->recording != nullptr || run->ledger.facts.calls.empty()) {
      return Status(Exit::Usage, path + ": expected the journal of a run with " + std::to_string(count) + " faults of the trial");
    }
    runs.push_back(std::move(*run));
  }
  return runs;
}

}  // namespace cuaudit::harness
