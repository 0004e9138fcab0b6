// SPDX-License-Identifier: MIT
#include "harness/cli/reduced_defect.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "faults/journal/layout.h"
#include "harness/cli/carry_out.h"
#include "harness/cli/comparison.h"
#include "harness/cli/recording_report.h"
#include "harness/cli/session.h"
#include "harness/compare/result_files.h"
#include "harness/kit/lift_calls.h"
#include "harness/kit/recorded_runs.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_options.h"
#include "harness/process/files.h"
#include "harness/process/process.h"
#include "harness/process/program.h"
#include "harness/process/shell.h"
#include "harness/recording/recording.h"
#include "harness/sweep/run/kept_trial.h"
#include "harness/sweep/run/site_text.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kTestMs = 600000;  // that a test with a lifecycle may take

// Shows how many shorter lists were tried, and how many calls are left.
ToldReduction ReducingOf(Progress* progress) {
  return [progress, pass = std::optional<std::size_t>()](const ReducedSoFar& now) mutable {
    const std::string name = now.pass == 0 ? "looking for the cycle"
                                           : "pass " + std::to_string(now.pass) + ", " + std::to_string(now.left) + " of " +
                                                 std::to_string(now.before) + " calls left";
    // A bar of its own for each pass: the search for a cycle goes on after the passes of one.
    if (pass != now.pass) progress->Begin("lists", name);
    else progress->Rename(name);
    pass = now.pass;
    progress->Show(now.tried, now.planned);
  };
}

// The result that was named, or that of a sweep of the program.
Result<report::Audit> ResultOf(const Options& options) {
  Progress progress(options.progress);
  if (options.operands.size() == 2) return ReadResultShown(options.operands[1], &progress);
  Options sweep = options;
  sweep.command = kSweep;
  const Result<EngineOptions> how = EngineOptionsOf(sweep);
  if (!how.ok()) return how.status();
  const Result<Session> session = Session::Open(sweep);
  if (!session.ok()) return session.status();
  CarriedOut carried = CarryOutTrials(*session, *how, {}, {}, &progress);
  if (carried.progressed.signal != 0) return Status(static_cast<Exit>(kSignalled + carried.progressed.signal), "ended by a signal");
  if (!carried.status.ok()) return carried.status;
  report::Audit audit;
  audit.cases.emplace_back();
  audit.cases.front().runs.push_back(std::move(carried.run));
  return audit;
}

// The options under which the defect was seen, from the line that shows it again; a program on the command line takes the place of its own.
Result<Options> OptionsOf(const WantedDefect& defect, const Options& given) {
  const std::optional<std::vector<std::string>> line = ShellSplit(defect.root.reproduce);
  if (!line || line->size() < 2) {
    return Status(Exit::Usage, "the defect has no line that shows it again: expected one that begins with cuaudit replay, run or cycles");
  }
  const auto is = [&line](Command command) { return (*line)[1] == CommandName(command); };
  if (!is(kReplay) && !is(kRun) && !is(kCycles)) {
    return Status(Exit::Usage, "the line that shows the defect again: expected cuaudit replay, run or cycles");
  }
  Result<Options> options = ParseOptions(std::span(*line).subspan(1));
  if (!options.ok()) return Status(Exit::Usage, "the line that shows the defect again: " + options.status().message());
  if (!given.program.empty()) {
    // The line of another machine must not choose what is loaded into the user's own program.
    options->program = given.program;
    options->environment = given.environment;
    options->kernels = given.kernels;
    options->real_driver = given.real_driver;
  }
  options->tool = given.tool;
  options->progress = given.progress;
  options->command = kReplay;
  const std::string count = std::to_string(defect.run.cycle_counts.empty() ? 1 : defect.run.cycle_counts.front());
  for (std::string& word : options->program) {
    if (defect.root.rule != Rule::Growth) break;
    for (std::size_t at = word.find("{n}"); at != std::string::npos; at = word.find("{n}", at + count.size())) word.replace(at, 3, count);
  }
  return options;
}

// The line that is run, for whoever did not make the result.
std::string CommandLine(const WantedDefect& defect, const Options& recorded) {
  std::vector<std::string> words = {"cuaudit", "replay", "--driver=" + recorded.driver};
  for (std::string& flag : EchoOptions(recorded, kReplay)) words.push_back(std::move(flag));
  for (const std::string& fault : defect.faults) words.insert(words.end(), {"--fault", fault});
  words.emplace_back("--");
  words.insert(words.end(), recorded.program.begin(), recorded.program.end());
  return ShellJoin(words);
}

