// SPDX-License-Identifier: MIT
// What the host meters cost: each one alone, and all cheap ones together, which is what a cycle pays (budget 50 us).
#include <benchmark/benchmark.h>

#include "harness/probes/host_meters.h"

namespace cuaudit::harness {
namespace {

void OneMeter(benchmark::State& state) {
  const auto meter = static_cast<HostMeter>(state.range(0));
  state.SetLabel(std::string(Name(meter)));
  for (auto step : state) benchmark::DoNotOptimize(ReadHost({meter}));
}
BENCHMARK(OneMeter)->DenseRange(0, static_cast<int>(kHostMeterCount) - 1);

void AroundACycle(benchmark::State& state) {
  CycleMeters meters;
  for (auto step : state) {
    meters.Begin();
    benchmark::DoNotOptimize(meters.End());
  }
}
BENCHMARK(AroundACycle);

}  // namespace
}  // namespace cuaudit::harness

BENCHMARK_MAIN();
