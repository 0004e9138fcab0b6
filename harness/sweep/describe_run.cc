// SPDX-License-Identifier: MIT
// What one fault-free run says of itself in a report: driver, totals, and what was not looked at.
#include <string.h>

#include <algorithm>
#include <unordered_set>

#include "harness/sweep/aggregate.h"
#include "harness/sweep/site_text.h"

namespace cuaudit::harness {

std::optional<report::Kernels> KernelsOf(const faults::JournalView& journal) {
  const auto count = [&journal](faults::KernelFate fate) { return journal.header().kernels[static_cast<std::size_t>(fate)].load(); };
  const report::Kernels kernels = {count(faults::KernelFate::Hosted), count(faults::KernelFate::Idle),
                                   count(faults::KernelFate::Mismatched)};
  if (kernels.hosted == 0 && kernels.idle == 0) return std::nullopt;
  return kernels;
}

namespace {

// Nobody told us whether such a child chose to leave, so what it holds is not called a leak.
std::size_t ChildrenWithoutExit(const faults::JournalView& journal) {
  std::unordered_set<std::uint32_t> open;
  const faults::Record* first = nullptr;
  for (const faults::Record& record : journal.records()) {
    if (record.begin == 0 || record.kind == faults::RecordKind::Empty || record.kind == faults::RecordKind::Argument) continue;
    if (first == nullptr || record.begin < first->begin) first = &record;
    open.insert(record.pid);
  }
  for (const faults::Record& record : journal.records()) {
    if (record.kind == faults::RecordKind::Process && record.call == static_cast<std::uint16_t>(faults::ProcessEvent::Exit)) {
      open.erase(record.pid);
    }
  }
  if (first != nullptr) open.erase(first->pid);
  return open.size();
}

}  // namespace

void AddLeftBehind(const Ending& ending, const char* became, report::Run* run) {
  const std::string left = "processes left running in a session of their own: ";
  if (ending.left_behind > ending.survived) run->totals.skipped[left + became] = ending.left_behind - ending.survived;
  if (ending.survived != 0) run->totals.skipped[left + "they could not be ended"] = ending.survived;
}

namespace {

// What was asked for stands there already.
void DescribeHost(std::uint32_t flags, const Ledger& ledger, report::Run* run) {
  std::vector<std::string>& probes = run->host.probes;
  if (probes.empty()) return;
  const auto leave_out = [&](const char* why, const std::string& skipped, std::uint64_t count) {
    for (std::string& probe : probes) run->host.left_out[std::move(probe)] = why;
    probes.clear();
    run->totals.skipped["host probes: " + skipped] = count;
  };
  if ((flags & faults::kHostStopped) != 0) {
    return leave_out("too many: more than half of --records", "stopped, since their records came to half of the journal (--records)", 1);
  }
  // Another process may have loaded it: a script that starts the program without our preload.
  if (ledger.host_unseen != 0) {
    return leave_out("the program did not load the library", "the program did not load their library", ledger.host_unseen);
  }
  const std::string heap(driver::Name(driver::Kind::HostHeap));
  const auto found = std::find(probes.begin(), probes.end(), heap);
  if (found == probes.end() || (flags & (faults::kHeapNotSeen | faults::kHostProbesSkipped)) == 0) return;
  probes.erase(found);
  run->host.left_out[heap] = (flags & faults::kHeapNotSeen) != 0 ? "malloc is the program's own" : "a sanitizer is in the process";
}

}  // namespace

void DescribeHostOfTrial(const Observation& trial, report::Run* run) { DescribeHost(trial.flags(), trial.ledger, run); }

void DescribeRun(const Observation& run_seen, report::Run* run) {
  const faults::JournalHeader& header = run_seen.journal.header();
  const auto text = [](const char* field, std::size_t size) { return std::string(field, strnlen(field, size)); };
  switch (static_cast<faults::DriverKind>(header.driver_kind.load())) {
    case faults::DriverKind::None:
      break;
    case faults::DriverKind::Genuine:
      run->driver.kind = "real";
      run->driver.path = text(header.driver_path, sizeof(header.driver_path));
      break;
    case faults::DriverKind::Simulated:
      run->driver.kind = "sim";
      break;
  }
  const int version = header.driver_version.load();
  if (version > 0) run->driver.version = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  const int runtime = header.runtime_version.load();
  if (runtime > 0) run->driver.runtime = "cuaudit's own, " + std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
  run->driver.device = text(header.device_name, sizeof(header.device_name));
  run->driver.world = text(header.world, sizeof(header.world));
  run->driver.kernels = KernelsOf(run_seen.journal);

  run->totals.calls = run_seen.ledger.calls;
  std::unordered_set<std::uint64_t> sites;
  for (const faults::Record& record : run_seen.journal.records()) {
    if (record.kind != faults::RecordKind::Call || (record.flags & faults::kNested) != 0) continue;
    sites.insert(SiteKey(run_seen.journal, RecordSite(record)));
  }
  run->totals.sites = sites.size();
  run->totals.forced = header.forced_progress.load();
  if (run_seen.ledger.unmodelled_calls != 0) run->totals.skipped["unmodelled calls"] = run_seen.ledger.unmodelled_calls;
  const std::uint32_t flags = run_seen.flags();
  DescribeHost(flags, run_seen.ledger, run);
  const std::uint32_t unaudited = header.unknown_pointers.load();
  if (unaudited != 0) run->totals.skipped["entry points newer than the headers, passed through unaudited"] = unaudited;
  const auto inside = std::count_if(run_seen.ledger.objects.begin(), run_seen.ledger.objects.end(),
                                    [](const Object& object) { return object.driver_owned && object.state != State::Released; });
  if (const std::size_t unchecked = ChildrenWithoutExit(run_seen.journal); unchecked != 0) {
    run->totals.skipped["child processes that wrote no end (exec or a signal): not checked for leaks"] = unchecked;
  }
  // The simulated one's are ours, and known.
  const bool genuine = header.driver_kind.load() == static_cast<std::uint32_t>(faults::DriverKind::Genuine);
  if (inside > 0 && genuine) run->totals.skipped["host resources that the driver keeps for itself"] = static_cast<std::uint64_t>(inside);
  if ((flags & faults::kMutexesDropped) != 0) run->totals.skipped["mutexes beyond the host probes' table"] = 1;
  if ((flags & faults::kDescriptorsDisputed) != 0) {
    run->totals.skipped["host probes: descriptors that a call under way may have been opening or closing at the end"] = 1;
  }
  if ((flags & faults::kHostProbesSkipped) != 0) run->totals.skipped["host probes: a sanitizer is in the process"] = 1;
  if ((flags & faults::kHeapNotSeen) != 0) run->totals.skipped["host_heap not metered: malloc is the program's own"] = 1;
  if ((flags & faults::kStacksDropped) != 0) run->totals.skipped["call stacks beyond the journal's table"] = 1;
  if ((flags & faults::kModulesDropped) != 0) run->totals.skipped["modules beyond the journal's table"] = 1;
}

void AddOutputs(const std::set<std::size_t>& arguments, report::Run* run) {
  for (const std::size_t number : arguments) {
    const std::string word = number < run->command.size() ? run->command[number] : std::string();
    run->totals.skipped["content of argument " + std::to_string(number) + ", '" + word +
                        "': the program writes it, so the sweep goes on whatever is in it"] = 1;
  }
}

}  // namespace cuaudit::harness
