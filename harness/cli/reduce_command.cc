// SPDX-License-Identifier: MIT
// `reduce`: makes an issue kit of one defect and checks it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "faults/journal/layout.h"
#include "harness/cli/carry_out.h"
#include "harness/cli/commands.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/recording_report.h"
#include "harness/cli/session.h"
#include "harness/compare/result_files.h"
#include "harness/kit/defect_shown.h"
#include "harness/kit/issue_text.h"
#include "harness/kit/lift_calls.h"
#include "harness/kit/reduce_calls.h"
#include "harness/kit/reducer_text.h"
#include "harness/options/sweep_settings.h"
#include "harness/process/files.h"
#include "harness/process/process.h"
#include "harness/process/program.h"
#include "harness/process/shell.h"
#include "harness/recording/recording.h"
#include "harness/sweep/run/site_text.h"

namespace cuaudit::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kCompileMs = 120000;

// The defect, the options under which it was seen, and the fewest calls that show it.
struct Reduced {
  WantedDefect defect;
  Options recorded;
  Reduction reduction;
};

// The result that was named, or that of a sweep of the program.
Result<report::Audit> ResultOf(const Options& options) {
  if (options.operands.size() == 2) return ReadResult(options.operands[1]);
  Options sweep = options;
  sweep.command = kSweep;
  const Result<SweepOptions> how = SweepOptionsOf(sweep);
  if (!how.ok()) return how.status();
  const Result<Session> session = Session::Open(sweep);
  if (!session.ok()) return session.status();
  Progress progress(Options().progress);
  CarriedOut carried = CarryOutSweep(*session, *how, {}, &progress);
  if (carried.progressed.signal != 0) return Status(static_cast<Exit>(kSignalled + carried.progressed.signal), "ended by a signal");
  if (!carried.status.ok()) return carried.status;
  report::Audit audit;
  audit.cases.emplace_back();
  audit.cases.front().runs.push_back(std::move(carried.run));
  return audit;
}

