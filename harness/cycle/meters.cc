// SPDX-License-Identifier: MIT
#include "harness/cycle/meters.h"

#include <algorithm>

#include "faults/probes/host_reading.h"

namespace cuaudit::harness {
namespace {

using faults::HostMeter;

constexpr std::uint64_t kPage = 4096;

std::uint64_t QuantumOf(HostMeter meter) { return meter == HostMeter::HeapBytes ? 16 : kPage; }

bool IsNoisy(std::size_t meter) {
  return faults::kHostMeters[meter].nature == faults::MeterNature::Noisy && faults::kHostMeters[meter].unit == faults::MeterUnit::Bytes;
}

// A genuine driver hands out device memory in steps of 2 MiB. The simulated driver counts bytes in use, rounded to 512.
std::uint64_t DeviceQuantum(const Observation& run) {
  const bool genuine = run.journal.header().driver_kind.load() == faults::DriverKind::Genuine;
  return genuine ? std::uint64_t{2} << 20U : 512;
}

bool IsDeviceMemory(driver::Kind kind) {
  return kind == driver::Kind::DeviceMemory || kind == driver::Kind::ManagedMemory || kind == driver::Kind::StreamOrderedMemory ||
         kind == driver::Kind::PhysicalMemory;
}

// Device memory of this process alone that was acquired and not released at each of `ends`. Memory that ended with its context counts as
// released.
std::vector<std::uint64_t> OwnDeviceBytes(const Ledger& ledger, std::uint32_t pid, std::span<const std::uint64_t> ends) {
  std::map<std::uint64_t, std::int64_t> changes;  // by ticket
  for (const Object& object : ledger.objects) {
    if (object.pid != pid || !IsDeviceMemory(object.kind)) continue;
    const auto bytes = static_cast<std::int64_t>(object.bytes);
    changes[object.acquired.begin] += bytes;
    if (object.state == State::Released || object.state == State::Orphaned) changes[object.released.begin] -= bytes;
  }
  std::vector<std::uint64_t> readings;
  std::int64_t now = 0;
  auto next = changes.begin();
  for (const std::uint64_t end : ends) {
    for (; next != changes.end() && next->first < end; ++next) now += next->second;
    readings.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0)));
  }
  return readings;
}

const MeterSeries* Find(std::span<const MeterSeries> all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const MeterSeries& one) { return one.name == name; });
  return at == all.end() ? nullptr : &*at;
}

std::span<const std::uint64_t> Last(const MeterSeries* series, std::size_t count) {
  if (series == nullptr) return {};
  const std::span<const std::uint64_t> all = series->readings;
  return all.size() <= count ? all : all.last(count);
}

Growth JudgeSeries(const MeterSeries& subject, const MeterSeries* control, std::uint64_t step) {
  const std::span<const std::uint64_t> beside = Last(control, subject.readings.size());
  return step == 0 ? JudgeGrowth(subject.readings, subject.quantum, beside)
                   : JudgeGrowthOfRuns(subject.readings, step, subject.quantum, beside);
}

}  // namespace

