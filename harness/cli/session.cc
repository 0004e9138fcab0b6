// SPDX-License-Identifier: MIT
#include "harness/cli/session.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "faults/interpose/world_options.h"
#include "faults/plan/fault.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/side_by_side.h"
#include "harness/process/shell.h"
#include "reports/escape.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kSimulatedDeadlineMs = 10000;
constexpr std::uint64_t kGenuineDeadlineMs = 60000;
constexpr std::size_t kJobsOnGenuineDriver = 4;  // each trial holds a context of its own on the device

std::uint64_t DeadlineMs(const Options& options, DriverKind driver) {
  if (options.deadline_ms != 0 || options.command == kRun || options.command == kRecord) return options.deadline_ms;
  return driver == DriverKind::Simulated ? kSimulatedDeadlineMs : kGenuineDeadlineMs;
}

// Answers the absolute path, because the program may run in another directory. A file that is no library is refused before the program
// runs.
Result<std::string> SharedLibrary(const std::string& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file, error).lexically_normal();
  if (error || !std::filesystem::exists(path, error)) return Status(Exit::Usage, file + ": not found");
  if (!std::filesystem::is_regular_file(path, error)) return Status(Exit::Usage, file + ": is no file");
  ElfW(Ehdr) header = {};
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return Status(Exit::Usage, file + ": " + std::strerror(errno));
  const ssize_t bytes = read(opened, &header, sizeof(header));
  close(opened);
  if (bytes != static_cast<ssize_t>(sizeof(header)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN) {
    return Status(Exit::Usage, file + ": expected a shared library");
  }
  return path.string();
}

// The option that asks to refuse memory or threads, as it was given; empty when there is none. Only the host drop-in can do that.
std::string HostFaultOption(const Options& options) {
  if (options.command == kSweep) {
    for (const std::string& how : SplitCommas(options.how)) {
      if (faults::HostFaultAsked(how) != nullptr) return "--how " + how;
    }
  }
  if (options.command == kReplay) {
    for (const std::string& fault : options.fault) {
      if (faults::HostFaultOf(std::string_view(fault)) != nullptr) return "--fault " + ShellQuote(fault);
    }
  }
  return {};
}

// Without call stacks mappings and threads of the driver cannot be told from the program's, and their number depends on what the driver
// does.
bool TellsOwners(const Options& options) { return options.stacks != 0; }

HostProbes ProbesOf(const Options& options, Command command) {
  if (command == kRecord) return HostProbes::None;  // it is made for production, and pays for the driver's calls alone
  if (options.host) return HostProbes::Heap;
  if (options.no_host) return HostProbes::None;
  if (command == kCycles || !HostFaultOption(options).empty()) return HostProbes::Heap;
  return TellsOwners(options) ? HostProbes::Basic : HostProbes::None;
}

// Describes the probes that were asked for. The journal says what became of them (DescribeRun).
report::Host DescribeProbes(const Options& options, HostProbes probes) {
  report::Host host;
  const auto put = [&](driver::Kind kind, Reason why) {
    const std::string name(driver::Name(kind));
    if (why == Reason::None) host.probes.push_back(name);
    else host.left_out[name] = {why};
  };
  const Reason none = options.no_host ? Reason::AskedNoHost : Reason::NeedsStacks;
  put(driver::Kind::HostHeap, probes == HostProbes::Heap ? Reason::None : probes == HostProbes::None ? none : Reason::CostsMore);
  for (const driver::Kind kind : {driver::Kind::FileDescriptor, driver::Kind::Thread, driver::Kind::HostMapping,
                                  driver::Kind::DlopenReference, driver::Kind::Mutex}) {
    put(kind, probes == HostProbes::None ? none : Reason::None);
  }
  return host;
}

report::Mode ModeOf(Command command) {
  constexpr std::pair<Command, report::Mode> kModes[] = {
      {kRun, report::Mode::Run}, {kCycles, report::Mode::Cycles}, {kSweep, report::Mode::Sweep}, {kReplay, report::Mode::Replay}};
  for (const auto& [one, mode] : kModes) {
    if (one == command) return mode;
  }
  return report::Mode::Unknown;
}

