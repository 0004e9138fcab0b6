// SPDX-License-Identifier: MIT
// `reduce`: makes an issue kit of one defect and checks it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/reduced_defect.h"
#include "harness/cli/session.h"
#include "harness/compare/result_files.h"
#include "harness/kit/defect_shown.h"
#include "harness/kit/issue_text.h"
#include "harness/kit/reducer_text.h"
#include "harness/process/files.h"
#include "harness/process/process.h"
#include "harness/process/program.h"

namespace cuaudit::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kCompileMs = 120000;

// What of the options the reducer is audited with, too.
std::vector<std::string> KeptOptions(const Options& recorded) {
  std::vector<std::string> kept;
  for (const std::string& flag : EchoOptions(recorded, kReplay)) {
    if (flag.starts_with("--orphans=") || flag.starts_with("--scope=")) kept.push_back(flag);
  }
  return kept;
}

// Only a kit that is not confirmed has it: the fingerprint of its defect.
constexpr const char kNotConfirmed[] = "not_confirmed";
constexpr const char* kKitFiles[] = {"ISSUE.md", "reducer.c", "run.sh", kNotConfirmed};

std::string NotConfirmed(const std::string& fingerprint) { return fingerprint + "\n"; }

// True for what an earlier reduction of the defect left that could not confirm its kit, and nothing else.
bool IsUnconfirmedKit(const std::string& path, const std::string& fingerprint) {
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const bool known = std::find(std::begin(kKitFiles), std::end(kKitFiles), at->path().filename()) != std::end(kKitFiles);
    if (!known || at->symlink_status(error).type() != fs::file_type::regular) return false;
  }
  if (error) return false;
  const Result<std::string> of = ReadFile(path + "/" + kNotConfirmed);
  return of.ok() && *of == NotConfirmed(fingerprint);
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
  std::vector<std::string> places = {options.cuda};
  if (options.cuda.empty()) places = {VariableOf("CUDA_HOME"), VariableOf("CUDA_PATH"), "/usr/local/cuda"};
  std::erase(places, "");
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
  const std::string chosen = VariableOf("CC");
  const std::string compiler = chosen.empty() ? "cc" : chosen;
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
Result<report::Run> AuditReducer(const Options& given, const KitCommand& command, const std::string& directory, const WorkDir& work) {
  std::vector<std::string> words = {command.command};
  words.insert(words.end(), command.options.begin(), command.options.end());
  const std::string file = work.File("reducer.json");
  words.push_back("--format=json=" + file);
  words.push_back("--progress=" + given.progress);
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
  // A fault that stays would hit the second lifecycle, too, which may also undo what the first one left: then the reducer runs one. After
  // that it ends, which is no excuse, because the program went on.
  const KitCommand twice = *command;
  for (const auto& [once, goes_on] : {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    if (once && (!list.has_faults() || !twice.arguments.empty())) break;
    if (once) command->arguments = {"1"};
    if (goes_on) command->options.emplace_back("--abandoned-is-leak");
    const Result<report::Run> run = AuditReducer(options, *command, directory, work);
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
  *command = twice;
  return check;
}

}  // namespace

Exit ReduceCommand(const Options& options) {
  const std::string& fingerprint = options.operands.front();
  const std::string directory = options.kit.empty() ? "issue-" + fingerprint : options.kit;
  if (fingerprint.find('/') != std::string::npos) return Refuse({Exit::Usage, "'" + fingerprint + "': expected a fingerprint"});
  Status status = CheckDirectory(directory, fingerprint);
  if (!status.ok()) return Refuse(status);
  const Result<Reduced> reduced = ReduceDefect(options);
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
  for (const bool by_place : {IsByPlace(defect), !IsByPlace(defect)}) {
    if (check.same) continue;
    write("reducer.c", ReducerText(reduction.list, heading, by_place));
    if (!status.ok()) return Refuse(status);
    check = Check(options, defect, reduction.list, directory, *work, &command);
  }
  write("run.sh", RunScript(command));
  write("ISSUE.md", IssueText(defect, reduction, command, check));
  if (!check.same) write(kNotConfirmed, NotConfirmed(fingerprint));
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
