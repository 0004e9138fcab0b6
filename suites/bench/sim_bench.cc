// SPDX-License-Identifier: MIT
// sim_bench.cc: what the simulated driver costs: one simple call, one object's life, and a whole world with thirty objects; with
// `misuse:1` while it also looks for misuse. The counter `per_direct` is the cost in direct calls of an empty function, measured in the
// same run.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <chrono>

#include "faults/sim/world.h"

namespace cuaudit::sim {
namespace {

double direct_ns = 0;

// `calls` driver calls an iteration.
template <typename Step>
double Measure(benchmark::State& state, double calls, const Step& step) {
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) step();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double ns = seconds * 1e9 / static_cast<double>(state.iterations());
  if (direct_ns != 0) state.counters["per_direct"] = ns / calls / direct_ns;
  state.counters["calls_per_s"] = calls * 1e9 / ns;
  return ns;
}

CUresult Nothing(void*, CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}

void Direct(benchmark::State& state) {
  CUresult (*volatile entry)(void*, CUdevice*) = &Nothing;
  direct_ns = Measure(state, 1, [&] {
    CUdevice device = 0;
    benchmark::DoNotOptimize(entry(nullptr, &device));
    benchmark::DoNotOptimize(device);
  });
}

void Report(void*, const driver::Misuse&) { abort(); }  // nothing here is wrong

// One for each measuring thread.
struct Ready {
  explicit Ready(bool misuse = false) : world(CreateWorld({.on_misuse = misuse ? &Report : nullptr})), d(Driver(world)) {
    if (d.Init(0) != CUDA_SUCCESS || d.DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || d.CtxSetCurrent(context) != CUDA_SUCCESS)
      abort();
  }
  ~Ready() { DestroyWorld(world); }
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
  World* world;
  driver::DriverRef d;
  CUcontext context = nullptr;
};

void ContextFlags(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  Measure(state, 1, [&] {
    unsigned flags = 0;
    benchmark::DoNotOptimize(ready.d.CtxGetFlags(&flags));
  });
}

void CurrentContext(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  Measure(state, 1, [&] {
    CUcontext current = nullptr;
    benchmark::DoNotOptimize(ready.d.CtxGetCurrent(&current));
  });
}

void QueryEvent(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  CUevent e = nullptr;
  if (ready.d.EventCreate(&e, 0) != CUDA_SUCCESS || ready.d.EventRecord(e, nullptr) != CUDA_SUCCESS ||
      ready.d.EventSynchronize(e) != CUDA_SUCCESS)
    abort();
  Measure(state, 1, [&] { benchmark::DoNotOptimize(ready.d.EventQuery(e)); });
}

void PointerAttribute(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  CUdeviceptr p = 0;
  if (ready.d.MemAlloc(&p, 4096) != CUDA_SUCCESS) abort();
  Measure(state, 1, [&] {
    unsigned type = 0;
    benchmark::DoNotOptimize(ready.d.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
  });
}

void QueryIdleStream(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  CUstream s = nullptr;
  if (ready.d.StreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) abort();
  Measure(state, 1, [&] { benchmark::DoNotOptimize(ready.d.StreamQuery(s)); });
}

void EventLife(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  Measure(state, 2, [&] {
    CUevent e = nullptr;
    benchmark::DoNotOptimize(ready.d.EventCreate(&e, 0));
    benchmark::DoNotOptimize(ready.d.EventDestroy(e));
  });
}

void MemoryLife(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  Measure(state, 2, [&] {
    CUdeviceptr p = 0;
    benchmark::DoNotOptimize(ready.d.MemAlloc(&p, 4096));
    benchmark::DoNotOptimize(ready.d.MemFree(p));
  });
}

void RecordAndWait(benchmark::State& state) {
  const Ready ready(state.range(0) != 0);
  CUevent e = nullptr;
  if (ready.d.EventCreate(&e, 0) != CUDA_SUCCESS) abort();
  Measure(state, 2, [&] {
    benchmark::DoNotOptimize(ready.d.EventRecord(e, nullptr));
    benchmark::DoNotOptimize(ready.d.EventSynchronize(e));
  });
}

void EmptyWorld(benchmark::State& state) {
  Measure(state, 2, [] { DestroyWorld(CreateWorld({})); });
}

// Five each of streams, events, device memory, pinned memory, arrays and graphs, destroyed one by one, then the world: 64 calls.
void WorldOfThirtyObjects(benchmark::State& state) {
  constexpr int kEach = 5;
  const bool misuse = state.range(0) != 0;
  Measure(state, 12.0 * kEach + 4, [misuse] {
    const Ready ready(misuse);
    CUstream streams[kEach];
    CUevent events[kEach];
    CUdeviceptr memory[kEach];
    void* pinned[kEach];
    CUarray arrays[kEach];
    CUgraph graphs[kEach];
    constexpr CUDA_ARRAY_DESCRIPTOR kShape{64, 16, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    for (int i = 0; i < kEach; ++i) {
      benchmark::DoNotOptimize(ready.d.StreamCreate(&streams[i], 0));
      benchmark::DoNotOptimize(ready.d.EventCreate(&events[i], 0));
      benchmark::DoNotOptimize(ready.d.MemAlloc(&memory[i], 4096));
      benchmark::DoNotOptimize(ready.d.MemHostAlloc(&pinned[i], 4096, 0));
      benchmark::DoNotOptimize(ready.d.ArrayCreate(&arrays[i], &kShape));
      benchmark::DoNotOptimize(ready.d.GraphCreate(&graphs[i], 0));
    }
    CUresult last = CUDA_SUCCESS;
    for (int i = 0; i < kEach; ++i) {
      benchmark::DoNotOptimize(ready.d.GraphDestroy(graphs[i]));
      benchmark::DoNotOptimize(ready.d.ArrayDestroy(arrays[i]));
      benchmark::DoNotOptimize(ready.d.MemFreeHost(pinned[i]));
      benchmark::DoNotOptimize(ready.d.MemFree(memory[i]));
      benchmark::DoNotOptimize(ready.d.EventDestroy(events[i]));
      benchmark::DoNotOptimize(last = ready.d.StreamDestroy(streams[i]));
    }
    if (last != CUDA_SUCCESS) abort();
  });
}

void BothWays(benchmark::internal::Benchmark* benchmark) { benchmark->ArgName("misuse")->Arg(0)->Arg(1); }

BENCHMARK(Direct);
BENCHMARK(CurrentContext)->Apply(BothWays)->Threads(1)->Threads(2);
BENCHMARK(ContextFlags)->Apply(BothWays);
BENCHMARK(QueryEvent)->Apply(BothWays);
BENCHMARK(QueryIdleStream)->Apply(BothWays);
BENCHMARK(PointerAttribute)->Apply(BothWays);
BENCHMARK(EventLife)->Apply(BothWays);
BENCHMARK(MemoryLife)->Apply(BothWays);
BENCHMARK(RecordAndWait)->Apply(BothWays);
BENCHMARK(EmptyWorld);
BENCHMARK(WorldOfThirtyObjects)->Apply(BothWays)->Threads(1)->Threads(2);

}  // namespace
}  // namespace cuaudit::sim

BENCHMARK_MAIN();