struct Trial {
  report::Run replayed;  // its report; empty when the defect needs no fault
  std::vector<Observation> runs;
};

// Runs the trial again.
Result<Trial> RunTrial(const Options& recorded, const EngineOptions& how, const WantedDefect& defect) {
  Trial trial;
  const Result<Session> session = Session::Open(recorded);
  if (!session.ok()) return session.status();
  if (!defect.faults.empty()) {
    Progress progress(recorded.progress);
    CarriedOut replayed = CarryOutTrials(*session, how, defect.faults, {}, &progress);
    if (replayed.progressed.signal != 0) return Status(static_cast<Exit>(kSignalled + replayed.progressed.signal), "ended by a signal");
    if (!replayed.status.ok()) return replayed.status;
    trial.replayed = std::move(replayed.run);
  }
  int interrupted = 0;
  Result<std::vector<Observation>> runs = RecordTrial(session->subject(), session->dir(), defect.faults, &interrupted);
  if (interrupted != 0) return Status(static_cast<Exit>(kSignalled + interrupted), "ended by a signal");
  if (!runs.ok()) return runs.status();
  trial.runs = std::move(*runs);
  return trial;
}

Status KeepTrial(const std::string& directory, const WantedDefect& defect, const Trial& trial) {
  Status kept;
  for (std::size_t count = 0; kept.ok() && count < trial.runs.size(); ++count) kept = KeepRun(directory, count, trial.runs[count].journal);
  if (kept.ok()) kept = WriteReport(defect.run, {Format::Json, ResultOfTrial(directory)});
  if (kept.ok() && !defect.faults.empty()) kept = WriteReport(trial.replayed, {Format::Json, ReplayOfTrial(directory)});
  return kept;
}

Result<Reduction> ReduceTrial(const Trial& trial, const EngineOptions& how, const std::string& shown, WantedDefect* defect) {
  std::vector<faults::Fault> faults;
  for (const std::string& text : defect->faults) {
    faults.emplace_back();
    const faults::ParseError error = faults::ParseFault(text, &faults.back());
    if (error.expected != nullptr) return Status(Exit::Usage, "fault '" + text + "': expected " + error.expected);
  }
  if (!faults.empty()) {
    const Status counted = TakeCounts(trial.replayed, defect);
    if (!counted.ok()) return counted;
  }
  SiteTexts places;
  Result<CallList> list = LiftCalls(trial.runs, faults, defect->wanted, &places, defect->lost);
  if (!list.ok()) return list.status();
  JudgeOptions judge = how.judge;
  judge.abandoned_is_leak = true;  // the reducer goes on with its next lifecycle
  DefectJudge look(judge);
  Progress progress(shown);
  Result<Reduction> reduction = ReduceCalls(std::move(*list), defect->wanted, &look, ReducingOf(&progress));
  progress.Clear();
  const std::size_t processes = CallingProcesses(trial.runs.back());
  if (reduction.ok() || processes < 2) return reduction;
  return Status(reduction.status().exit(),
                reduction.status().message() + "; they are those of one process, and " + std::to_string(processes) + " call the driver");
}

Result<Reduced> ReduceTrialOf(const Trial& trial, Options recorded, WantedDefect defect) {
  const Result<EngineOptions> how = EngineOptionsOf(recorded);
  if (!how.ok()) return how.status();
  Result<Reduction> reduction = ReduceTrial(trial, *how, recorded.progress, &defect);
  if (!reduction.ok()) return reduction.status();
  return Reduced{std::move(defect), std::move(recorded), std::move(*reduction)};
}

bool IsOfLifecycle(const WantedDefect& defect) { return !defect.run.lifecycle.empty(); }

// The options that a defect of a lifecycle in C++ was seen under: those of the test are in its code.
Options OptionsOfLifecycle(const Options& given) {
  Options options;
  options.command = kReplay;
  options.progress = given.progress;
  return options;
}

// Reads a trial that was kept.
Result<Trial> ReadTrial(const std::string& directory, const WantedDefect& defect) {
  Trial trial;
  Result<std::vector<Observation>> runs = ReadKeptRuns(directory, defect.faults.size());
  if (!runs.ok()) return runs.status();
  trial.runs = std::move(*runs);
  if (defect.faults.empty()) return trial;
  std::error_code error;
  const std::string own = ReplayOfTrial(directory);
  const Result<report::Audit> replayed = ReadResult(std::filesystem::exists(own, error) ? own : ResultOfTrial(directory));
  if (!replayed.ok()) return replayed.status();
  if (replayed->cases.empty() || replayed->cases.front().runs.empty()) return Status(Exit::Usage, own + ": expected a report of one trial");
  trial.replayed = replayed->cases.front().runs.front();
  return trial;
}

