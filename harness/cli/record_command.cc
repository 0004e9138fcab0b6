// SPDX-License-Identifier: MIT
// `record`: a program in production writes down its driver calls, bounded and cheaply, and somebody else explains them later.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"
#include "harness/cli/commands.h"
#include "harness/cli/driver_choice.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/cycle/meters.h"
#include "harness/ledger/facts.h"
#include "harness/options/sweep_options.h"
#include "harness/process/files.h"
#include "harness/process/shell.h"
#include "harness/recording/recording.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kLeastSize = std::uint64_t{32} << 20U;
constexpr std::uint64_t kMostSize = std::uint64_t{1} << 40U;
constexpr std::int64_t kMostSeconds = std::int64_t{400} * 24 * 3600;  // what 32 bits of hundredths have room for

// How the recording is made.
struct Wish {
  std::string path;  // absolute
  faults::JournalOptions journal;
};

Result<Wish> WishOf(const Options& options) {
  const std::optional<std::uint64_t> size = ParseBytes(options.max_size);
  if (!size || *size < kLeastSize || *size > kMostSize)
    return Status(Exit::Usage, OptionFlag{"--max-size"}, "'" + options.max_size + "': expected 32MiB to 1024GiB, such as 256MiB or 4GiB");
  const Result<std::optional<std::chrono::seconds>> last = ParseBudget(options.last);
  if (!last.ok() || (*last && (*last)->count() > kMostSeconds))
    return Status(Exit::Usage, OptionFlag{"--last"}, "'" + options.last + "': expected a time with s, min or h of at most 400 days: 10min");
  std::error_code error;
  Wish wish;
  wish.path = std::filesystem::absolute(options.journal, error).lexically_normal().string();
  if (error || options.journal.empty() || wish.path.ends_with('/'))
    return Status(Exit::Usage, OptionFlag{"--journal"}, "expected the name of a file");
  if (wish.path.find(';') != std::string::npos || wish.path.size() > 1000)
    return Status(Exit::Usage, OptionFlag{"--journal"}, "expected a path of at most 1000 bytes without ';'");
  wish.journal.record_capacity = faults::SlotsWithin(*size);
  wish.journal.stack_depth = static_cast<std::uint32_t>(options.stacks);
  wish.journal.stacks_of_objects_only = true;
  wish.journal.recording = true;
  wish.journal.window = *last ? static_cast<std::uint32_t>((*last)->count() * 100) : 0;
  wish.journal.tool_version = ToolVersion().data();
  return wish;
}

Status Create(const Wish& wish) {
  const char* const wrong = faults::CreateJournal(wish.path.c_str(), wish.journal, true);
  if (wrong == nullptr) return {};
  if (errno == EEXIST)
    return {Exit::Usage, wish.path + ": is there already: expected a new file (--journal), so that no recording is lost"};
  return {Exit::Failure, wish.path + ": " + wrong + ": " + SystemWords(errno)};
}

// The orders of the drop-in: those of a run, but it goes on without a recording that it cannot open.
std::string OrdersOf(const LaunchOptions& launch, const std::string& path) {
  constexpr std::string_view kJournal = "journal";
  return "record" + OptionsText(launch, path, {}).substr(kJournal.size());
}

struct Packed {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;
  std::uint32_t flags = 0;
};

Result<Packed> Pack(const std::string& path, const Options& options) {
  constexpr std::size_t kPackSteps = 2;
  Progress progress(options.progress);
  progress.Step("reading " + ShortName(path), 0, kPackSteps);
  const Result<SparseFile> file = SparseFile::Open(path);
  if (!file.ok()) return file.status();
  faults::JournalView journal;
  if (const char* const wrong = journal.Open(file->data(), file->size())) return Status(Exit::Usage, path + ": " + wrong);
  if (!IsRecording(journal)) return Status(Exit::Usage, path + ": expected a recording, made by cuaudit record");
  if (journal.truncated()) return Status(Exit::Usage, path + ": the recording is cut: it stays as it is");
  const Recording recording = ReadRecording(journal);
  if (const std::optional<pid_t> writer = WriterOf(path, recording)) {
    return Status(Exit::Usage, path + ": expected a recording that nobody writes any more: process " + std::to_string(*writer) +
                                   " still does, and would write into nothing");
  }
  Packed packed;
  packed.records = recording.records.size();
  packed.calls = static_cast<std::uint64_t>(std::count_if(recording.records.begin(), recording.records.end(), IsProgramCall));
  packed.flags = journal.header().flags.load();
  progress.Step("writing " + ShortName(path), 1, kPackSteps);
  const std::string bytes = PackRecording(journal, recording);
  packed.bytes = bytes.size();
  const Status written = WriteFile(path, bytes, Exit::Failure);
  if (!written.ok()) return written;
  return packed;
}

// One line on stderr for each thing that a reader of the recording will miss.
void SayPacked(const std::string& shown, const Packed& packed) {
  if ((packed.flags & faults::kNoSpace) != 0)
    Say("warning: no space left for the recording: it is bounded by the disk, not by --max-size; what was recorded is readable");
  if (packed.records == 0) Say("warning: nothing was recorded: the drop-in library never entered the program");
  else if (packed.calls == 0) Say("warning: the program never called the CUDA driver, or its calls made room for later ones");
  Say("recorded " + std::to_string(packed.records) + " records, " + std::to_string(packed.bytes) + " bytes: cuaudit explain " +
      ShellQuote(shown));
}

