// SPDX-License-Identifier: MIT
#include "suites/bench/peers/loops.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

namespace cuaudit::bench {
namespace {

std::uint64_t Next(std::uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state >> 11;
}

constexpr std::size_t kSlots = 64;

struct Slots {
  std::array<void*, kSlots> block = {};
  std::uint64_t random = 0;
};

// One producer, one consumer.
struct Ring {
  static constexpr std::size_t kRoom = 64;
  std::array<std::atomic<void*>, kRoom> cell = {};
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_thrown{false};  // the consumer's free
  std::size_t at = 0;                   // the producer's
  std::thread consumer;
};

void Consume(const Stage& stage, const Entrant& entrant, void* token, int core, Ring* ring) {
  PinTo(core);
  stage.Enter();
  for (std::size_t at = 0;; at = (at + 1) % Ring::kRoom) {
    void* block = ring->cell[at].exchange(nullptr, std::memory_order_acq_rel);
    while (block == nullptr) {
      if (ring->is_over.load(std::memory_order_acquire)) {
        block = ring->cell[at].exchange(nullptr, std::memory_order_acq_rel);
        if (block == nullptr) return;
        break;
      }
      std::this_thread::yield();
      block = ring->cell[at].exchange(nullptr, std::memory_order_acq_rel);
    }
    try {
      entrant.peer->free(block, token);
    } catch (...) {
      ring->has_thrown.store(true, std::memory_order_relaxed);  // and goes on, so that nobody waits for ever
    }
  }
}

long ResidentKib() {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    (void)std::fclose(file);
  }
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

Figures Pair(Stage* stage, const Entrant& entrant, std::size_t bytes, int threads, bool is_shared, const Budget& budget) {
  const Peer& peer = *entrant.peer;
  Workload workload;
  workload.threads = threads;
  workload.make = [&](int number) -> Operation {
    stage->Enter();
    void* const token = entrant.token[is_shared ? 0 : number];
    return [&peer, bytes, token] {
      void* const block = peer.allocate(bytes, token);
      if (block == nullptr) return false;
      peer.free(block, token);
      return true;
    };
  };
  return Measure(workload, budget);
}

Figures Mixed(Stage* stage, const Entrant& entrant, int threads, const Budget& budget) {
  const Peer& peer = *entrant.peer;
  std::vector<Slots> all(static_cast<std::size_t>(threads));
  Workload workload;
  workload.threads = threads;
  workload.make = [&](int number) -> Operation {
    stage->Enter();
    Slots* const slots = &all[static_cast<std::size_t>(number)];
    slots->random = 88172645463325252ULL + static_cast<std::uint64_t>(number);
    void* const token = entrant.token[number];
    return [&peer, slots, token] {
      void** const slot = &slots->block[Next(&slots->random) % kSlots];
      if (*slot != nullptr) peer.free(*slot, token);
      const std::size_t base = std::size_t{512} << (Next(&slots->random) % 14);
      *slot = peer.allocate(base + Next(&slots->random) % base, token);
      return *slot != nullptr;
    };
  };
  workload.finish = [&](int number) {
    for (void* const block : all[static_cast<std::size_t>(number)].block) {
      if (block != nullptr) peer.free(block, entrant.token[number]);
    }
  };
  return Measure(workload, budget);
}

Figures FreeElsewhere(Stage* stage, const Entrant& entrant, std::size_t bytes, int threads, const Budget& budget) {
  const Peer& peer = *entrant.peer;
  std::vector<Ring> rings(static_cast<std::size_t>(threads / 2));
  Workload workload;
  workload.threads = threads / 2;
  workload.make = [&](int number) -> Operation {
    stage->Enter();
    Ring* const ring = &rings[static_cast<std::size_t>(number)];
    void* const token = entrant.token[number];
    ring->consumer =
        std::thread([stage, &entrant, token, core = threads / 2 + number, ring] { Consume(*stage, entrant, token, core, ring); });
    return [&peer, bytes, token, ring] {
      void* const block = peer.allocate(bytes, token);
      if (block == nullptr) return false;
      std::atomic<void*>& cell = ring->cell[ring->at];
      ring->at = (ring->at + 1) % Ring::kRoom;
      while (cell.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
      cell.store(block, std::memory_order_release);
      return !ring->has_thrown.load(std::memory_order_relaxed);
    };
  };
  workload.finish = [&](int number) {
    Ring& ring = rings[static_cast<std::size_t>(number)];
    ring.is_over.store(true, std::memory_order_release);
    if (ring.consumer.joinable()) ring.consumer.join();
  };
  Figures figures = Measure(workload, budget);
  for (const Ring& ring : rings) {
    if (ring.has_thrown) figures.failure = "free threw on another thread";
  }
  return figures;
}

Figures Recorded(Stage* stage, const Entrant& entrant, int uses, bool is_held, const Budget& budget) {
  const Peer& peer = *entrant.peer;
  constexpr std::size_t kBytes = std::size_t{64} << 10;
  const auto operation = [&] {
    void* const block = peer.allocate(kBytes, entrant.token[0]);
    if (block == nullptr) return false;
    for (int user = 1; user <= uses; ++user) peer.record(block, entrant.token[user]);
    peer.free(block, entrant.token[0]);
    return true;
  };
  if (!is_held) {
    Workload workload;
    workload.make = [&](int) -> Operation {
      stage->Enter();
      return operation;
    };
    return Measure(workload, budget);
  }
  Rounds rounds;
  rounds.count = 64;
  rounds.before = [&] { return stage->Hold(1, uses); };
  rounds.operation = operation;
  rounds.after = [&] { return stage->Release(1, uses); };
  return MeasureRounds(rounds, budget);
}

Figures RecordAlone(Stage* stage, const Entrant& entrant, const Budget& budget) {
  const Peer& peer = *entrant.peer;
  void* const block = peer.allocate(std::size_t{64} << 10, entrant.token[0]);
  Workload workload;
  workload.make = [&](int) -> Operation {
    stage->Enter();
    if (block == nullptr) return nullptr;
    return [&] {
      peer.record(block, entrant.token[1]);
      return true;
    };
  };
  const Figures figures = Measure(workload, budget);
  if (block != nullptr) peer.free(block, entrant.token[0]);
  return figures;
}

Paired RecordPaired(Stage* stage, const Entrant& entrant, int others, const Budget& budget) {
  constexpr int kStream = 1;
  constexpr std::uint64_t kBatch = 200;
  const Peer& peer = *entrant.peer;
  const driver::DriverRef driver = stage->driver();
  stage->Enter();
  bool is_well = true;
  std::array<CUevent, 2> events = {};
  for (CUevent& event : events) is_well = is_well && driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  void* const block = peer.allocate(std::size_t{64} << 10, entrant.token[0]);
  is_well = is_well && block != nullptr && stage->Hold(kStream + 1, kStream + others);
  const bool is_held = is_well;
  for (int other = 1; is_well && other <= others; ++other) peer.record(block, entrant.token[kStream + other]);

  const auto batch = [&](auto one) {  // ns of each
    is_well = driver.StreamSynchronize(stage->stream(kStream)) == CUDA_SUCCESS && is_well;
    const std::uint64_t begin = Now();
    for (std::uint64_t i = 0; i < kBatch; ++i) one();
    return static_cast<double>(Now() - begin) / static_cast<double>(kBatch);
  };
  const auto event_record = [&](CUevent event) { is_well = driver.EventRecord(event, stage->stream(kStream)) == CUDA_SUCCESS && is_well; };
  const auto plain = [&] { return batch([&] { event_record(events[0]); }); };
  const auto again = [&] { return batch([&] { event_record(events[1]); }); };
  const auto ours = [&] { return batch([&] { peer.record(block, entrant.token[kStream]); }); };
  std::vector<double> beyond, noise, recorded, plainly;
  const auto pair = [&](auto other, std::vector<double>* differences, std::vector<double>* times) {
    const double before = plain(), first = other(), second = other(), after = plain();
    differences->push_back((first + second - before - after) / 2);
    times->push_back((first + second) / 2);
  };
  const std::uint64_t until = Now() + budget.nanoseconds;
  for (std::uint64_t round = 0; is_well && (round < 8 || Now() < until); ++round) {
    pair(ours, &beyond, &recorded);
    pair(again, &noise, &plainly);
    if (round != 3) continue;  // until here all was warm-up
    for (std::vector<double>* const samples : {&beyond, &noise, &recorded, &plainly}) samples->clear();
  }

  if (is_held) is_well = stage->Release(kStream + 1, kStream + others) && is_well;
  for (CUevent const event : events) {
    if (event != nullptr) is_well = driver.EventDestroy(event) == CUDA_SUCCESS && is_well;
  }
  if (block != nullptr) peer.free(block, entrant.token[0]);
  Paired paired;
  if (!is_well) {
    paired.record.failure = "an operation failed";
    return paired;
  }
  for (std::vector<double>* const samples : {&beyond, &noise, &recorded, &plainly}) std::sort(samples->begin(), samples->end());
  const auto at = [](const std::vector<double>& sorted, std::size_t percent) { return sorted[(sorted.size() - 1) * percent / 100]; };
  const auto differences = [&](const std::vector<double>& sorted) {
    return Differences{at(sorted, 10), at(sorted, 25), at(sorted, 50), at(sorted, 75)};
  };
  paired.beyond = differences(beyond);
  paired.noise = differences(noise);
  paired.event_record_ns = at(plainly, 50);
  Figures& figures = paired.record;
  figures.operations = recorded.size() * 2 * kBatch;
  figures.median_ns = at(recorded, 50);
  figures.p99_ns = at(recorded, 99);  // of batches
  for (const double time : recorded) figures.mean_ns += time / static_cast<double>(recorded.size());
  figures.millions_per_second = 1000.0 / figures.mean_ns;
  return paired;
}

Figures EventRecord(Stage* stage, int threads, const Budget& budget) {
  const driver::DriverRef driver = stage->driver();
  std::vector<CUevent> events(static_cast<std::size_t>(threads));
  Workload workload;
  workload.threads = threads;
  workload.make = [&](int number) -> Operation {
    stage->Enter();
    CUevent* const event = &events[static_cast<std::size_t>(number)];
    if (driver.EventCreate(event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
    const CUstream stream = stage->stream(number);
    return [driver, event, stream] { return driver.EventRecord(*event, stream) == CUDA_SUCCESS; };
  };
  workload.finish = [&](int number) { (void)driver.EventDestroy(events[static_cast<std::size_t>(number)]); };
  return Measure(workload, budget);
}

namespace {

// The device's work for a trace, and how far the host may be ahead of it.
class Work {
 public:
  explicit Work(Stage* stage) : stage_(stage), driver_(stage->driver()) {
    for (CUevent& event : events_) is_well_ = is_well_ && driver_.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    for (CUevent const event : events_) {
      if (event != nullptr) (void)driver_.EventDestroy(event);
    }
  }
  void Write(void* block, std::size_t bytes, int number) {
    CUstream const stream = stage_->stream(number);
    is_well_ = is_well_ && driver_.MemsetD8Async(reinterpret_cast<CUdeviceptr>(block), 1, bytes, stream) == CUDA_SUCCESS;
    if (++written_ % kAhead != 0 || !is_well_) return;
    CUevent const now = events_[written_ / kAhead % 2];
    CUevent const before = events_[(written_ / kAhead + 1) % 2];
    is_well_ = driver_.EventRecord(now, stream) == CUDA_SUCCESS && driver_.EventSynchronize(before) == CUDA_SUCCESS;
  }
  void Finish(int streams) {
    for (int i = 0; i < streams; ++i) is_well_ = is_well_ && driver_.StreamSynchronize(stage_->stream(i)) == CUDA_SUCCESS;
  }
  bool is_well() const { return is_well_; }

 private:
  static constexpr std::size_t kAhead = 64;
  Stage* const stage_;
  const cuaudit::driver::DriverRef driver_;
  std::array<CUevent, 2> events_ = {};
  std::size_t written_ = 0;
  bool is_well_ = true;
};

}  // namespace

Replayed Replay(Stage* stage, const Entrant& entrant, const Trace& trace, bool is_working, const Budget& budget) {
  const Peer& peer = *entrant.peer;
  Replayed replayed;
  struct Held {
    void* block = nullptr;
    void* token = nullptr;
  };
  std::vector<Held> live(trace.blocks);
  peer.empty();
  if (peer.reset_peaks != nullptr) peer.reset_peaks();
  bool has_failed = false;
  Work work(stage);
  const auto once = [&] {
    for (const TraceOp& op : trace.ops) {
      Held& held = live[op.block];
      switch (op.kind) {
        case TraceKind::Allocate:
          held.token = entrant.token[op.stream];
          held.block = peer.allocate(op.bytes, held.token);
          has_failed = has_failed || held.block == nullptr;
          if (is_working && held.block != nullptr) work.Write(held.block, op.bytes, op.stream);
          break;
        case TraceKind::Free:
          if (held.block != nullptr) peer.free(held.block, held.token);
          break;
        case TraceKind::Use:
          if (peer.record != nullptr && held.block != nullptr) peer.record(held.block, entrant.token[op.stream]);
          break;
      }
    }
    if (is_working) work.Finish(trace.streams);
  };
  once();  // the cache is cold
  std::vector<double> times;
  const std::uint64_t start = Now();
  do {
    const std::uint64_t begin = Now();
    once();
    times.push_back(static_cast<double>(Now() - begin) / static_cast<double>(trace.allocations));
  } while (Now() - start < budget.nanoseconds && !has_failed);
  Figures& figures = replayed.figures;
  figures.operations = times.size() * trace.allocations;
  std::sort(times.begin(), times.end());
  figures.median_ns = times[times.size() / 2];
  figures.p99_ns = times[times.size() * 99 / 100];  // of whole replays
  for (const double time : times) figures.mean_ns += time / static_cast<double>(times.size());
  figures.millions_per_second = 1000.0 / figures.mean_ns;
  if (has_failed) figures.failure = "an allocation failed";
  if (!work.is_well()) figures.failure = "the device's work failed";
  replayed.has_usage = peer.usage != nullptr && peer.usage(&replayed.usage);
  peer.empty();
  return replayed;
}

Bounded SplitAndMerge(const Entrant& entrant, std::uint64_t cycles, std::uint64_t limit_ns) {
  const Peer& peer = *entrant.peer;
  Bounded bounded;
  std::uint64_t random = 42;
  long resident = 0;
  const std::uint64_t start = Now();
  std::uint64_t done = 0;
  for (; done < cycles; ++done) {
    if (done % 4096 == 0 && Now() - start > limit_ns) break;
    if (done == cycles / 10) resident = ResidentKib();
    std::array<void*, 3> block = {};
    for (void*& each : block) {
      each = peer.allocate((std::size_t{1} << 20) + 1 + Next(&random) % (std::size_t{5} << 20), entrant.token[0]);
      if (each == nullptr) {
        bounded.failure = "an allocation failed";
        return bounded;
      }
    }
    peer.record(block[0], entrant.token[1 + done % 3]);
    peer.record(block[1], entrant.token[1 + (done + 1) % 3]);
    const std::size_t first = Next(&random) % 3;
    for (std::size_t i = 0; i < 3; ++i) peer.free(block[(first + i) % 3], entrant.token[0]);
  }
  bounded.cycles = done;
  bounded.mean_ns = static_cast<double>(Now() - start) / static_cast<double>(done == 0 ? 1 : done);
  bounded.resident_growth_kib = resident == 0 ? 0 : ResidentKib() - resident;
  if (done < cycles) bounded.failure = "stopped by its time limit";
  if (peer.counters != nullptr) (void)peer.counters(&bounded.counters);
  return bounded;
}

}  // namespace cuaudit::bench
