// SPDX-License-Identifier: MIT
// meters.h: the noisy meters of a run as series, and what they certify beside a control program that does nothing.
//
//   Units     bytes; cycles.
//   Errors    a meter that was not read in every cycle is absent, with the reason.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/cycle/growth.h"
#include "harness/sweep/run/observation.h"
#include "reports/run.h"

namespace cuaudit::harness {

inline constexpr const char* kDeviceBytes = "device_bytes";
inline constexpr const char* kProcessDeviceBytes = "process_device_bytes";  // comes before device_bytes in RunMeters::at_cycles

struct MeterSeries {
  std::string name;
  std::uint64_t quantum = 1;  // smallest step in which the meter moves
  std::vector<std::uint64_t> readings;
};

struct RunMeters {
  std::uint64_t cycles = 0;               // cycles marked by the program's first process
  std::vector<MeterSeries> at_cycles;     // one reading per cycle
  std::vector<MeterSeries> at_exit;       // one reading each
  std::map<std::string, Because> absent;  // by meter: why it has no series
};

RunMeters ReadMeters(const Observation& run);

// The last reading of each run, meter by meter. A meter that some run lacks is left out.
std::vector<MeterSeries> JoinEnds(std::span<const RunMeters> runs);

// `control` may be longer than `subject`: its last readings are compared, and all of them are searched for false alarms. `step` is 0 for
// readings at the ends of successive cycles, else the number of cycles between two of ten processes.
report::Meter JudgeMeter(const MeterSeries& subject, const MeterSeries* control, std::uint64_t step);

// The number of cycles (with `step`, between two processes) that the noisiest meter needs for `bound` bytes per cycle.
std::uint64_t CyclesForAll(std::span<const MeterSeries> subject, std::span<const MeterSeries> control, std::uint64_t step,
                           std::uint64_t bound);

}  // namespace cuaudit::harness
