// SPDX-License-Identifier: MIT
#include <cuda.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "harness/cli/carry_out.h"
#include "harness/cli/case_runs.h"
#include "harness/cli/commands.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/cycle/cycles.h"
#include "harness/ledger/host_deed.h"
#include "harness/options/report_files.h"
#include "harness/process/files.h"
#include "harness/process/program.h"
#include "harness/process/shell.h"
#include "harness/project/init_file.h"
#include "harness/sweep/run/rehearsal.h"
#include "reports/escape.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

std::string Limit(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

// kernel.yama.ptrace_scope decides whether a debugger can attach to a hung trial.
std::string PtraceScope() {
  const Result<std::string> text = ReadFile("/proc/sys/kernel/yama/ptrace_scope");
  if (!text.ok()) return "not restricted";
  return "kernel.yama.ptrace_scope " + text->substr(0, text->find('\n'));
}

std::string TemporarySpace() {
  const std::string chosen = VariableOf("TMPDIR");
  const std::string dir = chosen.empty() ? "/tmp" : chosen;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(dir, error);
  if (error) return dir + ": " + error.message();
  return fmt::format("{}: {} MiB free{}", dir, space.available >> 20U, access(dir.c_str(), W_OK) == 0 ? "" : ", not writable");
}

std::string Joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line.empty() ? "none" : line;
}

std::string OwnRuntimeInWords(const Machine& machine) {
  if (CUDA_VERSION < 13000) {
    return fmt::format("no own one: cuaudit was built with the headers of CUDA {}.{}, and its runtime needs those of 13",
                       CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
  }
  std::string words;
  if (!machine.cudart_dir.empty()) words = "own, for programs of the shared runtime on the simulated driver: " + machine.cudart_dir;
  if (machine.cudart_missing.empty()) return words;
  return words + (words.empty() ? "no own one: " : "; ") + Joined(machine.cudart_missing) +
         " missing: ./scripts/audit builds it (the target cuaudit_complete)";
}

}  // namespace

Exit DoctorCommand(const Options& options) {
  const Result<Machine> machine = LookAround(options.real_driver);
  if (!machine.ok()) return Refuse(machine.status());
  const Result<ChosenDriver> chosen = ChooseDriver(options.driver, *machine);
  std::string page;
  const auto row = [&page](std::string_view what, const std::string& value) { page += fmt::format("{:<16}{}\n", what, value); };
  row("cuaudit", std::string(ToolVersion()));
  row("headers", fmt::format("CUDA {}.{}, {} entry points", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, driver::kCallCount));
  row("drop-in", machine->drop_in_dir + (machine->drop_in ? "" : ": libcuda.so.1 is missing"));
  row("host drop-in", machine->host_drop_in
                          ? "found"
                          : "libcuaudit_host.so or libcuaudit_host_basic.so is missing: cuaudit-sim has no audits, cuaudit has");
  row("CUDA runtime", OwnRuntimeInWords(*machine));
  row("genuine driver", machine->genuine_driver.empty() ? "none" : machine->genuine_driver);
  row("device nodes", Joined(machine->device_nodes));
  row("--driver=" + options.driver,
      !chosen.ok() ? chosen.status().message() : fmt::format("{} ({})", DriverInWords(chosen->driver), chosen->why));
  row("ptrace", PtraceScope());
  row("limits", "open files " + Limit(RLIMIT_NOFILE) + ", processes " + Limit(RLIMIT_NPROC) + ", file bytes " + Limit(RLIMIT_FSIZE));
  row("work directory", TemporarySpace());
  const Exit printed = Print(page);
  if (printed != Exit::Clean) return printed;
  return machine->drop_in && machine->host_drop_in && chosen.ok() ? Exit::Clean : Exit::Environment;
}

