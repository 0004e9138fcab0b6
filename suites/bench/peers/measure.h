// SPDX-License-Identifier: MIT
// measure.h: the cost of one loop: the rate over all threads, the median, and the 99th percentile (p99). Times are in nanoseconds per
// operation.
//
// The loop warms up for a tenth of the time. In the first half of the time it runs batches, each timed as a whole; they give mean and
// median. In the second half it times single operations, less the cost of reading the clock; they give the p99. Run starts the threads,
// pins them to cores where that is allowed, and joins them. A loop returns false when an operation failed; the row then says so and has
// no figures.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cuaudit::bench {

struct Figures {
  std::uint64_t operations = 0;
  double mean_ns = 0;    // over threads, each thread's own time over its own operations
  double median_ns = 0;  // of batches, over all threads
  double p99_ns = 0;     // of single operations, over all threads
  double millions_per_second = 0;
  std::string failure;  // empty: it went well
};

struct Budget {
  std::uint64_t nanoseconds = 150'000'000;
  std::uint64_t batch = 32;
};

// One operation of one thread, made by a factory on that thread before the clock starts. False: it failed.
using Operation = std::function<bool()>;

// `make` is called on each thread with its number; null from it is a failure. `finish`, if any, is called on each thread afterwards.
struct Workload {
  int threads = 1;
  std::function<Operation(int)> make;
  std::function<void(int)> finish;
};
Figures Measure(const Workload& workload, const Budget& budget);

// The same for an operation that comes in rounds of `count` with something untimed before and after: `before`, count x operation,
// `after`.
struct Rounds {
  std::uint64_t count = 1;
  std::function<bool()> before;
  std::function<bool()> operation;
  std::function<bool()> after;
};
Figures MeasureRounds(const Rounds& rounds, const Budget& budget);

std::uint64_t Now();

// Binds the calling thread to one of the process's cores, where that is allowed; numbers beyond the last begin again.
void PinTo(int number);

}  // namespace cuaudit::bench
