// SPDX-License-Identifier: MIT
// loops.h: the loops that are timed, with what measures them and what keeps their threads together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "faults/driver/genuine_driver.h"
#include "suites/bench/peers/peer.h"
#include "suites/bench/peers/trace.h"

namespace cuaudit::bench {

// The cost of one loop: the rate over all threads, the median, and the 99th percentile (p99). Times are in nanoseconds per
// operation.
//
// The loop warms up for a tenth of the time. In the first half of the time it runs batches, each timed as a whole; they give mean and
// median. In the second half it times single operations, less the cost of reading the clock; they give the p99. Run starts the threads,
// pins them to cores where that is allowed, and joins them. A loop returns false when an operation failed; the row then says so and has
// no figures.

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

// The driver, the streams and the peers that the loops run on.
//
// Owns the streams, a flag in pinned memory for which streams can be made to wait, and the loaded libraries, until the process ends.
// Call Enter on each thread that calls a peer, and everything else from one thread. An error is a text; it is empty when there is none.

inline constexpr int kMaxStreams = 16;

// A peer with its settings, ready to be measured, or the reason why not.
struct Entrant {
  std::string label;  // "cuaudit", "cuaudit policy:wait", "pytorch"
  std::string library;
  std::string settings;
  const Peer* peer = nullptr;
  void* token[kMaxStreams] = {};
  std::string failure;
};

class Stage {
 public:
  std::string Open(int device);
  void Load(Entrant* entrant);
  void Enter() const;  // makes the context current on this thread

  [[nodiscard]] driver::DriverRef driver() { return driver::Driver(&driver_); }
  [[nodiscard]] CUstream stream(int number) const { return streams_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] std::string device_text();

  // The streams `first` to `last` stand still until Release; then all of them are run dry.
  bool Hold(int first, int last);
  bool Release(int first, int last);

 private:
  int device_number_ = 0;
  driver::GenuineDriver driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::vector<CUstream> streams_;
  std::uint32_t* flag_ = nullptr;
  CUdeviceptr flag_address_ = 0;
  std::uint32_t turn_ = 0;
  int copies_ = 0;
};

// The loops that every peer runs.
//
// An operation is one allocation and its free, unless the loop says otherwise. Each loop starts its own threads. Errors are in the
// figures.

// Allocate, free, repeat; on one shared stream or one stream a thread.
Figures Pair(Stage* stage, const Entrant& entrant, std::size_t bytes, int threads, bool is_shared, const Budget& budget);
// 64 slots a thread; a random one is freed and filled again, 512 B to 8 MiB, each octave as likely as the next.
Figures Mixed(Stage* stage, const Entrant& entrant, int threads, const Budget& budget);
// Half of the threads allocate, each has another thread that frees. An operation is one block on its way.
Figures FreeElsewhere(Stage* stage, const Entrant& entrant, std::size_t bytes, int threads, const Budget& budget);
// Allocate, `uses` recordings of as many other streams, free. Held: those streams stand still, 64 operations at a time.
Figures Recorded(Stage* stage, const Entrant& entrant, int uses, bool is_held, const Budget& budget);
// One recording on a block that stays: the call alone.
Figures RecordAlone(Stage* stage, const Entrant& entrant, const Budget& budget);
// Time of one recording beyond a cuEventRecord on the same stream. Batches of both run in the order A B B A, and their difference is one
// sample, so that changes of the host's clock rate cancel out. Between batches the stream runs empty, so that no call waits for room in
// its queue. The same is measured for cuEventRecord against cuEventRecord on two events: that is about 0, and the deviation is the noise.
struct Differences {
  double tenth_ns = 0, quarter_ns = 0, median_ns = 0, three_quarters_ns = 0;
};
struct Paired {
  Figures record;              // of its batches
  double event_record_ns = 0;  // the median of the driver's
  Differences beyond, noise;
};
// `others` other streams' uses of the block are not over meanwhile.
Paired RecordPaired(Stage* stage, const Entrant& entrant, int others, const Budget& budget);
// cuEventRecord, one event and stream a thread.
Figures EventRecord(Stage* stage, int threads, const Budget& budget);

struct Replayed {
  Figures figures;  // an operation is one allocation with its free and its uses
  PeerUsage usage;
  bool has_usage = false;
};
// The whole trace, several times, from an empty cache on; what peaks then is what the trace needs. Working: each block is written once,
// whole, on its stream, and the host is at most 64 to 128 allocations ahead of the device; a replay is over when that work is.
Replayed Replay(Stage* stage, const Entrant& entrant, const Trace& trace, bool is_working, const Budget& budget);

struct Bounded {
  std::uint64_t cycles = 0;
  double mean_ns = 0;
  long resident_growth_kib = 0;  // of the process, from a tenth of the cycles on
  PeerCounters counters;         // at the end, before anything is emptied
  std::string failure;
};
// `cycles` times: three blocks of changing sizes, two of them used by other streams, freed in another order, so that they split and
// merge.
Bounded SplitAndMerge(const Entrant& entrant, std::uint64_t cycles, std::uint64_t limit_ns);

}  // namespace cuaudit::bench