// Puts the variables of --environment in the place of those that are there.
Status SetVariables(const std::vector<std::string>& given, std::vector<std::string>* environment) {
  for (const std::string& line : given) {
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string::npos)
      return {Exit::Usage, OptionFlag{"--environment"}, "'" + line + "': expected NAME=VALUE"};
    const std::string name = line.substr(0, equals + 1);
    if (name == "CUAUDIT_OPTIONS=")
      return {Exit::Usage, OptionFlag{"--environment"}, "CUAUDIT_OPTIONS: expected another name, cuaudit sets this one"};
    std::erase_if(*environment, [&](const std::string& other) { return other.starts_with(name); });
    environment->push_back(line);
  }
  return {};
}

}  // namespace

Exit ExitOf(const report::Run& run) {
  if (run.outcome == words::Outcome::Clean) return Exit::Clean;
  const bool found = run.outcome == words::Outcome::Findings || run.outcome == words::Outcome::Left;
  return found ? Exit::Findings : Exit::Environment;
}

Exit ExitOf(const Status& status, const report::Run& run) {
  if (status.ok()) return ExitOf(run);
  return status.exit() == Exit::Failure ? Exit::Failure : Exit::Environment;
}

Result<std::string> WorldText(const Options& options) {
  struct Given {
    const char* key;
    const char* flag;
    const std::string* value;
  };
  const Given all[] = {
#define CUAUDIT_WORLD_OPTION(key, flag, operand, fallback, help) {#key, flag, &options.key},
#include "faults/interpose/world_options.def"
#undef CUAUDIT_WORLD_OPTION
  };
  faults::WorldRequest request;
  std::string text;
  for (const Given& given : all) {
    if (given.value->empty()) continue;
    std::string value = *given.value;
    if (std::string_view(given.key) == "kernels") {
      Result<std::string> found = SharedLibrary(value);
      if (!found.ok()) return Status(Exit::Usage, OptionFlag{given.flag}, found.status().message());
      value = std::move(*found);
    }
    if (const char* const expected = faults::SetWorldOption(given.key, value, &request)) {
      return Status(Exit::Usage, OptionFlag{given.flag}, "'" + *given.value + "': expected " + expected);
    }
    text += std::string(text.empty() ? "" : ";") + given.key + "=" + value;
  }
  return text;
}

namespace {

// Where Say keeps its lines; none: it writes them.
std::vector<std::string>*& Keeper() {
  static std::vector<std::string>* keeper = nullptr;
  return keeper;
}

}  // namespace

KeptLines::KeptLines() { Keeper() = &lines_; }
KeptLines::~KeptLines() { Keeper() = nullptr; }

void Say(const std::string& line) {
  if (Keeper() != nullptr) return Keeper()->push_back(line);
  (void)WriteAll(STDERR_FILENO, "cuaudit: " + report::ForTerminal(line) + "\n", "stderr");
}

void SayInPassing(const std::string& line) {
  if (Keeper() != nullptr) return Keeper()->push_back(line);
  WriteInPassing(STDERR_FILENO, "cuaudit: " + report::ForTerminal(line) + "\n", 2);
}

void SayLeftOut(const report::Run& run) {
  for (const auto& [reason, count] : report::Words(run.totals.skipped)) Say("warning: " + reason + ": " + std::to_string(count));
}

Exit Print(std::string_view text) {
  std::signal(SIGPIPE, SIG_DFL);
  const Status status = WriteAll(STDOUT_FILENO, text, "stdout");
  std::signal(SIGPIPE, SIG_IGN);
  return status.ok() ? status.exit() : Refuse(status);
}

