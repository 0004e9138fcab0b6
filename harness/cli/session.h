// SPDX-License-Identifier: MIT
// session.h: what every auditing command needs before it starts: the program, the driver, the work directory and the outputs.
//
//   Owns      its work directory. A fresh one is removed with the session unless --keep.
//   Threads   one thread.
//   Errors    Status with one line, before anything was started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/driver_choice.h"
#include "harness/compare/suppressions.h"
#include "harness/options/options.h"
#include "harness/options/report_files.h"
#include "harness/process/process.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/run/observation.h"
#include "reports/run.h"

namespace cuaudit::harness {

// The options of the simulated driver in the drop-in's form. An error names the first value that the drop-in would not accept.
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
  const Suppressions& suppressions() const noexcept { return suppressions_; }
  // Trials at a time; forks() where a trial is a fork.
  std::size_t jobs() const;
  std::size_t forks() const;
  const std::string& why_driver() const noexcept { return why_driver_; }  // "no genuine libcuda.so.1 found"

  // The command line that runs `command` with the same options and the same name of the tool: "cuaudit replay --driver=sim --host".
  std::string CommandLine(Command command) const;
  Reproduction Reproduce() const;

  // A report with everything that does not depend on the results.
  report::Run NewReport() const;

 private:
  explicit Session(const Options& options) : options_(options) {}

  Options options_;
  Subject subject_;
  std::string why_driver_;
  std::unique_ptr<SignalsTaken> signals_;  // holds signals between two runs of the program
  std::optional<WorkDir> dir_;
  Suppressions suppressions_;
};

// The exit code of a command with this result.
Exit ExitOf(const report::Run& run);

// The same of one case of several. Where `status` says that it did not come to its end: Failure when that is cuaudit's own fault.
Exit ExitOf(const Status& status, const report::Run& run);

// Says the error on stderr, with what the program wrote last.
void SayFailure(const Status& status);

// The report of an audit that did not take place, or not to its end.
report::Run FailedReport(const Status& status, const Session& session);

// Marks the defects that --suppressions accepts, and says which of its entries fit none. Done once for a report.
void Accept(Suppressions suppressions, report::Run* run);

// Writes the report to all outputs and answers the exit code for its outcome.
Exit WriteOutputs(const report::Run& run, const Options& options);

// Both, one after the other.
Exit Deliver(report::Run run, const Session& session);

// The exit code of a command that has `delivered` its report and then tried to write another file. When that file could not be written,
// stderr says why; the report is not affected.
Exit Beside(Exit delivered, const Status& written);

// Says the error on stderr and answers its exit code, before anything was started.
Exit Refuse(const Status& status);

// Says the error on stderr. For commands with reports it also delivers a report with the error.
Exit Fail(const Status& status, const Session& session);

// Delivers `run`, which holds the results so far, for a command that a signal ended. Answers 128 plus the signal's number.
Exit EndInterrupted(const Progressed& progressed, report::Run run, const Session& session);

// Writes the page that a command is asked for to stdout. A failure is said on stderr. A reader that went away, such as `head`, has read
// enough: SIGPIPE then ends the process, as in other tools. Where the exit status is a verdict (WriteReport), it is a failure.
Exit Print(std::string_view text);

// Writes one line to stderr.
void Say(const std::string& line);
// The same for a line that may be missed: while the reader takes nothing, it is not written (WriteInPassing).
void SayInPassing(const std::string& line);

// While it lives, Say keeps its lines for whoever takes them. One at a time.
class KeptLines {
 public:
  KeptLines();
  KeptLines(const KeptLines&) = delete;
  KeptLines& operator=(const KeptLines&) = delete;
  ~KeptLines();
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

// Writes one line for each thing that was left out.
void SayLeftOut(const report::Run& run);

}  // namespace cuaudit::harness