namespace {

// Entries of cuaudit in a variable that holds a list.
struct ListVariable {
  const char* name;
  const char* separators;
  std::vector<std::string> ours;
  bool set;  // false: the entries are taken out again
};

std::optional<std::string> Current(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The list that the variable is to have: ours in front, once, however often the lines were evaluated before.
std::optional<std::string> Changed(const ListVariable& variable) {
  const std::string theirs = WithoutEntries(Current(variable.name).value_or(""), variable.ours, variable.separators);
  std::string list;
  if (variable.set) {
    for (const std::string& entry : variable.ours) list += (list.empty() ? "" : ":") + entry;
  }
  if (!theirs.empty()) list += (list.empty() ? "" : ":") + theirs;
  return list.empty() ? std::nullopt : std::optional<std::string>(std::move(list));
}

// What must change in the environment for the simulated driver (`on`), or for what was there before.
std::vector<Variable> Changes(const Machine& machine, const std::string& world, bool on, bool preload) {
  std::vector<std::string> directories = {machine.drop_in_dir};
  std::vector<std::string> libraries = {machine.drop_in_dir + "/libcuda.so.1"};
  if (!machine.cudart_dir.empty()) {
    directories.push_back(machine.cudart_dir);
    for (const char* const soname : {"libcudart.so.13", "libcudart.so.12"}) {
      const std::string file = OwnRuntime(machine, soname);
      if (!file.empty()) libraries.push_back(file);
    }
  }
  std::vector<Variable> variables;
  // What is set is said even where it is set already, so that the lines can be kept in a file.
  const auto add = [&variables](const char* name, std::optional<std::string> value, bool set) {
    if (set || value != Current(name)) variables.push_back({name, std::move(value)});
  };
  add("LD_LIBRARY_PATH", Changed({"LD_LIBRARY_PATH", ":;", directories, on}), on);
  add("LIBRARY_PATH", Changed({"LIBRARY_PATH", ":", directories, on}), on);  // where compilers look for -lcuda, after all -L
  add("LD_PRELOAD", Changed({"LD_PRELOAD", ": ", libraries, on && preload}), on && preload);
  add("CUAUDIT_OPTIONS", on ? std::optional<std::string>("driver=sim" + (world.empty() ? "" : ";" + world)) : std::nullopt, on);
  return variables;
}

// The loader splits LD_LIBRARY_PATH at colons and semicolons, and LD_PRELOAD at spaces, too.
Status CheckPlace(const Machine& machine, bool preload) {
  if (!machine.drop_in) return {Exit::Environment, machine.drop_in_dir + "/libcuda.so.1: not found: the installation is not whole"};
  if (preload) return CheckDropInPath(machine.drop_in_dir);
  if (machine.drop_in_dir.find_first_of(":;") == std::string::npos) return {};
  return {Exit::Environment, "'" + machine.drop_in_dir + "': the loader takes no library from a directory with ':' or ';' in its path: " +
                                 "install cuaudit elsewhere"};
}

Exit RunWith(const std::vector<Variable>& variables, const std::vector<std::string>& command) {
  const Result<Program> program = ResolveProgram(command.front());
  if (!program.ok()) return Refuse(program.status());
  for (const Variable& variable : variables) {
    const char* const name = variable.name.c_str();
    if ((variable.value.has_value() ? setenv(name, variable.value->c_str(), 1) : unsetenv(name)) != 0)
      return Refuse({Exit::Failure, variable.name + ": " + std::strerror(errno)});
  }
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  execvp(words.front(), words.data());
  return Refuse({Exit::Usage, command.front() + ": " + std::strerror(errno)});
}

}  // namespace

Exit EnvCommand(const Options& options) {
  const Result<std::string> world = WorldText(options);
  if (!world.ok()) return Refuse(world.status());
  const Status alone = CheckNoAuditHere();
  if (!alone.ok()) return Refuse(alone);
  const Result<Machine> machine = LookAround("");
  if (!machine.ok()) return Refuse(machine.status());
  const Result<ChosenDriver> chosen = ChooseDriver(options.off ? "sim" : options.driver, *machine);
  if (!chosen.ok()) return Refuse(chosen.status());
  const bool on = !options.off && chosen->driver == DriverKind::Simulated;
  if (!on && !world->empty())
    return Refuse({Exit::Usage, *world + ": only the simulated driver can be asked for it: expected --driver=sim, and no --off"});
  const Status place = on ? CheckPlace(*machine, options.preload) : Status();
  if (!place.ok()) return Refuse(place);
  if (options.driver == "auto" && !options.off) Say(fmt::format("driver: {}: {}", DriverInWords(chosen->driver), chosen->why));
  const std::vector<Variable> changes = Changes(*machine, *world, on, options.preload);
  if (!options.program.empty()) return RunWith(changes, options.program);
  return Print(ShellLines(options.shell == "fish" ? Shell::Fish : Shell::Posix, changes));
}

namespace {

ProgramSeen WhatWasSeen(const Rehearsal& rehearsal, const Session& session, std::uint64_t run_ms) {
  ProgramSeen seen;
  seen.driver = session.subject().launch.driver;
  if (session.options().driver == "auto") seen.why = session.why_driver();
  const Evidence run = rehearsal.run.evidence();
  std::set<std::uint32_t> threads;
  std::set<std::uint32_t> processes;
  for (const std::uint32_t call : run.facts().calls) {
    threads.insert(run.record(call).tid);
    processes.insert(run.record(call).pid);
  }
  seen.calls = run.facts().calls.size();
  seen.threads = threads.size();
  seen.processes = processes.size();
  seen.cycles = run.facts().cycles.size();
  if (rehearsal.drifting) seen.drift = Words(rehearsal.drift);
  seen.run_ms = run_ms;
  seen.host = LiveTable(rehearsal.run.ledger);
  std::erase_if(seen.host, [](const report::LiveRow& row) { return !IsHost(driver::KindFromName(row.kind)); });
  return seen;
}

}  // namespace

Exit InitCommand(const Options& options) {
  const std::string& file = options.config_file;
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
    return Refuse({Exit::Usage, file + ": is there already, expected another file (--config)"});
  }
  const Status writable = CheckOutput(file, "--config");
  if (!writable.ok()) return Refuse(writable);
  ProjectCase one;
  one.place = file;
  ApplyGiven(options, "command line", &one);
  one.options.program = options.program;
  one.name = CaseNameOf(options.program.front());
  const Status usable = CheckCase(one);
  if (!usable.ok()) return Refuse(usable);

  Options sweep = options;
  sweep.command = kSweep;
  sweep.program = WithCount(options.program, kCyclesOfSweep);
  const Result<Session> session = Session::Open(sweep);
  if (!session.ok()) return Refuse(session.status());
  int interrupted = 0;
  const auto begun = std::chrono::steady_clock::now();
  Progress progress(options.progress);
  const Result<Rehearsal> rehearsal = RehearseShown(*session, 2, &interrupted, &progress);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  if (interrupted != 0) return static_cast<Exit>(kSignalled + interrupted);
  if (!rehearsal.ok()) {
    SayFailure(rehearsal.status());
    return rehearsal.status().exit();
  }
  const std::string here = std::filesystem::current_path(error).string();
  const ProgramSeen seen = WhatWasSeen(*rehearsal, *session, static_cast<std::uint64_t>(took.count()) / 2);
  const Status written = WriteFile(file, InitFile(one, seen, FolderOf(file), here), Exit::Failure);
  if (!written.ok()) return Refuse(written);
  return Print(report::ForTerminal(file) + ": case " + one.name + "; now: cuaudit audit" +
               (file == Options().config_file ? "" : " --config " + ShellQuote(file)) + "\n");
}

}  // namespace cuaudit::harness