Result<Session> Session::Open(const Options& options) {
  const std::string host_fault = HostFaultOption(options);
  if (options.no_host && !host_fault.empty()) {
    return Status(Exit::Usage, "expected --no-host or " + host_fault + ", not both: only the host probes can refuse memory and threads");
  }
  Session session(options);
  session.signals_ = std::make_unique<SignalsTaken>();
  Subject& subject = session.subject_;
  std::error_code error;
  if (!options.directory.empty() && !std::filesystem::is_directory(options.directory, error)) {
    return Status(Exit::Usage, OptionFlag{"--directory"}, options.directory + ": no such directory");
  }
  subject.directory = options.directory;
  Result<Program> program = ResolveProgram(options.program.front(), options.directory);
  if (!program.ok()) return program.status();
  subject.program = std::move(*program);
  subject.command = options.program;
  Result<std::vector<std::string>> environment = CurrentEnvironment();
  if (!environment.ok()) return environment.status();
  subject.environment = std::move(*environment);
  const Status set = SetVariables(options.environment, &subject.environment);
  if (!set.ok()) return set;
  const Status writable = CheckOutputs(options);
  if (!writable.ok()) return writable;

  Result<Suppressions> suppressions = Suppressions::Given(options.suppressions);
  if (!suppressions.ok()) return suppressions.status();
  session.suppressions_ = std::move(*suppressions);

  const Result<std::string> world = WorldText(options);
  if (!world.ok()) return world.status();
  const Status only_simulated(Exit::Usage, *world + ": only the simulated driver can be asked for it: expected --driver=sim");
  if (!world->empty() && options.driver == "real") return only_simulated;
  const Result<Machine> machine = LookAround(options.real_driver);
  if (!machine.ok()) return machine.status();
  const Result<ChosenDriver> chosen = ChooseDriver(options.driver, *machine);
  if (!chosen.ok()) return chosen.status();
  if (!world->empty() && chosen->driver == DriverKind::Genuine) return only_simulated;
  if (chosen->driver == DriverKind::Genuine) {
    const Result<std::string> gpus = ReservedGpus();
    if (!gpus.ok()) return gpus.status();
    const auto names_devices = [](const std::string& line) { return line.starts_with("CUDA_VISIBLE_DEVICES="); };
    if (!gpus->empty() && std::none_of(options.environment.begin(), options.environment.end(), names_devices)) {
      const Status visible = SetVariables({"CUDA_VISIBLE_DEVICES=" + *gpus}, &subject.environment);
      if (!visible.ok()) return visible;
    }
  }
  subject.launch.world = *world;
  subject.launch.drop_in_dir = machine->drop_in_dir;
  subject.launch.cudart_dir = machine->cudart_dir;
  subject.launch.cudart = OwnRuntime(*machine, subject.program.cudart);
  subject.launch.driver = chosen->driver;
  session.why_driver_ = chosen->why;
  subject.launch.genuine_driver = machine->genuine_driver;
  // A program in production must not notice that it is recorded.
  subject.launch.pinned_scope = options.scope == "pinned" && options.command != kRecord;
  subject.launch.stack_depth = static_cast<std::uint32_t>(options.stacks);
  // `run` is for whole programs: a stack for each of a million launches would be most of its cost, and its table needs only the stacks of
  // acquisitions and releases. The simulated driver proves misuse between any two calls and needs the stacks of both.
  subject.launch.stacks_of_objects_only = options.command == kRecord || (options.command == kRun && chosen->driver == DriverKind::Genuine);
  subject.launch.host_probes = ProbesOf(options, options.command);
  subject.record_capacity = options.records;
  subject.deadline_ms = DeadlineMs(options, chosen->driver);
  subject.own_orphans_count = options.orphans == "finding";
  subject.expected_exit = static_cast<int>(options.expect_exit);

  if (options.work_dir.empty()) (void)WorkDir::RemoveStale();
  Result<WorkDir> dir = WorkDir::Open(options.work_dir, !options.keep, options.keep);
  if (!dir.ok()) return dir.status();
  session.dir_ = std::move(*dir);
  if (!machine->drop_in) return Status(Exit::Environment, machine->drop_in_dir + "/libcuda.so.1: not found: the installation is not whole");
  if (subject.launch.host_probes != HostProbes::None && !machine->host_drop_in) {
    return Status(Exit::Environment,
                  machine->drop_in_dir + "/libcuaudit_host.so, libcuaudit_host_basic.so: not found: the installation is not whole");
  }
  if (options.driver == "auto") {
    Say(fmt::format("driver: {}: {}", DriverInWords(chosen->driver), chosen->why));
  }
  return session;
}

