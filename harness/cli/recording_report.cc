// SPDX-License-Identifier: MIT
#include "harness/cli/recording_report.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "harness/cli/live_table.h"
#include "harness/cli/recording_page.h"
#include "harness/cli/session.h"
#include "harness/cycle/cycles.h"
#include "harness/cycle/snapshot.h"
#include "harness/process/shell_quote.h"
#include "harness/recording/held_before.h"
#include "harness/recording/recording.h"

namespace cuaudit::harness {
namespace {

bool Whole(const Observation& seen) { return seen.recording == nullptr || seen.recording->Whole(); }

report::Run NewRun(const Observation& seen, report::Mode mode) {
  report::Run run;
  run.mode = mode;
  run.tool_version = std::string(ToolVersion());
  run.generated = Timestamp();
  if (seen.recording != nullptr) run.scope = "process";
  DescribeRun(seen, &run);
  return run;
}

// A count that only takes the place of objects from before the recording is no growth that anybody has seen.
void RestrainGrowth(const Observation& seen, report::Run* run) {
  if (seen.recording == nullptr || seen.recording->WholeOfWhatLasts()) return;
  std::set<driver::Family> replaced;
  for (const auto& [kind, count] : HeldBefore(seen.journal, seen.ledger)) replaced.insert(driver::FamilyOf(kind));
  const auto is_replaced = [&](const report::Finding& finding) {
    if (finding.rule != words::Rule::Growth) return false;
    for (std::size_t kind = 0; kind < driver::kKindCount; ++kind) {
      if (driver::Name(static_cast<driver::Kind>(kind)) == finding.kind)
        return replaced.contains(driver::FamilyOf(static_cast<driver::Kind>(kind)));
    }
    return false;
  };
  for (report::Finding& finding : run->findings) {
    if (!is_replaced(finding)) continue;
    finding.detail += "; undecided: objects of this sort that were held before the recording begins were released meanwhile";
    run->notes.push_back(finding);
  }
  std::erase_if(run->findings, is_replaced);
}

std::vector<Snapshot> CompareMarkedCycles(const Observation& seen, const std::string& again, SiteTexts* sites, report::Run* run) {
  std::vector<Snapshot> snapshots = MarkedSnapshots(seen, Moments::Spread, sites);
  if (snapshots.size() < 2) return snapshots;
  CompareSnapshots(snapshots, again, run);
  RestrainGrowth(seen, run);
  ShowFirstAndLast(run);
  return snapshots;
}

// What lies behind the last cycle is judged at the end of the run, so of the cycles only what grows is added.
void AddGrowth(const Observation& seen, const std::string& again, SiteTexts* sites, report::Run* run) {
  report::Run cycles;
  if (CompareMarkedCycles(seen, again, sites, &cycles).size() < 2) return;
  run->cycle_counts = std::move(cycles.cycle_counts);
  run->cycle_rows = std::move(cycles.cycle_rows);
  run->per_cycle = std::move(cycles.per_cycle);
  const auto of_cycles = [](const report::Finding& finding) {
    return finding.rule == words::Rule::Growth || finding.rule == words::Rule::Bounded || finding.rule == words::Rule::Undecided;
  };
  std::copy_if(cycles.findings.begin(), cycles.findings.end(), std::back_inserter(run->findings), of_cycles);
  std::copy_if(cycles.notes.begin(), cycles.notes.end(), std::back_inserter(run->notes), of_cycles);
}

// The outcome when nothing is wrong in what was seen. What was not seen is said beside findings as well: without them, suppressed ones
// would leave a clean report.
void JudgeWithoutFindings(const Observation& seen, report::Run* run) {
  const bool found = !run->findings.empty();
  std::string why;
  if (run->totals.calls == 0) why = "the program never called the CUDA driver while it was recorded";
  else if (!Whole(seen))
    why = found ? "a part of the recording is missing" : "nothing is wrong in what the recording has, but a part of it is missing";
  else if (run->mode == report::Mode::Run && !AllReachedTheirEnd(seen))
    why = std::string(found ? "" : "nothing was done wrong, but ") +
          "the program was killed or still runs: what it held is listed, not judged";
  run->outcome = why.empty() ? words::Outcome::Clean : words::Outcome::NotExercised;
  if (!why.empty()) run->message.told = "not exercised: " + why;
}

report::Run ReportOf(const Observation& seen, const std::string& again, SiteTexts* sites) {
  report::Run run = NewRun(seen, report::Mode::Run);
  JudgeOptions judge;
  judge.nothing_may_stay = JudgesWhatIsLeft(seen);
  AddFaultFree(seen, {}, sites, &run, judge);
  // What died with its process stands on the page, with its stacks.
  std::erase_if(run.notes, [](const report::Finding& note) { return note.rule == words::Rule::ProcessLifetime; });
  AddGrowth(seen, again, sites, &run);
  for (std::vector<report::Finding>* const entries : {&run.findings, &run.notes}) {
    for (report::Finding& one : *entries) one.reproduce = again;
  }
  FindDefects(&run);
  run.live = LiveTable(seen.ledger);
  JudgeWithoutFindings(seen, &run);
  if (!run.findings.empty()) {
    const auto stayed = [](const report::Finding& finding) { return finding.rule == words::Rule::LeftAtExit; };
    run.outcome = std::all_of(run.findings.begin(), run.findings.end(), stayed) ? words::Outcome::Left : words::Outcome::Findings;
  }
  return run;
}

}  // namespace

bool AllReachedTheirEnd(const Observation& seen) {
  const Facts& facts = seen.ledger.facts;
  return std::all_of(facts.processes.begin(), facts.processes.end(),
                     [](const ProcessFacts& process) { return process.calls == 0 || process.exit != 0; });
}

// The judge knows by itself which processes have no end.
bool JudgesWhatIsLeft(const Observation& seen) { return seen.recording->Undamaged(); }

Status CheckWhole(const Observation& seen) {
  if (!seen.journal.truncated()) return {};
  return {Exit::Usage, seen.path + ": the journal is cut: expected " + std::to_string(seen.journal.header().file_bytes) + " bytes, found " +
                           std::to_string(seen.file.size())};
}

Exit ExplainRecording(const Options& options, Observation seen) {
  const Status whole = CheckWhole(seen);
  if (!whole.ok()) return Refuse(whole);
  for (const Output& output : options.outputs) {
    const Status writable = CheckOutput(output.file, output.file == options.output ? "--output" : "--format");
    if (!writable.ok()) return Refuse(writable);
  }
  SiteTexts sites;
  sites.LookIn(options.modules);
  sites.MarkRuntimeOwned(seen.journal, &seen.ledger);
  const report::Run run = ReportOf(seen, "cuaudit explain " + ShellQuote(options.operand), &sites);
  const bool as_text = std::any_of(options.outputs.begin(), options.outputs.end(),
                                   [](const Output& output) { return output.format == Format::Text && output.file.empty(); });
  if (as_text) {
    const Exit printed = Print(RecordingPage(seen, &sites));
    if (printed != Exit::Clean) return printed;
  }
  const Exit delivered = Deliver(run, options, {});
  if (!as_text || delivered == Exit::Failure) return delivered;
  const Exit printed = Print(NotFoundPage(sites));
  return printed == Exit::Clean ? delivered : printed;
}

Exit CyclesOfRecording(const Options& options) {
  for (const Output& output : options.outputs) {
    const Status writable = CheckOutput(output.file, output.file == options.output ? "--output" : "--format");
    if (!writable.ok()) return Refuse(writable);
  }
  Suppressions suppressions;
  if (!options.suppressions.empty()) {
    Result<Suppressions> read = Suppressions::Read(options.suppressions);
    if (!read.ok()) return Refuse({Exit::Usage, "--suppressions: " + read.status().message()});
    suppressions = std::move(*read);
  }
  Result<Observation> seen = ReadObservation(options.from_journal, Ending());
  const Status usable = seen.ok() ? CheckWhole(*seen) : seen.status();
  if (!usable.ok()) return Refuse({Exit::Usage, usable.message()});
  SiteTexts sites;
  sites.LookIn(options.modules);
  sites.MarkRuntimeOwned(seen->journal, &seen->ledger);
  report::Run run = NewRun(*seen, report::Mode::Cycles);
  const std::string again = "cuaudit cycles --from-journal " + ShellQuote(options.from_journal);
  const std::size_t cycles = CompareMarkedCycles(*seen, again, &sites, &run).size();
  if (cycles < 2) {
    return Refuse({Exit::Usage, options.from_journal + ": expected a recording of a program that marks at least two cycles " +
                                    "(cuaudit/mark.h): it has " + std::to_string(cycles)});
  }
  FindDefects(&run);
  JudgeWithoutFindings(*seen, &run);
  if (run.message.undecided) run.outcome = words::Outcome::NotExercised;
  if (!run.findings.empty()) run.outcome = words::Outcome::Findings;
  SayLeftOut(run);
  return Deliver(std::move(run), options, std::move(suppressions));
}

}  // namespace cuaudit::harness
