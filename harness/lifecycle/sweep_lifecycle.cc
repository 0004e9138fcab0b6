// SPDX-License-Identifier: MIT
#include "harness/lifecycle/sweep_lifecycle.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "faults/plan/fault.h"
#include "harness/compare/suppressions.h"
#include "harness/lifecycle/in_process_runner.h"
#include "harness/lifecycle/isolation.h"
#include "harness/options/option_rows.h"
#include "harness/options/options.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_options.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/report_rows.h"
#include "harness/sweep/run/kept_trial.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/sweep/sweep_engine.h"
#include "harness/verdict/evidence/site_keys.h"
#include "reports/defect_words.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

std::string WithCommas(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list.append(list.empty() ? "" : ",").append(word);
  return list;
}

// The name as part of a path: a slash cannot be.
std::string FileNameOf(const Lifecycle& lifecycle) {
  std::string name;
  for (const char c : lifecycle.name()) name += c == '/' ? "%2F" : c == '%' ? "%25" : std::string(1, c);
  return name;
}

// The options from the code, in the form of a command line, and then those of CUAUDIT_SWEEP.
Status ReadOptions(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, Options* asked) {
  asked->how = WithCommas(options.hows);
  asked->codes = options.all_codes ? "all" : "default";
  asked->call = options.calls;
  asked->limit = options.limit;
  asked->depth = static_cast<std::uint64_t>(options.depth);
  asked->prune = options.prune == cuaudit::Prune::All ? "all" : "second";
  asked->no_prune = options.prune == cuaudit::Prune::None;
  asked->no_shrink = !options.shrink;
  asked->coverage_at_least = options.coverage_at_least;
  asked->no_host = !options.host;
  asked->deadline_ms = options.deadline_ms;
  asked->work_dir = options.work_dir;
  asked->format = options.formats;
  asked->abandoned_is_leak = true;  // a step always returns to its caller, so nothing is abandoned
  const char* const said = std::getenv("CUAUDIT_SWEEP");
  Status status = ParseLifecycleOptions(said == nullptr ? "" : said, asked);
  const auto name = [&](std::string* file) {
    constexpr std::string_view kCase = "{case}";
    for (std::size_t at = file->find(kCase); at != std::string::npos; at = file->find(kCase, at + 1))
      file->replace(at, kCase.size(), FileNameOf(lifecycle));
  };
  for (Output& output : asked->outputs) {
    name(&output.file);
    if (status.ok()) status = CheckOutput(output.file, "--format");
  }
  name(&asked->trials);
  name(&asked->keep_trial);
  return status.ok() ? CheckOutput(asked->trials, "--trials") : status;
}

// Hash that two sweeps must share to continue each other's trials: the lifecycle, the files it is in, what it does, on which driver, and
// how its trials are run.
std::uint64_t SubjectOf(const Lifecycle& lifecycle, const cuaudit::SweepOptions& how, const InProcessRunner& runner,
                        const Rehearsal& rehearsal) {
  static const std::uint64_t program = FileContent("/proc/self/exe");  // a file that runs cannot be written
  std::uint64_t hash = HashText(lifecycle.name(), HashNumber(program, kHashSeed));
  hash = HashNumber(ModulesContent(rehearsal), HashText(runner.driver(), hash));
  const char* const world = std::getenv("CUAUDIT_OPTIONS");
  hash = HashText(world == nullptr ? "" : world, hash);
  hash = HashNumber((how.host ? 1U : 0U) + (how.isolate ? 2U : 0U) + (how.may_drift ? 4U : 0U), hash);
  for (const Because& why : runner.unmetered()) hash = HashText(Words(why), hash);
  return rehearsal.same_work ? HashNumber(TraceHash(rehearsal.run.evidence()), hash) : hash;
}

bool AsksForHost(const std::vector<std::string>& hows, const std::vector<std::string>& only) {
  const auto asked = [](const std::string& how) { return faults::HostFaultAsked(how) != nullptr; };
  const auto is_one = [](const std::string& text) { return faults::HostFaultOf(std::string_view(text)) != nullptr; };
  return only.empty() ? std::any_of(hows.begin(), hows.end(), asked) : std::any_of(only.begin(), only.end(), is_one);
}

Status Run(SweepEngine* engine, InProcessRunner* runner) {
  while (!engine->Finished()) {
    Status status = engine->Step();
    if (status.ok()) status = runner->WhyLost(engine->total() - engine->done());
    if (!status.ok()) return status;
  }
  return {};
}

