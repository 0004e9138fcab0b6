// SPDX-License-Identifier: MIT
// Describes one fault-free run for the report: driver, totals, and what was not looked at.
#include <string.h>

#include <algorithm>
#include <unordered_set>

#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {

std::optional<report::Kernels> KernelsOf(const faults::JournalView& journal) {
  const auto count = [&journal](faults::KernelFate fate) { return journal.header().kernels[static_cast<std::size_t>(fate)].load(); };
  const report::Kernels kernels = {count(faults::KernelFate::Hosted), count(faults::KernelFate::Idle),
                                   count(faults::KernelFate::Mismatched)};
  if (kernels.hosted == 0 && kernels.idle == 0) return std::nullopt;
  return kernels;
}

void AddLeftBehind(const Ending& ending, Detail became, report::Run* run) {
  Counted& skipped = run->totals.skipped;
  if (ending.left_behind > ending.survived) skipped[{Reason::RunLeft, Words({became})}] = ending.left_behind - ending.survived;
  if (ending.survived != 0) skipped[{Reason::RunLeft, Words({Detail::TheyCouldNotBeEnded})}] = ending.survived;
}

namespace {

// The list of probes was filled before with those that were asked for.
void DescribeHost(std::uint32_t flags, const Ledger& ledger, report::Run* run) {
  std::vector<std::string>& probes = run->host.probes;
  if (probes.empty()) return;
  const auto leave_out = [&](Reason why, Reason skipped, std::uint64_t count) {
    for (std::string& probe : probes) run->host.left_out[std::move(probe)] = {why};
    probes.clear();
    run->totals.skipped[{skipped}] = count;
  };
  if ((flags & faults::kHostStopped) != 0) return leave_out(Reason::TooManyRecords, Reason::ProbesStopped, 1);
  // The library may be missing in a process that a script started without cuaudit's LD_PRELOAD.
  if (ledger.host_unseen != 0) return leave_out(Reason::LibraryNotLoaded, Reason::ProbesNotLoaded, ledger.host_unseen);
  const std::string heap(driver::Name(driver::Kind::HostHeap));
  const auto found = std::find(probes.begin(), probes.end(), heap);
  if (found == probes.end() || (flags & (faults::kHeapNotSeen | faults::kHostProbesSkipped)) == 0) return;
  probes.erase(found);
  run->host.left_out[heap] = {(flags & faults::kHeapNotSeen) != 0 ? Reason::OwnMalloc : Reason::SanitizerThere};
}

std::string NameOfPython(std::uint32_t version) {
  if (version == 1) return Words({Detail::NamelessPython});
  const auto part = [version](unsigned shift) { return std::to_string(version >> shift & 0xff); };
  return Words({Detail::CPython, {part(24), part(16), part(8)}});
}

}  // namespace

void DescribeHostOfTrial(const Observation& trial, report::Run* run) { DescribeHost(trial.flags(), trial.ledger, run); }

void DescribeRun(const Observation& run_seen, report::Run* run) {
  const faults::JournalHeader& header = run_seen.journal.header();
  const auto text = [](const char* field, std::size_t size) { return std::string(field, strnlen(field, size)); };
  const bool genuine = header.driver_kind.load() == faults::DriverKind::Genuine;
  if (genuine) run->driver.path = text(header.driver_path, sizeof(header.driver_path));
  if (genuine || header.driver_kind.load() == faults::DriverKind::Simulated) run->driver.kind = header.driver_kind.load();
  const int version = header.driver_version.load();
  if (version > 0) run->driver.version = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  const int runtime = header.runtime_version.load();
  if (runtime > 0) run->driver.runtime = "cuaudit's own, " + std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
  run->driver.device = text(header.device_name, sizeof(header.device_name));
  run->driver.world = text(header.world, sizeof(header.world));
  run->driver.kernels = KernelsOf(run_seen.journal);

  run->totals.calls = run_seen.ledger.facts.calls.size();
  std::unordered_set<std::uint64_t> sites;
  const Evidence seen = run_seen.evidence();
  for (const std::uint32_t call : seen.facts().calls) sites.insert(SiteKey(run_seen.journal, SiteOf(seen.record(call))));
  run->totals.sites = sites.size();
  run->totals.forced = header.forced_progress.load();
  const auto left_out = [run](Reason why, std::uint64_t count) {
    if (count != 0) run->totals.skipped[{why}] = count;
  };
  left_out(Reason::Unmodelled, run_seen.ledger.unmodelled_calls);
  const std::uint32_t flags = run_seen.flags();
  DescribeHost(flags, run_seen.ledger, run);
  left_out(Reason::UnknownEntry, header.unknown_pointers.load());
  const auto inside = std::count_if(run_seen.ledger.objects.begin(), run_seen.ledger.objects.end(),
                                    [](const Object& object) { return object.driver_owned && object.state != State::Released; });
  // It is unknown whether such a child ended by itself, so what it holds is not called a leak.
  left_out(Reason::ChildNoEnd, seen.facts().Vanished().size());
  // Only for a genuine driver: the simulated driver's own resources are known.
  if (genuine) left_out(Reason::DriverKeeps, static_cast<std::uint64_t>(inside));
  const std::uint32_t unread = header.unread_python.load();
  if (unread != 0) run->totals.skipped[{Reason::PythonUnread, NameOfPython(unread)}] = 1;
  constexpr std::pair<std::uint32_t, Reason> kFlags[] = {
      {faults::kMutexesDropped, Reason::MutexesBeyond},      {faults::kDescriptorsDisputed, Reason::ProbesDescriptors},
      {faults::kHostProbesSkipped, Reason::ProbesSanitizer}, {faults::kHeapNotSeen, Reason::HeapOwn},
      {faults::kStacksDropped, Reason::StacksBeyond},        {faults::kModulesDropped, Reason::ModulesBeyond}};
  for (const auto& [flag, why] : kFlags) left_out(why, (flags & flag) != 0 ? 1 : 0);
}

void AddOutputs(const std::set<std::size_t>& arguments, report::Run* run) {
  for (const std::size_t number : arguments) {
    const std::string word = number < run->command.size() ? run->command[number] : std::string();
    run->totals.skipped[{Reason::OutputArgument, std::to_string(number) + ", '" + word + "'"}] = 1;
  }
}

}  // namespace cuaudit::harness