Result<Reduced> ReduceKept(const Options& options, const std::string& directory) {
  if (!options.program.empty()) return Status(Exit::Usage, directory + ": the runs of a kept trial are reduced: expected no program");
  const Result<report::Audit> audit = ReadResult(ResultOfTrial(directory));
  if (!audit.ok()) return audit.status();
  Result<WantedDefect> defect = FindDefect(*audit, options.operands.front(), directory);
  if (!defect.ok()) return defect.status();
  Result<Options> recorded = IsOfLifecycle(*defect) ? OptionsOfLifecycle(options) : OptionsOf(*defect, options);
  if (!recorded.ok()) return recorded.status();
  const Result<Trial> trial = ReadTrial(directory, *defect);
  if (!trial.ok()) return trial.status();
  return ReduceTrialOf(*trial, std::move(*recorded), std::move(*defect));
}

// Runs the test by the line of the defect, so that it keeps the trial in the directory.
Status RunTest(const Options& options, const WantedDefect& defect, const std::string& log, const std::string& directory) {
  std::optional<std::vector<std::string>> words = ShellSplit(defect.root.reproduce);
  if (!words) return {Exit::Usage, "the line that shows the defect again: expected each quote to be closed"};
  Result<std::vector<std::string>> environment = CurrentEnvironment();
  if (!environment.ok()) return environment.status();
  std::erase_if(*environment, [](const std::string& one) {
    return one.starts_with("CUAUDIT_SWEEP=") || one.starts_with("CUAUDIT_FAULT=") || one.starts_with("CUAUDIT_CASE=");
  });
  environment->push_back("CUAUDIT_SWEEP=--keep-trial \"" + directory + "\"");
  std::string line;
  while (!words->empty() && words->front().starts_with("CUAUDIT_")) {
    const std::string& one = words->front();
    // The line of another machine must not choose what is loaded into the test.
    if (!one.starts_with("CUAUDIT_FAULT=") && !one.starts_with("CUAUDIT_CASE=")) {
      return {Exit::Usage, "the line that shows the defect again: '" + one + "': expected CUAUDIT_CASE or CUAUDIT_FAULT"};
    }
    line += ShellQuote(one) + " ";
    environment->push_back(one);
    words->erase(words->begin());
  }
  const std::vector<std::string>& command = options.program.empty() ? *words : options.program;
  if (command.empty()) return {Exit::Usage, "the line that shows the defect again: expected a test behind the variables"};
  const Result<Program> program = ResolveProgram(command.front());
  if (!program.ok()) return program.status();
  Say("runs " + line + ShellJoin(command));
  Launch launch;
  launch.path = program->path;
  launch.arguments = command;
  launch.environment = std::move(*environment);
  launch.output = log;
  launch.deadline_ms = kTestMs;
  int interrupted = 0;
  Progress progress(options.progress);
  progress.Step("running " + ShortName(command.front()), 0, 1);
  const Result<Ending> ending = RunToEnd(launch, &interrupted);
  progress.Clear();
  if (interrupted != 0) return {static_cast<Exit>(kSignalled + interrupted), "ended by a signal"};
  if (!ending.ok()) return ending.status();
  if (IsKeptTrial(directory)) return {};
  return Status(Exit::Environment, "the test kept no trial: expected one that sweeps the lifecycle").With(LastLines(log, kQuotedLines));
}

// A lifecycle in C++ has its trials inside its test.
Result<Reduced> ReduceLifecycle(const Options& options, WantedDefect defect) {
  const Result<WorkDir> work = WorkDir::Open({});
  if (!work.ok()) return work.status();
  const std::string directory = options.keep_trial.empty() ? work->File("trial") : options.keep_trial;
  const Status kept = RunTest(options, defect, work->File("test.log"), directory);
  const Result<Trial> trial = kept.ok() ? ReadTrial(directory, defect) : Result<Trial>(kept);
  work->Remove();
  if (!trial.ok()) return trial.status();
  return ReduceTrialOf(*trial, OptionsOfLifecycle(options), std::move(defect));
}

