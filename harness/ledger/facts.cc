// SPDX-License-Identifier: MIT
#include "harness/ledger/facts.h"

#include <algorithm>

namespace cuaudit::harness {
namespace {

constexpr std::uint32_t kMostCycles = 1U << 22;  // a damaged record can name any number; this limit keeps the table within 64 MiB

using faults::HostCall;
using faults::MarkKind;
using faults::ProcessEvent;
using faults::Record;
using faults::RecordKind;

ProcessFacts& ProcessOf(std::vector<ProcessFacts>* processes, std::uint32_t pid) {
  const auto known = std::find_if(processes->rbegin(), processes->rend(), [pid](const ProcessFacts& one) { return one.pid == pid; });
  if (known != processes->rend()) return *known;
  processes->push_back({});
  processes->back().pid = pid;
  return processes->back();
}

}  // namespace

bool Facts::IsSubject(std::uint32_t pid) const noexcept {
  if (processes.empty() || IsFirst(pid)) return true;
  const ProcessFacts* const process = Process(pid);
  return process != nullptr && process->calls != 0;
}

const ProcessFacts* Facts::Process(std::uint32_t pid) const noexcept {
  const auto known = std::find_if(processes.begin(), processes.end(), [pid](const ProcessFacts& one) { return one.pid == pid; });
  return known == processes.end() ? nullptr : &*known;
}

std::set<std::uint32_t> Facts::Vanished() const {
  std::set<std::uint32_t> pids;
  for (std::size_t i = 1; i < processes.size(); ++i) {
    if (processes[i].exit == 0) pids.insert(processes[i].pid);
  }
  return pids;
}

void Facts::Count(const Record& record, std::uint32_t index) {
  if (record.kind == RecordKind::Empty) return;
  ++records;
  if (record.kind == RecordKind::Host) ++of_host;
  if (record.fault == 0 || record.fault > hits.size()) return;
  Hit& hit = hits[record.fault - 1U];
  if (hit.begin == 0 || record.begin < hit.begin) hit = {record.begin, index};
}

void Facts::Take(const Record& record, std::uint32_t index) {
  ProcessFacts& process = ProcessOf(&processes, record.pid);
  switch (record.kind) {
    case RecordKind::Call:
      if (!calls.empty() && process.calls == 0) threaded = true;
      if (process.calls == 0) process.tid = record.tid;
      if (process.tid != record.tid) threaded = true;
      ++process.calls;
      calls.push_back(index);
      break;
    case RecordKind::Mark:
      marks.push_back(index);
      if (record.cycle == 0 || record.cycle > kMostCycles) break;
      if (record.cycle > cycles.size()) cycles.resize(record.cycle);
      if (IsMark(record, MarkKind::CycleBegin)) cycles[record.cycle - 1U].begin = record.begin;
      if (IsMark(record, MarkKind::CycleEnd)) cycles[record.cycle - 1U].end = record.begin;
      break;
    case RecordKind::Host: {
      const auto call = static_cast<HostCall>(record.call);
      if (call == HostCall::Reading) readings.push_back(index);
      if (call == HostCall::DescriptorClose) closes.push_back(index);
      if (call != HostCall::Allocate && call != HostCall::ThreadCreate) break;
      const auto of = static_cast<std::size_t>(call == HostCall::Allocate ? Asked::Memory : Asked::Thread);
      if (record.occurrence == 0) {
        ++foreign[of];
      } else {
        asked[of].push_back(index);
      }
      break;
    }
    case RecordKind::Process:
      if (static_cast<ProcessEvent>(record.call) == ProcessEvent::Exit && process.exit == 0) process.exit = record.begin;
      if (static_cast<ProcessEvent>(record.call) == ProcessEvent::Running)
        process.running.push_back(static_cast<std::uint32_t>(record.argument[0]));
      break;
    case RecordKind::Stop:
      stops.push_back(index);
      break;
    case RecordKind::Empty:
    case RecordKind::Argument:
    case RecordKind::Misuse:
      break;
  }
}

Facts FactsOf(std::span<const Record> records) {
  Facts facts;
  std::vector<std::uint32_t> order;
  order.reserve(records.size());
  facts.calls.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.begin == 0) continue;
    const auto index = static_cast<std::uint32_t>(i);
    facts.Count(record, index);
    if (record.kind == RecordKind::Call ? IsProgramCall(record) : record.kind != RecordKind::Argument && record.kind != RecordKind::Empty)
      order.push_back(index);
  }
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return records[a].begin < records[b].begin; };
  if (!std::is_sorted(order.begin(), order.end(), earlier)) std::stable_sort(order.begin(), order.end(), earlier);
  for (const std::uint32_t index : order) facts.Take(records[index], index);
  return facts;
}

}  // namespace cuaudit::harness