void Fail(const Status& status, Audit* audit) {
  audit->outcome = status.not_exercised() ? AuditOutcome::NotExercised : AuditOutcome::Error;
  audit->message = status.message();
}

void Conclude(bool may_drift, const report::Run& run, Audit* audit) {
  if (!audit->findings.empty()) {
    audit->outcome = AuditOutcome::Findings;
  } else if (audit->fired == 0 || audit->fired != audit->trials) {
    audit->outcome = AuditOutcome::NotExercised;
    const std::vector<std::string> of = {std::to_string(audit->trials - audit->fired), std::to_string(audit->trials)};
    audit->message = Words({audit->trials == 0 ? Detail::NothingCanFail : Detail::SomeDidNotFire, of});
  } else if (!audit->drift.empty() && !may_drift) {
    audit->outcome = AuditOutcome::NotExercised;
    audit->message = Words({Detail::MayNotBeTheFaults});
  } else if (run.message.coverage && run.message.coverage->some < run.message.coverage->all) {
    audit->outcome = AuditOutcome::NotExercised;
    audit->message = report::Explanation(run);
  } else {
    audit->outcome = AuditOutcome::Clean;
    audit->message = Words({Detail::EachUnwound, {std::to_string(audit->fired)}});
    std::uint64_t pruned = 0;
    for (const auto& [reason, count] : audit->pruned) pruned += count;
    if (pruned != 0) words::Add({Detail::PrunedAsEqual, {std::to_string(pruned)}}, &audit->message);
  }
}

// Marks what --suppressions accepts. The audit keeps the findings of suppressed defects as notes.
void Suppress(Suppressions* suppressions, report::Run* run, Audit* audit) {
  suppressions->Apply(Today(), run);
  const std::vector<bool> accepted = report::SuppressedFindings(*run);
  std::size_t index = 0;
  audit->Tolerate([&](const Finding& finding) {
    if (!accepted[index++]) return false;
    audit->notes.push_back(finding);
    return true;
  });
}

// Fills in what the report of a program gets from its session.
void CompleteReport(const Audit& audit, const std::vector<std::string>& only, const InProcessRunner& runner, report::Run* run) {
  for (const std::string& text : only) {
    const std::optional<faults::Fault> fault = ParsedFault(text);  // of another text the audit says what is wrong
    run->faults.push_back({fault ? harness::TextOf(*fault) : text, false});
  }
  run->command = CommandWords();
  run->lifecycle = audit.lifecycle;
  run->scope = runner.genuine() ? "process" : "pinned";
  run->driver.kind = runner.genuine() ? faults::DriverKind::Genuine : faults::DriverKind::Simulated;
  run->tool_version = std::string(ToolVersion());
  run->generated = Timestamp();
  for (const Because& why : runner.unmetered()) run->totals.skipped[why] = 1;
  if (run->interrupted) return;
  run->outcome = ReportedOutcome(audit.outcome);
  const bool told = audit.outcome == AuditOutcome::NotExercised && !run->message.coverage;
  if (told || audit.outcome == AuditOutcome::Error) run->message.told = audit.message;
}

// Keeps what `cuaudit reduce` needs of the trial. The faults that its report names are those of `only`.
Status KeepTrial(const std::string& directory, const std::vector<std::string>& only, const report::Run& run, InProcessRunner* runner) {
  for (std::size_t count = 0; count <= only.size(); ++count) {
    const Result<faults::JournalView> journal = runner->Record({only.begin(), only.begin() + static_cast<std::ptrdiff_t>(count)});
    if (!journal.ok()) return journal.status();
    const Status kept = KeepRun(directory, count, *journal);
    if (!kept.ok()) return kept;
  }
  return WriteReport(run, {Format::Json, ResultOfTrial(directory)});
}

}  // namespace

Status AddBenignOf(const Lifecycle& lifecycle, std::vector<Benign>* declared) {
  const Status added = AddBenign(lifecycle.benign(), declared);
  return added.ok() ? added : Status(added.exit(), "Lifecycle::Benign: " + added.message());
}

