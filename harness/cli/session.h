// SPDX-License-Identifier: MIT
// session.h: what every auditing command needs before it starts: the program, the driver, the work directory and where the result goes.
//
//   Owns      its work directory; a fresh one is removed with the session unless --keep.
//   Threads   one thread.
//   Errors    Status with one line, before anything was started.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness/cli/driver_choice.h"
#include "harness/options/options.h"
#include "harness/sweep/aggregate.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/process.h"
#include "harness/sweep/work_dir.h"
#include "reports/run.h"

namespace cuaudit::harness {

// The options of the simulated driver as the drop-in reads them; a Status for the first value that it would not take.
Result<std::string> WorldText(const Options& options);

class Session {
 public:
  static Result<Session> Open(const Options& options);

  Session(Session&&) = default;
  Session& operator=(Session&&) = delete;
  ~Session();

  const Options& options() const noexcept { return options_; }
  const Subject& subject() const noexcept { return subject_; }
  const WorkDir& dir() const noexcept { return *dir_; }
  std::size_t jobs() const;

  // How a reader runs `command` with the same options, calling the tool as it was called: "cuaudit replay --driver=sim --host".
  std::string CommandLine(Command command) const;
  Reproduction Reproduce() const;

  // A report with all that does not depend on what was found.
  report::Run NewReport() const;

 private:
  explicit Session(const Options& options) : options_(options) {}

  Options options_;
  Subject subject_;
  std::unique_ptr<SignalsTaken> signals_;  // between two runs of the program a signal waits for the next one
  std::optional<WorkDir> dir_;
};

// Writes the report where the options say and answers the exit code that its outcome means.
Exit Deliver(const report::Run& run, const Options& options);

// The line on stderr, and for commands that deliver reports a report that says so.
Exit Fail(const Status& status, const Session& session);

inline constexpr int kSignalled = 128;  // and the number of a signal: the exit status of what it ended, as shells have it

// How far a command had come when a signal ended it.
struct Progressed {
  int signal = 0;             // its number; 0: none did
  std::uint64_t done = 0;     // trials; of `cycles` and `run`: runs of the program
  std::uint64_t planned = 0;  // 0: the fault-free runs were under way
  bool more = false;          // the plan was not whole yet
};

// Delivers `run`, which holds what was known by then, as the report of a command that a signal ended; answers 128 and its number.
Exit EndInterrupted(const Progressed& progressed, report::Run run, const Session& session);

// Text to stdout; says so on stderr when that fails.
Exit Print(std::string_view text);

// One line on stderr.
void Say(const std::string& line);
// One line for each thing that was left out.
void SayLeftOut(const report::Run& run);

}  // namespace cuaudit::harness
