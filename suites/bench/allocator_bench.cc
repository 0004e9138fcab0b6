// SPDX-License-Identifier: MIT
// What the allocator costs, on the simulated driver: which is not on the path of what is cached, so those rows are the allocator's own.
// Rows that make driver calls (record_use) cost the simulated driver's time too: compare them with `driver/*` of the same run.
// Rows called null_driver/* stand before a table in which the calls of a recording answer at once and do nothing: they are the allocator's
// own share of a RecordUse, and no events are ever over, or all at once, as the row says. null_driver/calls is what those empty calls cost.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/allocator.h"
#include "faults/sim/world.h"

namespace cuaudit::alloc {
namespace {

class Stage {
 public:
  explicit Stage(const Options& options = {}, int streams = 16, std::uint64_t bytes = std::uint64_t{32} << 30) {
    sim::WorldOptions world_options = {.device_bytes = bytes, .schedule = sim::Schedule::Fifo};
    world = sim::CreateWorld(world_options);
    d = sim::Driver(world);
    CUcontext context = nullptr;
    if (d.Init(0) != CUDA_SUCCESS || d.DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || d.CtxSetCurrent(context) != CUDA_SUCCESS)
      std::abort();
    const DeviceConfig config;
    if (Allocator::Create(d, &config, 1, options, &allocator) != CUDA_SUCCESS) std::abort();
    for (int i = 0; i < streams; ++i) {
      CUstream stream = nullptr;
      StreamRef ref;
      if (d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || allocator->Identify(0, stream, &ref) != CUDA_SUCCESS)
        std::abort();
      handles.push_back(stream);
      refs.push_back(ref);
    }
  }
  ~Stage() {
    allocator.reset();
    sim::DestroyWorld(world);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  sim::World* world;
  driver::DriverRef d;
  std::unique_ptr<Allocator> allocator;
  std::vector<CUstream> handles;
  std::vector<StreamRef> refs;
};

Stage& Shared() {
  static Stage* const stage = new Stage;  // the worlds of a benchmark live as long as the program
  return *stage;
}

void Pair(benchmark::State& state) {
  Stage& stage = Shared();
  Allocator& allocator = *stage.allocator;
  const StreamRef stream = stage.refs[static_cast<std::size_t>(state.thread_index())];
  const std::size_t bytes = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    CUdeviceptr address = 0;
    if (allocator.Allocate(bytes, stream, &address) != CUDA_SUCCESS || allocator.Free(address) != CUDA_SUCCESS)
      state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Pair)->Name("pair/own_stream")->Arg(512)->Arg(64 << 10)->Arg(1 << 20)->Arg(8 << 20)->Arg(64 << 20)->UseRealTime();
BENCHMARK(Pair)->Name("pair/own_stream")->Arg(64 << 10)->ThreadRange(2, 16)->UseRealTime();

void PairByHandle(benchmark::State& state) {
  Stage& stage = Shared();
  Allocator& allocator = *stage.allocator;
  const CUstream stream = stage.handles[0];
  for (auto _ : state) {
    CUdeviceptr address = 0;
    if (allocator.Allocate(0, 64 << 10, stream, &address) != CUDA_SUCCESS || allocator.Free(address) != CUDA_SUCCESS)
      state.SkipWithError("failed");
  }
}
BENCHMARK(PairByHandle)->Name("pair/by_handle");

void PairShared(benchmark::State& state) {
  Stage& stage = Shared();
  Allocator& allocator = *stage.allocator;
  for (auto _ : state) {
    CUdeviceptr address = 0;
    if (allocator.Allocate(64 << 10, stage.refs[0], &address) != CUDA_SUCCESS || allocator.Free(address) != CUDA_SUCCESS)
      state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(PairShared)->Name("pair/one_shared_stream")->ThreadRange(1, 16)->UseRealTime();

// 64 slots; a random one is freed and filled again; sizes log-uniform from 512 B to 8 MiB.
void Mixed(benchmark::State& state) {
  Stage& stage = Shared();
  Allocator& allocator = *stage.allocator;
  const StreamRef stream = stage.refs[static_cast<std::size_t>(state.thread_index())];
  std::array<CUdeviceptr, 64> slot{};
  std::uint64_t random = 88172645463325252U + static_cast<std::uint64_t>(state.thread_index());
  for (auto _ : state) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    CUdeviceptr& one = slot[random % slot.size()];
    const std::size_t power = 9 + (random >> 8) % 14;
    const std::size_t bytes = (std::size_t{1} << power) + ((random >> 16) & ((std::size_t{1} << power) - 1));
    if (one != 0 && allocator.Free(one) != CUDA_SUCCESS) state.SkipWithError("failed");
    if (allocator.Allocate(bytes, stream, &one) != CUDA_SUCCESS) state.SkipWithError("failed");
  }
  for (const CUdeviceptr one : slot) (void)allocator.Free(one);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Mixed)->Name("mixed/64_live")->ThreadRange(1, 16)->UseRealTime();

// Thread 0 allocates, its partner frees.
void FreeElsewhere(benchmark::State& state) {
  Stage& stage = Shared();
  Allocator& allocator = *stage.allocator;
  constexpr std::size_t kRing = 256;
  static std::array<std::atomic<CUdeviceptr>, kRing> ring{};
  std::atomic<bool> stop{false};
  std::thread consumer([&] {
    for (std::size_t at = 0;; ++at) {
      CUdeviceptr address = 0;
      while ((address = ring[at % kRing].exchange(0, std::memory_order_acquire)) == 0) {
        if (stop.load(std::memory_order_acquire)) return;
        std::this_thread::yield();
      }
      (void)allocator.Free(address);
    }
  });
  std::size_t at = 0;
  for (auto _ : state) {
    CUdeviceptr address = 0;
    if (allocator.Allocate(64 << 10, stage.refs[0], &address) != CUDA_SUCCESS) state.SkipWithError("failed");
    while (ring[at % kRing].load(std::memory_order_relaxed) != 0) std::this_thread::yield();
    ring[at++ % kRing].store(address, std::memory_order_release);
  }
  while (ring[(at + kRing - 1) % kRing].load(std::memory_order_acquire) != 0) std::this_thread::yield();
  stop.store(true, std::memory_order_release);
  consumer.join();
}
BENCHMARK(FreeElsewhere)->Name("pair/freed_on_another_thread")->UseRealTime();

void WithUses(benchmark::State& state) {
  Stage stage({.reuse = state.range(1) == 0 ? Reuse::Poll : Reuse::Wait});
  Allocator& allocator = *stage.allocator;
  for (auto _ : state) {
    CUdeviceptr address = 0;
    if (allocator.Allocate(64 << 10, stage.refs[0], &address) != CUDA_SUCCESS) state.SkipWithError("failed");
    for (std::int64_t i = 1; i <= state.range(0); ++i) {
      if (allocator.RecordUse(address, stage.refs[static_cast<std::size_t>(i)]) != CUDA_SUCCESS) state.SkipWithError("failed");
    }
    if (allocator.Free(address) != CUDA_SUCCESS) state.SkipWithError("failed");
  }
  Statistics statistics;
  allocator.GetStatistics(0, &statistics);
  state.counters["events"] = static_cast<double>(statistics.events_created);
}
BENCHMARK(WithUses)->Name("pair/uses/policy")->ArgsProduct({{0, 1, 4}, {0, 1}});

void RecordUse(benchmark::State& state) {
  Stage stage;
  CUdeviceptr address = 0;
  if (stage.allocator->Allocate(64 << 10, stage.refs[0], &address) != CUDA_SUCCESS) std::abort();
  for (auto _ : state) {
    if (stage.allocator->RecordUse(address, stage.refs[1]) != CUDA_SUCCESS) state.SkipWithError("failed");
  }
}
BENCHMARK(RecordUse)->Name("record_use");

void EventRecord(benchmark::State& state) {
  Stage stage;
  CUevent event = nullptr;
  if (stage.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) std::abort();
  for (auto _ : state) {
    if (stage.d.EventRecord(event, stage.handles[1]) != CUDA_SUCCESS) state.SkipWithError("failed");
  }
}
BENCHMARK(EventRecord)->Name("driver/event_record");

// The simulated driver, but for the calls that RecordUse and its looking back make.
class NullDriver {
 public:
  NullDriver(driver::DriverRef next, bool is_over) : table_(*next.table), self_(next.self) {
    Put(driver::CallId::StreamIsCapturing, &IsCapturing);
    Put(driver::CallId::EventRecord, &Record);
    if (is_over) {
      Put(driver::CallId::EventQuery, &Over);
    } else {
      Put(driver::CallId::EventQuery, &NotOver);
    }
  }
  driver::DriverRef ref() const { return {&table_, self_}; }

 private:
  template <typename Function>
  void Put(driver::CallId id, Function* function) {
    table_.entry[driver::Index(id)] = reinterpret_cast<driver::Entry>(function);
  }
  static CUresult IsCapturing(void*, CUstream, CUstreamCaptureStatus* out) {
    *out = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  static CUresult Record(void*, CUevent, CUstream) { return CUDA_SUCCESS; }
  static CUresult Over(void*, CUevent) { return CUDA_SUCCESS; }
  static CUresult NotOver(void*, CUevent) { return CUDA_ERROR_NOT_READY; }

  driver::DriverTable table_;
  void* self_;
};

// An allocator of its own on the worlds's streams, in front of a null driver.
struct NullStage {
  explicit NullStage(Options options, bool is_over) : null(stage.d, is_over) {
    const DeviceConfig config;
    if (Allocator::Create(null.ref(), &config, 1, options, &allocator) != CUDA_SUCCESS) std::abort();
    for (const CUstream stream : stage.handles) {
      StreamRef ref;
      if (allocator->Identify(0, stream, &ref) != CUDA_SUCCESS) std::abort();
      refs.push_back(ref);
    }
  }
  Stage stage;
  NullDriver null;
  std::unique_ptr<Allocator> allocator;
  std::vector<StreamRef> refs;
};

void NullCalls(benchmark::State& state) {
  NullStage stage({}, false);
  const driver::DriverRef driver = stage.null.ref();
  const CUstream stream = stage.stage.handles[1];
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  for (auto _ : state) {
    benchmark::DoNotOptimize(driver.StreamIsCapturing(stream, &status));
    benchmark::DoNotOptimize(driver.EventRecord(nullptr, stream));
  }
}
BENCHMARK(NullCalls)->Name("null_driver/calls");

// Nobody looks whether the uses are over, as while one block is used and used: blocks in turn, recording streams in turn.
void NullRecordUse(benchmark::State& state) {
  NullStage stage({.max_stamps_per_stream = static_cast<std::uint32_t>(state.range(2))}, false);
  std::vector<CUdeviceptr> blocks(static_cast<std::size_t>(state.range(0)));
  for (CUdeviceptr& block : blocks) {
    if (stage.allocator->Allocate(64 << 10, stage.refs[0], &block) != CUDA_SUCCESS) std::abort();
  }
  const std::size_t streams = static_cast<std::size_t>(state.range(1));
  std::size_t block = 0;
  std::size_t stream = 0;
  for (auto _ : state) {
    if (stage.allocator->RecordUse(blocks[block], stage.refs[1 + stream]) != CUDA_SUCCESS) state.SkipWithError("failed");
    if (++block == blocks.size()) {
      block = 0;
      if (++stream == streams) stream = 0;
    }
  }
}
BENCHMARK(NullRecordUse)->Name("null_driver/record_use/blocks/streams/max_stamps")->ArgsProduct({{1, 64}, {1, 4}, {64}});
BENCHMARK(NullRecordUse)->Name("null_driver/record_use/blocks/streams/max_stamps")->Args({1, 1, 8})->Args({1, 1, 1024});

// A block's life with uses: is looked at when it is wanted again.
void NullWithUses(benchmark::State& state) {
  NullStage stage({.reuse = state.range(1) == 0 ? Reuse::Poll : Reuse::Wait}, state.range(2) != 0);
  for (auto _ : state) {
    CUdeviceptr address = 0;
    if (stage.allocator->Allocate(64 << 10, stage.refs[0], &address) != CUDA_SUCCESS) state.SkipWithError("failed");
    for (std::int64_t i = 1; i <= state.range(0); ++i) {
      if (stage.allocator->RecordUse(address, stage.refs[static_cast<std::size_t>(i)]) != CUDA_SUCCESS) state.SkipWithError("failed");
    }
    if (stage.allocator->Free(address) != CUDA_SUCCESS) state.SkipWithError("failed");
  }
}
BENCHMARK(NullWithUses)->Name("null_driver/pair/uses/wait/over")->ArgsProduct({{1, 4}, {0, 1}, {1}});

// Splits and merges with uses all day: what is kept of them must not grow.
void Bounded(benchmark::State& state) {
  Stage stage({.reuse = Reuse::Wait});
  Allocator& allocator = *stage.allocator;
  std::array<CUdeviceptr, 8> part{};
  std::size_t turn = 0;
  for (auto _ : state) {
    CUdeviceptr& one = part[turn % part.size()];
    if (one != 0) {
      if (turn % 4 == 0 && allocator.RecordUse(one, stage.refs[1 + turn / 4 % 7]) != CUDA_SUCCESS) state.SkipWithError("failed");
      if (allocator.Free(one) != CUDA_SUCCESS) state.SkipWithError("failed");
    }
    if (allocator.Allocate(1024 * (1 + turn * 7 % 61), stage.refs[0], &one) != CUDA_SUCCESS) state.SkipWithError("failed");
    ++turn;
  }
  Statistics statistics;
  allocator.GetStatistics(0, &statistics);
  state.counters["events"] = static_cast<double>(statistics.events_created);
  state.counters["reserved"] = static_cast<double>(statistics.reserved_bytes[0].current);
  for (const CUdeviceptr one : part) (void)allocator.Free(one);
}
BENCHMARK(Bounded)->Name("bounded/split_and_merge_with_uses")->Iterations(10'000'000);

}  // namespace
}  // namespace cuaudit::alloc

BENCHMARK_MAIN();