Session::~Session() {
  if (!dir_.has_value() || dir_->path().empty()) return;
  if (!options_.keep) {
    dir_->Remove();
  } else if (dir_->fresh()) {
    Say("kept: " + dir_->path());
  }
}

std::size_t Session::jobs() const {
  if (options_.jobs != 0) return options_.jobs;
  const std::size_t count = UsableCores();
  return subject_.launch.driver == DriverKind::Genuine ? std::min(count, kJobsOnGenuineDriver) : count;
}

std::size_t Session::forks() const { return options_.jobs != 0 ? options_.jobs : 2 * UsableCores(); }

std::string Session::CommandLine(Command command) const {
  std::vector<std::string> words = {options_.tool, std::string(CommandName(command)),
                                    "--driver=" + std::string(Name(subject_.launch.driver))};
  for (std::string& flag : EchoOptions(options_, command)) words.push_back(std::move(flag));
  // --host is added when the other command would not use it by default.
  const bool heap = subject_.launch.host_probes == HostProbes::Heap;
  if (heap && ProbesOf(options_, command) != HostProbes::Heap) words.emplace_back("--host");
  return ShellJoin(words);
}

Reproduction Session::Reproduce() const { return {CommandLine(kReplay), CommandLine(kRun), ShellJoin(subject_.command)}; }

report::Run Session::NewReport() const {
  report::Run run;
  run.mode = ModeOf(options_.command);
  run.command = subject_.command;
  run.scope = options_.scope;
  run.settings = EchoOptions(options_, options_.command);
  run.host = DescribeProbes(options_, subject_.launch.host_probes);
  run.driver.kind = subject_.launch.driver;
  run.tool_version = std::string(ToolVersion());
  run.generated = Timestamp();
  return run;
}

Exit Refuse(const Status& status) {
  Say(status.message());
  return status.exit();
}

void Accept(Suppressions suppressions, report::Run* run) {
  suppressions.Apply(Today(), run);
  for (const std::string& place : suppressions.Unused()) Say("warning: " + place + ": the suppression fits no defect");
}

// An output that cannot be written does not keep the others from being written.
Exit WriteOutputs(const report::Run& run, const Options& options) {
  Exit exit = ExitOf(run);
  for (const Output& output : options.outputs) {
    const Status status = WriteReport(run, output);
    if (status.ok()) continue;
    Say(status.message());
    exit = status.exit();
  }
  return exit;
}

Exit Deliver(report::Run run, const Session& session) {
  Accept(session.suppressions(), &run);
  return WriteOutputs(run, session.options());
}

Exit Beside(Exit delivered, const Status& written) {
  if (written.ok()) return delivered;
  Say(written.message());
  return written.exit();
}

void SayFailure(const Status& status) {
  Say((status.not_exercised() ? "not exercised: " : "") + status.message());
  if (status.detail().empty()) return;
  Say("the last lines of its output:");
  std::istringstream lines(status.detail());
  for (std::string line; std::getline(lines, line);) (void)WriteAll(STDERR_FILENO, report::ForTerminal(line) + "\n", "stderr");
}

report::Run FailedReport(const Status& status, const Session& session) {
  report::Run run = session.NewReport();
  run.host = {};  // nothing was judged
  run.outcome = status.not_exercised() ? words::Outcome::NotExercised : words::Outcome::Error;
  run.message.told = status.message();
  return run;
}

Exit Fail(const Status& status, const Session& session) {
  SayFailure(status);
  if (status.exit() == Exit::Usage) return status.exit();
  const Exit delivered = Deliver(FailedReport(status, session), session);
  return delivered == Exit::Failure ? delivered : status.exit();
}

Exit EndInterrupted(const Progressed& progressed, report::Run run, const Session& session) {
  SetInterrupted(progressed, &run);
  Say(report::MessageLine(run) +
      (session.options().command == kSweep && !session.dir().fresh() ? "; the same command goes on from here" : ""));
  const Exit delivered = Deliver(std::move(run), session);
  return delivered == Exit::Failure ? delivered : static_cast<Exit>(kSignalled + progressed.signal);
}

}  // namespace cuaudit::harness
