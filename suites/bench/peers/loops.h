// SPDX-License-Identifier: MIT
// loops.h: the loops that every peer runs.
//
// An operation is one allocation and its free, unless the loop says otherwise. Each loop starts its own threads. Errors are in the
// figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "suites/bench/peers/measure.h"
#include "suites/bench/peers/stage.h"
#include "suites/bench/peers/trace.h"

namespace cuaudit::bench {

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