Exit RunRecorded(const Session& session, const Wish& wish, const std::string& shown) {
  const Subject& subject = session.subject();
  const Status enters = CheckDropInPath(subject.launch.drop_in_dir);
  if (!enters.ok()) return Refuse(enters);
  const Status made = Create(wish);
  if (!made.ok()) return Refuse(made);
  Launch launch;
  launch.path = subject.program.path;
  launch.arguments = subject.command;
  launch.directory = subject.directory;
  launch.environment =
      MakeEnvironment(subject.launch, subject.program.asan_library, OrdersOf(subject.launch, wish.path), subject.environment);
  launch.foreground = true;
  int interrupted = 0;
  const Result<Ending> ending = RunToEnd(launch, &interrupted);
  if (!ending.ok()) {
    unlink(wish.path.c_str());
    return Refuse(ending.status());
  }
  const Exit as_the_program = static_cast<Exit>(ending->signal != 0 ? kSignalled + ending->signal : ending->exit_status);
  if (ending->left_behind != 0 || ending->survived != 0) {
    Say("the program left processes running, which go on recording: cuaudit explain " + ShellQuote(shown) +
        "; when they have ended, cuaudit record --pack " + ShellQuote(shown));
    return as_the_program;
  }
  const Result<Packed> packed = Pack(wish.path, session.options());
  if (packed.ok()) SayPacked(shown, *packed);
  else Say("warning: " + packed.status().message() + "; the recording is readable as it is: cuaudit explain " + ShellQuote(shown));
  return as_the_program;
}

// A recording that earlier lines made is gone on with.
Status MakeOrKeep(const Wish& wish) {
  struct stat facts = {};
  if (stat(wish.path.c_str(), &facts) != 0) return Create(wish);
  const Result<SparseFile> file = SparseFile::Open(wish.path);
  if (!file.ok()) return file.status();
  faults::JournalView view;
  const char* const wrong = view.Open(file->data(), file->size());
  const bool open = wrong == nullptr && IsRecording(view) && (view.header().flags.load() & faults::kPacked) == 0;
  return open ? Status()
              : Status(Exit::Usage, wish.path + ": is there already, and is no recording that goes on: expected a new file (--journal)");
}

Exit PrintEnvironment(const Options& options, const Wish& wish) {
  const Result<std::string> world = WorldText(options);
  if (!world.ok()) return Refuse(world.status());
  const Status alone = CheckNoAuditHere();
  if (!alone.ok()) return Refuse(alone);
  const Result<Machine> machine = LookAround(options.real_driver);
  if (!machine.ok()) return Refuse(machine.status());
  if (!machine->drop_in)
    return Refuse({Exit::Environment, machine->drop_in_dir + "/libcuda.so.1: not found: the installation is not whole"});
  const Result<ChosenDriver> chosen = ChooseDriver(options.driver, *machine);
  if (!chosen.ok()) return Refuse(chosen.status());
  if (!world->empty() && chosen->driver == DriverKind::Genuine)
    return Refuse({Exit::Usage, *world + ": only the simulated driver can be asked for it: expected --driver=sim"});
  const Status enters = CheckDropInPath(machine->drop_in_dir);
  if (!enters.ok()) return Refuse(enters);
  LaunchOptions launch;
  launch.drop_in_dir = machine->drop_in_dir;
  launch.cudart_dir = machine->cudart_dir;
  launch.driver = chosen->driver;
  launch.genuine_driver = machine->genuine_driver;
  launch.pinned_scope = false;
  launch.world = *world;
  const Status made = MakeOrKeep(wish);
  if (!made.ok()) return Refuse(made);
  if (options.driver == "auto") {
    Say(fmt::format("driver: {}: {}", DriverInWords(chosen->driver), chosen->why));
  }
  // What earlier lines put in front is taken out, so that evaluating the lines twice changes nothing.
  std::vector<std::string> base;
  for (const auto& [name, ours, separators] : {std::tuple{"LD_LIBRARY_PATH", std::vector{launch.drop_in_dir, launch.cudart_dir}, ":;"},
                                               std::tuple{"LD_PRELOAD", std::vector{launch.drop_in_dir + "/libcuda.so.1"}, ": "}}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) base.push_back(std::string(name) + "=" + WithoutEntries(value, ours, separators));
  }
  std::vector<Variable> variables;
  for (const std::string& line : MakeEnvironment(launch, {}, OrdersOf(launch, wish.path), base)) {
    const std::size_t equals = line.find('=');
    variables.push_back({line.substr(0, equals), line.substr(equals + 1)});
  }
  return Print(ShellLines(options.shell == "fish" ? Shell::Fish : Shell::Posix, variables));
}

}  // namespace

Exit RecordCommand(const Options& options) {
  if (!options.pack.empty()) {
    const Result<Packed> packed = Pack(options.pack, options);
    if (!packed.ok()) return Refuse(packed.status());
    SayPacked(options.pack, *packed);
    return Exit::Clean;
  }
  const Result<Wish> wish = WishOf(options);
  if (!wish.ok()) return Refuse(wish.status());
  if (options.print_environment) return PrintEnvironment(options, *wish);
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  return RunRecorded(*session, *wish, options.journal);
}

}  // namespace cuaudit::harness
