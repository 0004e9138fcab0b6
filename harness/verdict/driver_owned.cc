// SPDX-License-Identifier: MIT
#include "harness/verdict/driver_owned.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "harness/verdict/interpreters.h"

namespace cuaudit::harness {
namespace {

enum class Owner : std::uint8_t { Unknown, Driver, Interpreter, Program };

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

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

Owner OwnerOf(const faults::JournalView& journal, std::uint32_t stack) {
  for (const std::uint64_t frame : journal.Stack(stack)) {
    const std::uint64_t module = faults::FrameModule(frame);
    if (module == faults::kNoModule) return Owner::Program;  // generated code
    const std::string_view path = journal.ModulePath(module);
    if (IsLanguageRuntime(BaseName(path))) continue;
    if (IsDriver(journal, path)) return Owner::Driver;
    return IsInterpreter(path) ? Owner::Interpreter : Owner::Program;
  }
  return Owner::Unknown;
}

}  // namespace

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
  std::map<std::uint32_t, Owner> owners;
  for (Object& object : ledger->objects) {
    if (!IsHost(object)) continue;
    if (stopped || helpers(object.pid)) object.part_of_other = true;
    const auto [at, fresh] = owners.try_emplace(object.acquired.stack, Owner::Unknown);
    if (fresh) at->second = OwnerOf(journal, object.acquired.stack);
    object.driver_owned = at->second == Owner::Driver;
    // Interpreters never release imported modules, pools and locks, and a failure path may be the first to need one.
    const bool for_itself =
        object.kind == driver::Kind::DlopenReference || object.kind == driver::Kind::HostMapping || object.kind == driver::Kind::Mutex;
    if (for_itself && at->second == Owner::Interpreter) object.library_kept = true;
  }
  std::vector<Violation>& violations = ledger->violations;
  violations.erase(std::remove_if(violations.begin(), violations.end(),
                                  [&](const Violation& violation) {
                                    if (violation.where.record_kind == faults::RecordKind::Host && (stopped || helpers(violation.pid)))
                                      return true;
                                    if (violation.object < 0) return false;
                                    const Object& object = ledger->objects[static_cast<std::size_t>(violation.object)];
                                    return object.driver_owned || (IsHost(object) && object.part_of_other);
                                  }),
                   violations.end());
}

}  // namespace cuaudit::harness
