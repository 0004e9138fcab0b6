// SPDX-License-Identifier: MIT
// meters.h: noisy meters over cycles, and the certificate of one that did not grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cycle/growth.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"
#include "reports/run.h"

namespace cuaudit::harness {

// The noisy meters of a run as series, and what they certify beside a control program that does nothing.
//
//   Units     bytes; cycles.
//   Errors    a meter that was not read in every cycle is absent, with the reason.

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

// Runs a program for enough cycles to say how small a leak would have been detected, beside a control program without leaks.
//
//   Owns      nothing; journals and outputs go into the work directory.
//   Threads   one thread, one process at a time.
//   Units     bytes per cycle; cycles.
//   Errors    Status: a run is unfit. A bound that cannot be reached is no error: the report says which bound was reached.

struct CertificateOptions {
  std::uint64_t warm_up = 2;  // cycles that are not judged
  std::uint64_t detect = 0;   // smallest leak to detect in bytes per cycle; 0: judge the readings there are
  std::string control;        // path of the control program; empty: none
  // Called before each run that judges the meters: of several in a row how many are done, and how many there are.
  std::function<void(std::size_t done, std::size_t planned)> told = {};
};

// "4096", "4096B", "4KiB", "1MiB" or "2GiB" as bytes; none for another text, and for more than 2^60.
std::optional<std::uint64_t> ParseBytes(std::string_view text);

// Reads "4KiB", "4KiB/cycle", "512" or "2MiB" as bytes. An error names the text and what was expected. An empty text is 0.
Result<std::uint64_t> ParseDetect(std::string_view text);

// Makes one fault-free run. `name` is the path of its journal and output without suffix.
Result<Observation> RunOnce(const Subject& subject, const std::string& name, int* interrupted);

// Fills run->meters. Adds a growth finding for each meter that grows, unless some kind of object grows. `seen` holds the meters of the run
// with the most cycles so far.
Status Certify(const Subject& subject, const WorkDir& dir, const CertificateOptions& options, RunMeters seen, const std::string& reproduce,
               report::Run* run, int* interrupted);

}  // namespace cuaudit::harness
