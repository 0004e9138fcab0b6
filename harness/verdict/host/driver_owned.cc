// SPDX-License-Identifier: MIT
#include "harness/verdict/host/driver_owned.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <unordered_map>

namespace cuaudit::harness {
namespace {

// Interpreters by file name, up to the first character that is no letter or underscore.
constexpr std::string_view kInterpreters[] = {
    "python",  "libpython", "pypy",   "libpypy",      "node",        "libnode",    "java", "libjvm",   "ruby",   "libruby", "perl",
    "libperl", "lua",       "liblua", "luajit",       "libluajit",   "julia",      "php",  "libjulia", "libphp", "mono",    "dotnet",
    "guile",   "tclsh",     "libtcl", "liboctinterp", "libmonosgen", "libcoreclr", "libR", "libguile", "Rscript"};

enum class Owner : std::uint8_t { NotLookedAt, Unknown, Driver, Interpreter, PythonFunction, Program };

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }  // the whole path when it has no slash

// Libraries that allocate on behalf of their caller.
bool IsLanguageRuntime(std::string_view file) {
  constexpr std::string_view kRuntimes[] = {"libc.so",     "libc-",      "ld-linux",   "ld-2",  "libstdc++.so",
                                            "libgcc_s.so", "libc++.so",  "libpthread", "libdl", "libcuaudit_host",
                                            "libasan.so",  "liblsan.so", "libtsan.so"};
  return std::any_of(std::begin(kRuntimes), std::end(kRuntimes), [&](std::string_view name) { return file.starts_with(name); });
}

bool IsDriver(const faults::JournalView& journal, std::string_view path) {
  const std::string_view file = BaseName(path);
  return file.starts_with("libcuda.so") || file.starts_with("libnvidia-") || path == journal.header().driver_path;
}

// Who owns what a call stack acquired. Many stacks pass through few modules, so each module is looked at once.
class Owners {
 public:
  explicit Owners(const faults::JournalView& journal) : journal_(&journal), of_module_(journal.modules().size()) {}
  Owner Of(std::uint32_t stack) {
    const auto [at, fresh] = of_stack_.try_emplace(stack, Owner::Unknown);
    if (!fresh) return at->second;
    for (const std::uint64_t frame : journal_->Stack(stack)) {
      const std::uint64_t module = faults::FrameModule(frame);
      at->second = module < of_module_.size() ? OfModule(module) : OfNoModule(module);
      if (at->second != Owner::Unknown) break;
    }
    return at->second;
  }

 private:
  // A Python function stands in a call stack where the frames of its interpreter were, or called a C function by ctypes. Generated code is
  // the program's.
  static Owner OfNoModule(std::uint64_t module) { return module == faults::kPython ? Owner::PythonFunction : Owner::Program; }
  // Unknown: a library that allocates on behalf of its caller.
  Owner OfModule(std::uint64_t module) {
    Owner& known = of_module_[module];
    if (known != Owner::NotLookedAt) return known;
    const std::string_view path = journal_->ModulePath(module);
    if (IsLanguageRuntime(BaseName(path))) return known = Owner::Unknown;
    if (IsDriver(*journal_, path)) return known = Owner::Driver;
    return known = IsInterpreter(path) ? Owner::Interpreter : Owner::Program;
  }

  const faults::JournalView* journal_;
  std::vector<Owner> of_module_;  // bytes: a journal has thousands of rows, and each trial makes these
  std::unordered_map<std::uint32_t, Owner> of_stack_;
};

}  // namespace

bool IsInterpreter(std::string_view path) noexcept {
  const std::string_view name = BaseName(path);
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const std::string_view word = name.substr(0, static_cast<std::size_t>(std::find_if_not(name.begin(), name.end(), letter) - name.begin()));
  return std::find(std::begin(kInterpreters), std::end(kInterpreters), word) != std::end(kInterpreters);
}

bool OnlyShowsHost(const faults::JournalView& journal) { return (journal.header().flags.load() & faults::kHeapLeftOut) != 0; }

bool CalledByDriver(const faults::JournalView& journal, std::uint32_t stack) {
  const std::span<const std::uint64_t> frames = journal.Stack(stack);
  return std::any_of(frames.begin(), frames.end(), [&](std::uint64_t frame) {
    const std::uint64_t module = faults::FrameModule(frame);
    return module != faults::kNoModule && IsDriver(journal, journal.ModulePath(module));
  });
}

void MarkDriverOwned(const faults::JournalView& journal, Ledger* ledger) {
  const auto helpers = [&](std::uint32_t pid) { return !ledger->facts.IsSubject(pid); };
  // When the probes stopped early, a later release may be missing from the journal, so nothing they saw can be judged.
  const bool stopped = (journal.header().flags.load() & faults::kHostStopped) != 0;
  Owners owners(journal);
  for (Object& object : ledger->objects) {
    // Only the host probes see the close of a descriptor that the driver made for the program.
    if (stopped && object.kind == driver::Kind::FileDescriptor) object.part_of_other = true;
    if (!IsHost(object)) continue;
    if (stopped || helpers(object.pid)) object.part_of_other = true;
    const Owner owner = owners.Of(object.acquired.stack);
    object.driver_owned = owner == Owner::Driver;
    // Interpreters never release imported modules, pools and locks, and a failure path may be the first to need one.
    const bool for_itself =
        object.kind == driver::Kind::DlopenReference || object.kind == driver::Kind::HostMapping || object.kind == driver::Kind::Mutex;
    if (for_itself && owner == Owner::PythonFunction) object.library_kept = true;
    // Which blocks of its objects an interpreter frees at exit depends on addresses: two runs of one program differ.
    if ((for_itself || object.kind == driver::Kind::HostHeap) && owner == Owner::Interpreter) object.library_kept = true;
  }
  std::erase_if(ledger->violations, [&](const Violation& violation) {
    if (violation.where.record_kind == faults::RecordKind::Host && (stopped || helpers(violation.pid))) return true;
    if (violation.object < 0) return false;
    if (violation.rule == Rule::ClosedAfterImport) return owners.Of(violation.where.stack) == Owner::Driver;  // it closes what it took
    const Object& object = ledger->objects[static_cast<std::size_t>(violation.object)];
    return object.driver_owned || (IsHost(object) && object.part_of_other);
  });
}

std::vector<TrialFinding> TakeShown(const faults::JournalView& journal, std::vector<TrialFinding>* findings) {
  if (!OnlyShowsHost(journal)) return {};
  std::vector<TrialFinding> shown = TakeIf(findings, [](const TrialFinding& finding) {
    if (finding.rule == Rule::ClosedAfterImport) return false;  // the driver's descriptor, whoever opened it
    return finding.where.record_kind == faults::RecordKind::Host || finding.acquired.record_kind == faults::RecordKind::Host;
  });
  for (TrialFinding& finding : shown) {
    if (finding.rule == Rule::Leak) {
      finding.rule = Rule::HostLeft;
      if (finding.kind == driver::Kind::Mutex) finding.detail = {{Detail::MutexMemory}};
    } else if (Row(finding.rule).level == Level::Finding) {
      finding.detail = {WouldBe(finding.rule)};
      finding.rule = Rule::HostMisused;
    }
  }
  return shown;
}

}  // namespace cuaudit::harness
