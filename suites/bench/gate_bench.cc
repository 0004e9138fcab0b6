// SPDX-License-Identifier: MIT
// gate_bench.cc: nanoseconds per driver call, directly and through the gate in each of its states; the counter `over_direct_ns`, the
// difference to the direct call of the same run, is the gate's cost.
#define __CUDA_API_VERSION_INTERNAL
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "faults/journal/journal_file.h"
#include "faults/shim/gate.h"

namespace cuaudit::faults {
namespace {

using driver::CallId;

// The cheapest driver there is: every call is one function that returns, so what is measured is the way to it.
CUresult GetDevice(void*, CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult GetCurrent(void*, CUcontext* context) {
  *context = nullptr;
  return CUDA_SUCCESS;
}

const driver::DriverTable& NullDriver() {
  static const std::unique_ptr<driver::DriverTable> table = [] {
    auto made = std::make_unique<driver::DriverTable>();
    made->entry[driver::Index(CallId::CtxGetDevice)] = reinterpret_cast<driver::Entry>(&GetDevice);
    made->entry[driver::Index(CallId::CtxGetCurrent)] = reinterpret_cast<driver::Entry>(&GetCurrent);
    for (bool& modelled : made->modelled) modelled = true;
    return made;
  }();
  return *table;
}

struct Journalled {
  Journal journal;
  StackTable stacks;
  Gate gate;
  char path[64] = "/dev/shm/cuaudit-bench-XXXXXX";

  explicit Journalled(std::uint32_t depth) {
    const int file = mkstemp(path);
    close(file);
    if (CreateJournal(path, {std::size_t{1} << 24, depth}) != nullptr || journal.Open(path) != nullptr) abort();
    stacks.Attach(&journal, false);
    gate.Arm({&NullDriver(), nullptr}, &journal, depth == 0 ? nullptr : &stacks, Plan(), Scope::Pinned);
  }
  ~Journalled() { unlink(path); }
};

constexpr std::uint64_t kWarmRecords = 2000;

double direct_ns = 0;

template <typename Call>
void Measure(benchmark::State& state, const Call& call, bool is_direct = false) {
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    CUdevice device = -1;
    benchmark::DoNotOptimize(call(&device));
    benchmark::DoNotOptimize(device);
  }
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(state.iterations());
  if (is_direct) direct_ns = ns;
  state.counters["over_direct_ns"] = ns - direct_ns;
}

void Direct(benchmark::State& state) {
  CUresult (*volatile entry)(void*, CUdevice*) = &GetDevice;
  Measure(
      state, [&](CUdevice* device) { return entry(nullptr, device); }, true);
}

void GateNothingArmed(benchmark::State& state) {
  static Gate gate;
  gate.Arm({&NullDriver(), nullptr}, nullptr, nullptr, Plan(), Scope::Pinned);
  Measure(state, [&](CUdevice* device) { return gate.Run<CallId::CtxGetDevice, CUdevice*>(device); });
}

void GateArmedWithoutJournal(benchmark::State& state) {
  static Gate gate;
  Plan plan;
  if (!plan.Add({driver::BaseId::MemAlloc, 1, Phase::Any, CUDA_ERROR_OUT_OF_MEMORY, How::Refuse, 1})) abort();
  gate.Arm({&NullDriver(), nullptr}, nullptr, nullptr, plan, Scope::Pinned);
  Measure(state, [&](CUdevice* device) { return gate.Run<CallId::CtxGetDevice, CUdevice*>(device); });
}

// Fresh: every record lies on a page that the kernel has to supply first. Warm: the same pages again, what the gate itself costs.
template <std::uint32_t depth, bool warm>
void GateWithJournal(benchmark::State& state) {
  const auto journalled = std::make_unique<Journalled>(depth);
  std::atomic<std::uint64_t>& next = journalled->journal.header().next_record;
  Measure(state, [&](CUdevice* device) {
    if (warm && next.load(std::memory_order_relaxed) >= kWarmRecords) next.store(0, std::memory_order_relaxed);
    return journalled->gate.Run<CallId::CtxGetDevice, CUdevice*>(device);
  });
  if (journalled->journal.header().dropped.load() != 0) state.SkipWithError("the journal was too small");
}

BENCHMARK(Direct);
BENCHMARK(GateNothingArmed);
BENCHMARK(GateArmedWithoutJournal);
BENCHMARK(GateWithJournal<0, true>);
BENCHMARK(GateWithJournal<0, false>)->Iterations(4'000'000);
BENCHMARK(GateWithJournal<16, true>);

}  // namespace
}  // namespace cuaudit::faults

BENCHMARK_MAIN();