// The options under which the defect was seen, from the line that shows it again; a program on the command line takes the place of its own.
Result<Options> OptionsOf(const WantedDefect& defect, const Options& given) {
  const auto& ran = defect.run.totals.isolation;
  if (std::any_of(ran.begin(), ran.end(), [](const auto& one) { return one.first.in == words::Isolation::InProcess; })) {
    return Status(Exit::Environment,
                  defect.defect.fingerprint +
                      ": no kit: the defect is of a lifecycle in C++, whose trials run inside its test: cuaudit cannot " +
                      "record them again. Expected a defect of a program, or of a recording");
  }
  const std::optional<std::vector<std::string>> line = ShellSplit(defect.root.reproduce);
  if (!line || line->size() < 2) {
    return Status(Exit::Usage, "the defect has no line that shows it again: expected one that begins with cuaudit replay, run or cycles");
  }
  Result<Options> options = ParseOptions(std::span(*line).subspan(1));
  if (!options.ok()) return Status(Exit::Usage, "the line that shows the defect again: " + options.status().message());
  if ((options->command & kAudit) == 0) {
    return Status(Exit::Usage, "the line that shows the defect again: expected cuaudit replay, run or cycles");
  }
  if (!given.program.empty()) {
    // The line of another machine must not choose what is loaded into the user's own program.
    options->program = given.program;
    options->environment = given.environment;
    options->kernels = given.kernels;
    options->real_driver = given.real_driver;
  }
  options->tool = given.tool;
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

// What of the options the reducer is audited with, too.
std::vector<std::string> KeptOptions(const Options& recorded) {
  std::vector<std::string> kept;
  for (const std::string& flag : EchoOptions(recorded, kReplay)) {
    if (flag.starts_with("--orphans=") || flag.starts_with("--scope=")) kept.push_back(flag);
  }
  return kept;
}

Result<Reduction> ReduceDefect(const Options& recorded, WantedDefect* wanted) {
  const WantedDefect& defect = *wanted;
  const Result<SweepOptions> how = SweepOptionsOf(recorded);
  if (!how.ok()) return how.status();
  std::vector<faults::Fault> faults;
  for (const std::string& text : defect.faults) {
    faults.emplace_back();
    const faults::ParseError error = faults::ParseFault(text, &faults.back());
    if (error.expected != nullptr) return Status(Exit::Usage, "fault '" + text + "': expected " + error.expected);
  }
  const Result<Session> session = Session::Open(recorded);
  if (!session.ok()) return session.status();
  if (!defect.faults.empty()) {
    const CarriedOut replayed = CarryOutReplay(*session, *how, defect.faults);
    if (replayed.progressed.signal != 0) return Status(static_cast<Exit>(kSignalled + replayed.progressed.signal), "ended by a signal");
    if (!replayed.status.ok()) return replayed.status;
    const Status counted = TakeCounts(replayed.run, wanted);
    if (!counted.ok()) return counted;
  }
  int interrupted = 0;
  const Result<std::vector<Observation>> runs = RecordTrial(session->subject(), session->dir(), defect.faults, &interrupted);
  if (interrupted != 0) return Status(static_cast<Exit>(kSignalled + interrupted), "ended by a signal");
  if (!runs.ok()) return runs.status();
  SiteTexts places;
  Result<CallList> list = LiftCalls(*runs, faults, defect.wanted, &places);
  if (!list.ok()) return list.status();
  JudgeOptions judge = how->judge;
  judge.abandoned_is_leak = true;  // the reducer goes on with its next lifecycle
  DefectJudge look(judge);
  Result<Reduction> reduction = ReduceCalls(std::move(*list), defect.wanted, &look);
  const std::size_t processes = CallingProcesses(runs->back());
  if (reduction.ok() || processes < 2) return reduction;
  return Status(reduction.status().exit(),
                reduction.status().message() + "; they are those of one process, and " + std::to_string(processes) + " call the driver");
}

// Runs the trial of the result again.
Result<Reduced> ReduceFromResult(const Options& options) {
  const Result<report::Audit> audit = ResultOf(options);
  if (!audit.ok()) return audit.status();
  const std::string source = options.operands.size() == 2 ? options.operands[1] : "the sweep";
  Result<WantedDefect> defect = FindDefect(*audit, options.operands.front(), source);
  if (!defect.ok()) return defect.status();
  Result<Options> recorded = OptionsOf(*defect, options);
  if (!recorded.ok()) return recorded.status();
  if (options.operands.size() == 2) Say("runs " + CommandLine(*defect, *recorded));
  Result<Reduction> reduction = ReduceDefect(*recorded, &*defect);
  if (!reduction.ok()) return reduction.status();
  return Reduced{std::move(*defect), std::move(*recorded), std::move(*reduction)};
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
  Result<Observation> seen = ReadObservation(path, Ending());
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
  audit.cases.emplace_back().runs.push_back(ReportOfRecording(runs.front(), path, &sites));
  Result<WantedDefect> defect = FindDefect(audit, options.operands.front(), path);
  if (!defect.ok()) return defect.status();
  Result<CallList> list = LiftCalls(runs, {}, defect->wanted, &sites);
  if (!list.ok()) return list.status();
  DefectJudge look{JudgeOptions()};
  const bool grows = defect->root.rule == Rule::Growth;
  Result<Reduction> reduction =
      grows ? ReduceToOneCycle(*list, defect->wanted, &look) : ReduceCalls(std::move(*list), defect->wanted, &look);
  if (!reduction.ok()) {
    const bool gap = !runs.front().recording->Whole();
    return Status(reduction.status().exit(), reduction.status().message() + (gap ? "; a part of the recording is missing" : ""));
  }
  return Reduced{std::move(*defect), Options(), std::move(*reduction)};
}

constexpr const char* kKitFiles[] = {"ISSUE.md", "reducer.c", "run.sh"};

// True for what an earlier reduction of the defect left that could not confirm its kit, and nothing else.
bool IsUnconfirmedKit(const std::string& path, const std::string& fingerprint) {
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const bool known = std::find(std::begin(kKitFiles), std::end(kKitFiles), at->path().filename()) != std::end(kKitFiles);
    if (!known || at->symlink_status(error).type() != fs::file_type::regular) return false;
  }
  if (error) return false;
  const Result<std::string> page = ReadFile(path + "/ISSUE.md");
  return page.ok() && IsUnconfirmedPage(*page, fingerprint);
}