// Runs the trial of the result again.
Result<Reduced> ReduceFromResult(const Options& options) {
  std::error_code error;
  if (!options.keep_trial.empty() && std::filesystem::exists(options.keep_trial, error) &&
      !std::filesystem::is_empty(options.keep_trial, error)) {
    return Status(Exit::Usage, options.keep_trial + ": --keep-trial: expected a directory that is new or empty");
  }
  const Result<report::Audit> audit = ResultOf(options);
  if (!audit.ok()) return audit.status();
  const std::string source = options.operands.size() == 2 ? options.operands[1] : "the sweep";
  Result<WantedDefect> defect = FindDefect(*audit, options.operands.front(), source);
  if (!defect.ok()) return defect.status();
  if (IsOfLifecycle(*defect)) return ReduceLifecycle(options, std::move(*defect));
  Result<Options> recorded = OptionsOf(*defect, options);
  if (!recorded.ok()) return recorded.status();
  if (options.operands.size() == 2) Say("runs " + CommandLine(*defect, *recorded));
  const Result<EngineOptions> how = EngineOptionsOf(*recorded);
  if (!how.ok()) return how.status();
  const Result<Trial> trial = RunTrial(*recorded, *how, *defect);
  if (!trial.ok()) return trial.status();
  if (!options.keep_trial.empty()) {
    const Status kept = KeepTrial(options.keep_trial, *defect, *trial);
    if (!kept.ok()) return kept;
  }
  return ReduceTrialOf(*trial, std::move(*recorded), std::move(*defect));
}

bool IsJournal(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  char magic[sizeof(faults::kJournalMagic)];
  return file.valid() && read(file.get(), magic, sizeof(magic)) == static_cast<ssize_t>(sizeof(magic)) &&
         std::memcmp(magic, faults::kJournalMagic, sizeof(magic)) == 0;
}

// A recording holds the calls, so nothing is run, and what `explain` says of it is the result.
Result<Reduced> ReduceFromRecording(const Options& options) {
  const std::string& path = options.operands[1];
  if (!options.program.empty()) return Status(Exit::Usage, path + ": the calls of a recording are reduced: expected no program");
  std::vector<Observation> runs(1);
  Progress progress(options.progress);
  Result<Observation> seen = ReadShown(path, &progress);
  if (!seen.ok()) return seen.status();
  if (seen->recording == nullptr) {
    return Status(Exit::Usage, path + ": expected a result, or a recording that cuaudit record made; this is the journal of one run");
  }
  Status whole = CheckWhole(*seen);
  if (!whole.ok()) return whole;
  runs.front() = std::move(*seen);
  SiteTexts sites;
  sites.MarkRuntimeOwned(runs.front().journal, &runs.front().ledger);
  report::Audit audit;
  progress.Step("judging " + ShortName(path), 1, kRecordingSteps);
  audit.cases.emplace_back().runs.push_back(ReportOfRecording(runs.front(), path, &sites));
  progress.Clear();
  Result<WantedDefect> defect = FindDefect(audit, options.operands.front(), path);
  if (!defect.ok()) return defect.status();
  Result<CallList> list = LiftCalls(runs, {}, defect->wanted, &sites, defect->lost);
  if (!list.ok()) return list.status();
  DefectJudge look{JudgeOptions()};
  const bool grows = defect->root.rule == Rule::Growth;
  const ToldReduction told = ReducingOf(&progress);
  Result<Reduction> reduction =
      grows ? ReduceToOneCycle(*list, defect->wanted, &look, told) : ReduceCalls(std::move(*list), defect->wanted, &look, told);
  progress.Clear();
  if (!reduction.ok()) {
    const bool gap = !runs.front().recording->Whole();
    return Status(reduction.status().exit(), reduction.status().message() + (gap ? "; a part of the recording is missing" : ""));
  }
  return Reduced{std::move(*defect), Options(), std::move(*reduction)};
}

}  // namespace

Result<Reduced> ReduceDefect(const Options& options) {
  if (options.operands.size() < 2) return ReduceFromResult(options);
  const bool recording = IsJournal(options.operands[1]);
  const bool kept = IsKeptTrial(options.operands[1]);
  if (!options.keep_trial.empty() && (recording || kept)) {
    return Status(Exit::Usage, options.operands[1] + ": --keep-trial: expected a result whose trial is run");
  }
  return recording ? ReduceFromRecording(options) : kept ? ReduceKept(options, options.operands[1]) : ReduceFromResult(options);
}

}  // namespace cuaudit::harness
