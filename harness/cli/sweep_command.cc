// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/plan/fault.h"
#include "harness/cli/carry_out.h"
#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/options/budget.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_settings.h"
#include "harness/sweep/sweep_engine.h"
#include "harness/sweep/trial_rows.h"

namespace cuaudit::harness {
namespace {

std::uint64_t OverBudget(const report::Run& run) {
  const auto row = run.totals.skipped.find({Reason::OverBudget});
  return row == run.totals.skipped.end() ? 0 : row->second;
}

// Adds the likeliest documented error to "cuMemAlloc#2". Answers false when the call has none.
bool ChooseCode(faults::Fault* fault) {
  const faults::HostFaultRow* const host = faults::HostFaultOf(fault->base);
  if (host != nullptr) fault->how = host->how;
  fault->code = host != nullptr ? CUDA_ERROR_OUT_OF_MEMORY : driver::DefaultCode(fault->base);
  return fault->code != CUDA_SUCCESS;
}

Result<std::vector<report::Replayed>> ReadFaults(const Options& options) {
  std::vector<report::Replayed> faults;
  for (const std::string& text : options.fault) {
    const std::string given = "--fault: '" + text + "': ";
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    const bool chosen = error.expected == faults::kExpectsCode && ChooseCode(&fault);
    if (error.expected != nullptr && !chosen) {
      return Status(Exit::Usage, given + "column " + std::to_string(error.column) + ": expected " + error.expected);
    }
    if (fault.follows && faults.empty()) return Status(Exit::Usage, given + "expected a fault before one that counts from it (#+N)");
    if (fault.site != 0 && options.stacks == 0)
      return Status(Exit::Usage, given + "expected --stacks from 1 with a fault addressed by site");
    faults.push_back({chosen ? TextOf(fault) : text, chosen});
    if (chosen) Say(given + "no error given, taken the likeliest documented one: " + faults.back().text);
  }
  if (faults.size() > faults::kMaxFaults) {
    return Status(Exit::Usage, "--fault: expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial");
  }
  return faults;
}

// Says that a finished sweep was started again, so the verdict is the earlier one.
std::string NothingAnew(const WorkDir& dir) {
  return "nothing was run anew: every trial is taken from " + dir.File("trials.jsonl") + "; for new ones choose another --work-dir";
}

Status WriteRows(const Options& options, const std::vector<report::TrialRow>& rows, const report::Run& run) {
  return options.trials.empty() ? Status() : WriteTrialRows(rows, run, options.trials);
}

}  // namespace

Exit SweepCommand(const Options& options) {
  const Progress::Clock::time_point begun = Progress::Clock::now();
  Result<SweepOptions> sweep = SweepOptionsOf(options);
  if (!sweep.ok()) return Refuse(sweep.status());
  const Result<std::optional<std::chrono::seconds>> budget = ParseBudget(options.budget);
  if (!budget.ok()) return Refuse(budget.status());
  const Status writable = CheckOutput(options.trials, "--trials");
  if (!writable.ok()) return Refuse(writable);
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());

  Spend spend;
  if (budget->has_value()) spend.until = begun + **budget;
  sweep->places_first = spend.until.has_value();
  Progress progress(options.progress);
  CarriedOut carried = CarryOutSweep(*session, *sweep, spend, &progress);
  report::Run& run = carried.run;
  // The report is written before the lines of --trials, and whatever becomes of them.
  if (carried.progressed.signal != 0) {
    const Exit ended = EndInterrupted(carried.progressed, run, *session);
    return Beside(ended, WriteRows(options, carried.rows, run));
  }
  if (!carried.status.ok()) return Fail(carried.status, *session);
  SaySweepWarnings(run);
  Accept(*session, &run);
  if (carried.ended_early) Say("warning: the budget is spent: " + std::to_string(OverBudget(run)) + " trials were left out");
  SaySweepTotals(run);
  const Exit reported = WriteOutputs(run, *session);
  const Exit delivered = Beside(reported, WriteRows(options, carried.rows, run));
  if (!carried.nothing_anew) return delivered;
  // JSON and JUnit reports have the same bytes however often a sweep was started, so the line goes to stderr then.
  const std::string nothing_anew = NothingAnew(session->dir());
  const bool read_by_people = std::any_of(options.outputs.begin(), options.outputs.end(),
                                          [](const Output& one) { return one.format == Format::Text && one.file.empty(); });
  if (!read_by_people) Say(nothing_anew);
  const Status said = read_by_people ? WriteAll(STDOUT_FILENO, nothing_anew + "\n", "stdout") : Status();
  return said.ok() ? delivered : said.exit();
}

Exit ReplayCommand(const Options& options) {
  const Result<std::vector<report::Replayed>> faults = ReadFaults(options);
  if (!faults.ok()) return Refuse(faults.status());
  const Result<SweepOptions> sweep = SweepOptionsOf(options);
  if (!sweep.ok()) return Refuse(sweep.status());
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  std::vector<std::string> texts;
  for (const report::Replayed& fault : *faults) texts.push_back(fault.text);
  CarriedOut carried = CarryOutReplay(*session, *sweep, texts);
  carried.run.faults = *faults;
  if (carried.progressed.signal != 0) return EndInterrupted(carried.progressed, std::move(carried.run), *session);
  if (!carried.status.ok()) return Fail(carried.status, *session);
  SaySweepWarnings(carried.run);
  return Deliver(std::move(carried.run), *session);
}

}  // namespace cuaudit::harness