Status CheckDirectory(const std::string& path, const std::string& fingerprint) {
  std::error_code error;
  if (!fs::exists(path, error) || (fs::is_directory(path, error) && fs::is_empty(path, error))) return {};
  if (fs::is_directory(path, error) && IsUnconfirmedKit(path, fingerprint)) return {};
  return {Exit::Usage, path + ": expected a directory that is new or empty, or a kit of this defect that is not confirmed"};
}

Status PrepareDirectory(const std::string& path, const std::string& fingerprint) {
  const Status fit = CheckDirectory(path, fingerprint);
  if (!fit.ok()) return fit;
  std::error_code error;
  for (const char* const file : kKitFiles) fs::remove(fs::path(path) / file, error);
  fs::create_directories(path, error);
  return error ? Status(Exit::Usage, path + ": " + error.message()) : Status();
}

std::string CudaInclude(const Options& options) {
  std::vector<std::string> places;
  if (!options.cuda.empty()) places = {options.cuda};
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const value = std::getenv(name);
    if (options.cuda.empty() && value != nullptr && *value != '\0') places.emplace_back(value);
  }
  if (options.cuda.empty()) places.emplace_back("/usr/local/cuda");
  std::error_code error;
  for (const std::string& place : places) {
    for (const std::string& folder : {place + "/include", place}) {
      if (fs::exists(folder + "/cuda.h", error)) return folder;
    }
  }
  return {};
}

// Compiles the reducer. An error says what is missing.
Status Compile(const Options& options, const std::string& directory, const WorkDir& work) {
  const std::string include = CudaInclude(options);
  if (include.empty()) return {Exit::Environment, "cuda.h is missing: expected --cuda or CUDA_HOME with a CUDA toolkit"};
  const char* const chosen = std::getenv("CC");
  const std::string compiler = chosen != nullptr && *chosen != '\0' ? chosen : "cc";
  const Result<Program> program = ResolveProgram(compiler);
  if (!program.ok()) return {Exit::Environment, "a C compiler is missing: " + program.status().message()};
  const Result<Machine> machine = LookAround({});
  if (!machine.ok()) return machine.status();
  Result<std::vector<std::string>> environment = CurrentEnvironment();
  if (!environment.ok()) return environment.status();
  Launch launch;
  launch.path = program->path;
  launch.arguments = {compiler, "-g", "reducer.c", "-o", "reducer", "-I" + include, "-L" + machine->drop_in_dir, "-lcuda"};
  launch.environment = std::move(*environment);
  launch.directory = directory;
  launch.output = work.File("compile.log");
  launch.deadline_ms = kCompileMs;
  int interrupted = 0;
  const Result<Ending> ending = RunToEnd(launch, &interrupted);
  if (!ending.ok()) return ending.status();
  if (ending->exit_status == 0 && ending->signal == 0 && !ending->timed_out) return {};
  return Status(Exit::Environment, "the reducer does not compile").With(LastLines(launch.output, kQuotedLines));
}

// Audits the compiled reducer by its command.
Result<report::Run> AuditReducer(const KitCommand& command, const std::string& directory, const WorkDir& work) {
  std::vector<std::string> words = {command.command};
  words.insert(words.end(), command.options.begin(), command.options.end());
  const std::string file = work.File("reducer.json");
  words.push_back("--format=json=" + file);
  words.emplace_back("--");
  words.push_back(fs::absolute(directory).string() + "/reducer");
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  const Result<Options> options = ParseOptions(words);
  if (!options.ok()) return options.status();
  const Exit exit = options->command == kReplay ? ReplayCommand(*options)
                    : options->command == kRun  ? RunCommand(*options)
                                                : CyclesCommand(*options);
  if (exit != Exit::Clean && exit != Exit::Findings && exit != Exit::Environment) return Status(exit, "the reducer cannot be audited");
  Result<report::Audit> audit = ReadResult(file);
  if (!audit.ok()) return audit.status();
  return std::move(audit->cases.front().runs.front());
}

