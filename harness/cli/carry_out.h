// SPDX-License-Identifier: MIT
// carry_out.h: carries out a sweep, a replay or cycles for the options of a session, from the fault-free runs to the report.
//
//   Threads   one thread.
//   Errors    CarriedOut::status. A report without an outcome is that of what was seen until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/options/report_files.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/runners/make_runner.h"
#include "harness/sweep/sweep_engine.h"
#include "reports/run.h"
#include "reports/trials_writer.h"

namespace cuaudit::harness {

struct CarriedOut {
  report::Run run;
  Status status;
  Progressed progressed;                    // progressed.signal: the signal that ended it; 0: none
  bool nothing_anew = false;                // every trial is an earlier sweep's
  bool ended_early = false;                 // by its Spend
  std::size_t new_untried = 0;              // new or changed places that were not tried (EngineOptions::before)
  Progress::Clock::duration run_time = {};  // of a fault-free run of this sweep; zero: none was needed
  std::vector<report::TrialRow> rows;       // of a sweep with --trials
  std::vector<std::string> modules;         // files that call the driver in the fault-free run of a sweep
};

// The engine of a session's trials, and the runner that starts the program when the first trial is waited for.
class SessionTrials {
 public:
  enum class Of : std::uint8_t { Sweep, Replay };  // a replay spawns its trial, whatever isolation is asked for
  SessionTrials(const Session& session, const EngineOptions& sweep, Of of);
  SessionTrials(const SessionTrials&) = delete;
  SessionTrials& operator=(const SessionTrials&) = delete;

  SweepEngine& engine() noexcept { return engine_; }
  // Says how many trials of the plan an earlier sweep has finished, if any.
  void SayResumed() const;
  // Carries out the trials until none is left or `goes_on`, which is asked before each, answers false. All processes have ended afterwards.
  // `interrupted` is the signal that ended the trials; 0: none.
  Status Run(Progress* progress, int* interrupted, const std::function<bool()>& goes_on = {});

 private:
  std::unique_ptr<Runner> MakeTrials();

  const Session& session_;
  const Of of_;
  Subject subject_;
  SiteTexts sites_;
  LateRunner runner_;
  SweepEngine engine_;
};

// How far a sweep goes. It ends between two trials, the first of which always runs.
struct Spend {
  std::optional<Progress::Clock::time_point> until;  // empty: no budget
  bool new_places_only = false;                      // one trial of each place that is new or changed (EngineOptions::before)
  bool first_faults_only = false;
};

// The fault-free runs of the session's program, in its work directory. `progress` counts trials afterwards.
Result<Rehearsal> RehearseShown(const Session& session, int runs, int* interrupted, Progress* progress);

// Makes the trials of a sweep. For a replay `faults` holds what fails in its one trial; for a sweep it is empty.
CarriedOut CarryOutTrials(const Session& session, const EngineOptions& sweep, const std::vector<std::string>& faults, const Spend& spend,
                          Progress* progress);

// Says on stderr what a sweep could not see.
void SaySweepWarnings(const report::Run& run);

// Writes the report of a sweep that was made or merged, and then the rows of --trials. They are written also when the report could not be.
Exit DeliverSweep(const Session& session, CarriedOut* carried);

// The options of cycles, checked.
struct CyclesAsked {
  std::vector<std::uint64_t> counts;
  std::uint64_t detect = 0;
};
Result<CyclesAsked> CyclesOf(const Options& options);

CarriedOut CarryOutCycles(const Session& session, const CyclesAsked& asked, Progress* shown);

}  // namespace cuaudit::harness
