// SPDX-License-Identifier: MIT
// meters.h: the noisy meters of a run as series, and what they certify beside a lifecycle that does nothing.
//
//   Owns      its series.
//   Threads   values; no shared state.
//   Units     bytes; cycles.
//   Errors    a meter that was not read in every cycle is absent, with the reason.
//   Faults    makes no driver calls.
//   Source    ours; growth.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/cycle/growth.h"
#include "harness/sweep/observation.h"
#include "reports/run.h"

namespace cuaudit::harness {

inline constexpr const char* kDeviceBytes = "device_bytes";
inline constexpr const char* kProcessDeviceBytes = "process_device_bytes";  // stands before it in RunMeters::at_cycles

struct MeterSeries {
  std::string name;
  std::uint64_t quantum = 1;  // the smallest step in which it moves
  std::vector<std::uint64_t> readings;
};

struct RunMeters {
  std::uint64_t cycles = 0;               // that the program's first process marked
  std::vector<MeterSeries> at_cycles;     // one reading for each of them
  std::vector<MeterSeries> at_exit;       // one reading each
  std::map<std::string, Because> absent;  // meter -> why there is no series at the ends of cycles
};

RunMeters ReadMeters(const Observation& run);

// The last reading of each run, meter by meter; a meter that one of them lacks is left out.
std::vector<MeterSeries> JoinEnds(std::span<const RunMeters> runs);

// `control` may be longer than `subject`; its last readings are compared, and all of them are searched for false alarms.
// `step`: 0 for readings at the ends of successive cycles, else the cycles between two of ten processes.
report::Meter JudgeMeter(const MeterSeries& subject, const MeterSeries* control, std::uint64_t step);

// How many cycles, or with `step` how many between two processes, the noisiest meter needs for `bound` bytes per cycle.
std::uint64_t CyclesForAll(std::span<const MeterSeries> subject, std::span<const MeterSeries> control, std::uint64_t step,
                           std::uint64_t bound);

}  // namespace cuaudit::harness