KitCheck Check(const Options& options, const WantedDefect& defect, const CallList& list, const std::string& directory, const WorkDir& work,
               KitCommand* command) {
  KitCheck check;
  const Status compiled = Compile(options, directory, work);
  if (!compiled.ok()) {
    SayFailure(compiled);
    check.missing = compiled.message();
    return check;
  }
  // A fault that stays would hit the second lifecycle, too: then the reducer runs one.
  for (const bool once : {false, true}) {
    if (once && (!list.has_faults() || !command->arguments.empty())) break;
    if (once) command->arguments = {"1"};
    const Result<report::Run> run = AuditReducer(*command, directory, work);
    if (!run.ok()) {
      check.missing = run.status().message();
      continue;
    }
    const std::vector<Wrong> shown = WrongIn(*run, list.has_faults() ? FaultsOf(list) : std::vector<std::string>());
    check.same = std::all_of(defect.wanted.begin(), defect.wanted.end(),
                             [&](const Wrong& one) { return std::find(shown.begin(), shown.end(), one) != shown.end(); });
    if (check.same) return check;
    check.missing = "expected " + InWords(defect, defect.wanted) + ", found " + InWords(defect, shown);
  }
  if (list.has_faults()) command->arguments.clear();
  return check;
}

}  // namespace

Exit ReduceCommand(const Options& options) {
  const std::string& fingerprint = options.operands.front();
  const std::string directory = options.kit.empty() ? "issue-" + fingerprint : options.kit;
  if (fingerprint.find('/') != std::string::npos) return Refuse({Exit::Usage, "'" + fingerprint + "': expected a fingerprint"});
  Status status = CheckDirectory(directory, fingerprint);
  if (!status.ok()) return Refuse(status);
  const bool recording = options.operands.size() == 2 && IsJournal(options.operands[1]);
  const Result<Reduced> reduced = recording ? ReduceFromRecording(options) : ReduceFromResult(options);
  if (!reduced.ok()) {
    SayFailure(reduced.status());
    return reduced.status().exit();
  }
  const WantedDefect& defect = reduced->defect;
  const Reduction& reduction = reduced->reduction;
  status = PrepareDirectory(directory, fingerprint);
  if (!status.ok()) return Refuse(status);
  const Result<WorkDir> work = WorkDir::Open({});
  if (!work.ok()) return Refuse(work.status());
  const auto write = [&](const char* name, const std::string& text) {
    if (status.ok()) status = WriteFile(directory + "/" + name, text, Exit::Failure);
  };
  KitCommand command = CommandOf(defect, reduction.list, KeptOptions(reduced->recorded));
  const std::vector<std::string> heading = HeadingOf(defect, reduction.list);
  KitCheck check;
  // Where places matter, it depends on the stacks of the program whether calls of one instruction must stay one.
  for (const bool by_place : {true, false}) {
    if (check.same || (by_place && !IsByPlace(defect))) continue;
    write("reducer.c", ReducerText(reduction.list, heading, by_place));
    if (!status.ok()) return Refuse(status);
    check = Check(options, defect, reduction.list, directory, *work, &command);
  }
  write("run.sh", RunScript(command));
  write("ISSUE.md", IssueText(defect, reduction, command, check));
  work->Remove();
  std::error_code ignored;
  fs::remove(directory + "/reducer", ignored);
  if (!status.ok()) return Refuse(status);
  for (const std::string& one : defect.left_out) Say("warning: not in the reducer: " + one);
  const std::string size = std::to_string(CountCalls(reduction.list)) + " of " + std::to_string(reduction.before) + " calls";
  if (!check.same) {
    Say(directory + ": " + size + "; not confirmed: " + check.missing);
    return Exit::Environment;
  }
  return Print(directory + ": " + size + " show " + InWords(defect, defect.wanted) + "\n");
}

}  // namespace cuaudit::harness