RunMeters ReadMeters(const Observation& run) {
  std::vector<const faults::Record*> records;
  for (const std::uint32_t reading : run.ledger.facts.readings) records.push_back(&run.journal.records()[reading]);
  for (const std::uint32_t mark : run.ledger.facts.marks) {
    const faults::Record& record = run.journal.records()[mark];
    if (IsMark(record, faults::MarkKind::CycleEnd)) records.push_back(&record);
  }
  std::sort(records.begin(), records.end(), [](const faults::Record* a, const faults::Record* b) { return a->begin < b->begin; });
  const bool simulated = run.journal.header().driver_kind.load() == faults::DriverKind::Simulated;
  RunMeters meters;
  if (records.empty()) return meters;
  const std::uint32_t pid = records.front()->pid;  // children have meters of their own
  std::vector<MeterSeries> host(faults::kHostMeterCount);
  MeterSeries device{kDeviceBytes, DeviceQuantum(run), {}};
  std::vector<std::uint64_t> ends;
  const faults::Record* last = nullptr;
  for (const faults::Record* const record : records) {
    if (record->pid != pid) continue;
    if (record->kind == faults::RecordKind::Host) {
      last = record;
      continue;
    }
    ++meters.cycles;
    ends.push_back(record->begin);
    if (record->argument[1] == 1) device.readings.push_back(record->argument[2]);
    for (std::size_t i = 0; last != nullptr && i < faults::kHostMeterCount; ++i) {
      if ((last->argument[0] >> i & 1U) != 0) host[i].readings.push_back(last->argument[1 + i]);
    }
    last = nullptr;
  }
  for (std::size_t i = 0; i < faults::kHostMeterCount; ++i) {
    if (!IsNoisy(i)) continue;
    MeterSeries series{std::string(faults::kHostMeters[i].name), QuantumOf(static_cast<HostMeter>(i)), std::move(host[i].readings)};
    if (simulated && static_cast<HostMeter>(i) == HostMeter::ResidentBytes) {
      meters.absent[series.name] = {Reason::MeterBooks};
      continue;
    }
    if (last != nullptr && (last->argument[0] >> i & 1U) != 0) {
      meters.at_exit.push_back({series.name, series.quantum, {last->argument[1 + i]}});
    }
    if (meters.cycles != 0 && series.readings.size() == meters.cycles) {
      meters.at_cycles.push_back(std::move(series));
    } else if (meters.cycles != 0) {
      const bool heap = static_cast<HostMeter>(i) == HostMeter::HeapBytes && (run.flags() & faults::kHeapNotSeen) != 0;
      const bool active = (run.flags() & faults::kHostProbesActive) != 0;
      meters.absent[series.name] = {!active ? Reason::MeterNoProbes : heap ? Reason::OwnMalloc : Reason::MeterGaps};
    }
  }
  if (meters.cycles != 0) meters.at_cycles.push_back({kProcessDeviceBytes, 1, OwnDeviceBytes(run.ledger, pid, ends)});
  if (meters.cycles != 0 && device.readings.size() == meters.cycles) {
    meters.at_cycles.push_back(std::move(device));
  } else if (meters.cycles != 0) {
    meters.absent[kDeviceBytes] = {Reason::MeterNoContext};
  }
  return meters;
}

std::vector<MeterSeries> JoinEnds(std::span<const RunMeters> runs) {
  std::vector<MeterSeries> joined;
  if (runs.empty()) return joined;
  for (const MeterSeries& first : runs.front().at_exit) {
    MeterSeries series{first.name, first.quantum, {}};
    for (const RunMeters& run : runs) {
      if (const MeterSeries* const one = Find(run.at_exit, first.name)) series.readings.push_back(one->readings.front());
    }
    if (series.readings.size() == runs.size()) joined.push_back(std::move(series));
  }
  return joined;
}

report::Meter JudgeMeter(const MeterSeries& subject, const MeterSeries* control, std::uint64_t step) {
  const Growth growth = JudgeSeries(subject, control, step);
  report::Meter row;
  row.name = subject.name;
  row.cycles = kBlocks * growth.cycles_per_block;
  row.grows = growth.grows;
  row.per_cycle = growth.per_cycle;
  row.detectable = growth.detectable;
  row.noise = growth.noise;
  row.drift = growth.drift;
  if (control != nullptr) {
    const FalseAlarms alarms = CountFalseAlarms(control->readings, control->quantum);
    row.control_cycles = control->readings.size();
    row.false_alarms = alarms.alarms;
    row.windows = alarms.windows;
  }
  return row;
}

std::uint64_t CyclesForAll(std::span<const MeterSeries> subject, std::span<const MeterSeries> control, std::uint64_t step,
                           std::uint64_t bound) {
  std::uint64_t most = 0;
  for (const MeterSeries& series : subject) {
    const Growth growth = JudgeSeries(series, Find(control, series.name), step);
    if (growth.enough) most = std::max(most, CyclesFor(growth, series.quantum, bound));
  }
  return most;
}

}  // namespace cuaudit::harness
