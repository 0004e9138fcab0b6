// SPDX-License-Identifier: MIT
// lifecycle_bench.cc: in-process trials of a lifecycle of twenty driver calls on the simulated driver, first and second order: trials a
// second on one core, and their ratio to 20,000, the goal. With the host drop-in linked, so all probes are on; host:0 has none of them,
// and blocks:20 makes and frees as many heap blocks in each cycle.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstddef>

#include "cuaudit/lifecycle.h"

namespace cuaudit {
namespace {

constexpr double kWanted = 20000;

// Ten objects, made and released: twenty calls. What an init made is released in the opposite order when a later call of it fails.
struct Pipeline {
  static constexpr std::size_t kEach = 3;
  std::size_t blocks = 0;
  CUstream stream = nullptr;
  CUevent event[kEach] = {};
  CUdeviceptr memory[kEach] = {};
  void* pinned[kEach] = {};
  std::size_t made = 0;

  CUresult Make(DriverRef driver, std::size_t i) {
    if (i == 0) return driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    const std::size_t slot = (i - 1) / 3;
    if (i % 3 == 1) return driver.EventCreate(&event[slot], 0);
    if (i % 3 == 2) return driver.MemAlloc(&memory[slot], 4096);
    return driver.MemHostAlloc(&pinned[slot], 4096, 0);
  }
  CUresult Release(DriverRef driver, std::size_t i) {
    if (i == 0) return driver.StreamDestroy(stream);
    const std::size_t slot = (i - 1) / 3;
    if (i % 3 == 1) return driver.EventDestroy(event[slot]);
    if (i % 3 == 2) return driver.MemFree(memory[slot]);
    return driver.MemFreeHost(pinned[slot]);
  }
  CUresult Init(DriverRef driver) {
    for (; made < 1 + 3 * kEach; ++made) {
      const CUresult code = Make(driver, made);
      if (code == CUDA_SUCCESS) continue;
      (void)Teardown(driver);
      return code;
    }
    return CUDA_SUCCESS;
  }
  void Work() const {
    for (std::size_t i = 0; i < blocks; ++i) {
      void* block = malloc(64);
      benchmark::DoNotOptimize(block);
      free(block);
    }
  }
  CUresult Teardown(DriverRef driver) {
    CUresult first = CUDA_SUCCESS;
    while (made > 0) {
      const CUresult code = Release(driver, --made);
      if (first == CUDA_SUCCESS) first = code;
    }
    return first;
  }
};

void SweepTwentyCalls(benchmark::State& state) {
  const auto pipeline = Lifecycle::Of<Pipeline>("pipeline", static_cast<std::size_t>(state.range(2))).WithCurrentContext();
  SweepOptions options = {.depth = static_cast<int>(state.range(0)), .host = state.range(1) != 0};
  double trials = 0;
  for (auto _ : state) {
    const Audit audit = Sweep(pipeline, options);
    if (!audit.clean() || audit.calls != 20 || audit.unmetered.size() != (options.host ? 0 : 1)) abort();
    trials += static_cast<double>(audit.trials);
  }
  state.counters["trials"] = benchmark::Counter(trials, benchmark::Counter::kAvgIterations);
  state.counters["trials_per_s"] = benchmark::Counter(trials, benchmark::Counter::kIsRate);
  state.counters["of_20000"] = benchmark::Counter(trials / kWanted, benchmark::Counter::kIsRate);
}

BENCHMARK(SweepTwentyCalls)->ArgNames({"depth", "host", "blocks"})->ArgsProduct({{1, 2}, {0, 1}, {0, 20}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cuaudit

BENCHMARK_MAIN();