void SweepLifecycle(const Lifecycle& lifecycle, const cuaudit::SweepOptions& options, const std::vector<std::string>& only, Audit* audit) {
  audit->lifecycle = lifecycle.name();
  Options asked;
  Status status = ReadOptions(lifecycle, options, &asked);
  if (!status.ok()) return Fail(status, audit);
  Result<harness::EngineOptions> engine_options = EngineOptionsOf(asked);
  if (!engine_options.ok()) return Fail(engine_options.status(), audit);
  status = AddBenignOf(lifecycle, &engine_options->benign);
  if (!status.ok()) return Fail(status, audit);
  Suppressions suppressions;
  if (!asked.suppressions.empty()) {
    Result<Suppressions> read = Suppressions::Read(asked.suppressions);
    if (!read.ok()) return Fail(Status(Exit::Usage, OptionFlag{"--suppressions"}, read.status().message()), audit);
    suppressions = std::move(*read);
  }
  engine_options->judge.any_code = lifecycle.any_code();
  engine_options->tell_calls = std::any_of(asked.outputs.begin(), asked.outputs.end(), [](const Output& output) {
    return output.format == Format::Json || output.format == Format::Html;
  });
  cuaudit::SweepOptions how = options;
  how.host = !asked.no_host;
  if (asked.deadline_ms != 0) how.deadline_ms = static_cast<std::uint32_t>(asked.deadline_ms);
  std::optional<WorkDir> dir;
  if (!asked.work_dir.empty() && only.empty()) {
    const Result<WorkDir> outer = WorkDir::Open(asked.work_dir);
    Result<WorkDir> opened = outer.ok() ? WorkDir::Open(outer->File(FileNameOf(lifecycle))) : outer.status();
    if (!opened.ok()) return Fail(opened.status(), audit);
    dir = std::move(*opened);
  }

  std::optional<StopSignals> stop_signals;
  if (!asked.outputs.empty()) stop_signals.emplace();
  InProcessRunner runner(lifecycle, how, engine_options->benign, AsksForHost(engine_options->plan.hows, only), SitesOfThread());
  Result<Rehearsal> rehearsal = runner.Rehearse();
  audit->driver = runner.driver();
  if (!rehearsal.ok()) return Fail(rehearsal.status(), audit);
  audit->calls = rehearsal->run.ledger.facts.calls.size();
  if (!rehearsal->same_work) audit->drift = Words(rehearsal->drift);

  SweepEngine engine(&runner, dir ? &*dir : nullptr, *engine_options, ReproductionOf(lifecycle.name()), SitesOfThread());
  const std::uint64_t subject = dir ? SubjectOf(lifecycle, how, runner, *rehearsal) : 0;
  Settings settings = dir ? SettingsOf(asked) : Settings();
  status =
      only.empty() ? engine.Prepare(std::move(*rehearsal), subject, std::move(settings)) : engine.PrepareOne(std::move(*rehearsal), only);
  if (status.ok()) status = Run(&engine, &runner);
  report::Run run;
  if (engine.prepared()) engine.Report(&run);
  for (const auto& [reason, count] : runner.skipped()) run.totals.skipped[reason] += count;
  AddReport(run, audit);
  if (!suppressions.entries().empty()) Suppress(&suppressions, &run, audit);
  if (status.exit() == Exit::Usage) return Fail(status, audit);
  const int signal = status.ok() ? 0 : runner.interrupted();
  if (status.ok()) {
    for (const Because& why : runner.unmetered()) audit->unmetered.push_back(Words(why));
    Conclude(how.may_drift, run, audit);
    const std::string accepted = report::SuppressedCount(run);
    if (!accepted.empty() && audit->outcome == AuditOutcome::Clean) audit->message += "; " + accepted;
  } else {
    if (signal != 0) SetInterrupted({signal, run.totals.trials, engine.trials(), engine.plans_more()}, &run);
    Fail(signal == 0 ? status : Status(Exit::Failure, report::Explanation(run)), audit);
  }
  CompleteReport(*audit, only, runner, &run);
  for (const Output& output : asked.outputs) {
    status = WriteReport(run, output);
    if (!status.ok()) Fail(status, audit);
  }
  if (!asked.trials.empty()) {
    status = WriteTrialRows(engine.Rows(), run, asked.trials);
    if (!status.ok()) Fail(status, audit);
  }
  if (!asked.keep_trial.empty() && audit->outcome != AuditOutcome::Error) {
    status = KeepTrial(asked.keep_trial, only, run, &runner);
    if (!status.ok()) Fail(status, audit);
  }
  audit->run = std::make_shared<const report::Run>(std::move(run));
  stop_signals.reset();
  if (signal != 0) raise(signal);  // ends the process, unless it has a handler of its own
}

}  // namespace cuaudit::harness
