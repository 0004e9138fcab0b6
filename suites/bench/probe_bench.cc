// SPDX-License-Identifier: MIT
// What the host probes cost: each meter alone, all cheap ones together, and the host drop-in around a cycle of so many heap blocks, which
// is what a cycle pays (budget 50 us).
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <stdlib.h>

#include "faults/driver/call_id.h"
#include "faults/journal/journal_file.h"
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

void Blocks(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    void* block = malloc(64);
    benchmark::DoNotOptimize(block);
    free(block);
  }
}

// Unwatched: the library is in the process, and no audit is under way.
void Unwatched(benchmark::State& state) {
  for (auto step : state) Blocks(state.range(0));
}
BENCHMARK(Unwatched)->ArgName("blocks")->Arg(20);

class Watched {
 public:
  Watched() : calls_(FindHostWatch(driver::TableDigest())) {
    static auto* const journal = new faults::MemoryJournal;
    faults::JournalOptions options = {.stack_depth = faults::kMaxFrames};
    static const char* const wrong = journal->Open(options, false);
    HostBlind blind;
    if (calls_ == nullptr || wrong != nullptr || !calls_->begin(&journal->journal()->header(), &blind) || blind.heap != HostUnseen::No)
      abort();
    journal_ = journal;
  }
  ~Watched() { calls_->end(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  template <typename Body>
  void Span(bool stacks, const Body& body) {
    journal_->Clear();
    calls_->start_span(stacks);
    body();
    benchmark::DoNotOptimize(calls_->end_span());
  }

 private:
  const HostWatchCalls* calls_;
  faults::MemoryJournal* journal_;
};

void SpanOfBlocks(benchmark::State& state) {
  Watched watched;
  for (auto step : state) watched.Span(state.range(1) != 0, [&] { Blocks(state.range(0)); });
}
BENCHMARK(SpanOfBlocks)->ArgNames({"blocks", "stacks"})->ArgsProduct({{0, 20}, {0, 1}});

void SpanOfMutexes(benchmark::State& state) {
  Watched watched;
  pthread_mutex_t mutex;
  for (auto step : state) {
    watched.Span(state.range(0) != 0, [&] {
      pthread_mutex_init(&mutex, nullptr);
      pthread_mutex_destroy(&mutex);
    });
  }
}
BENCHMARK(SpanOfMutexes)->ArgName("stacks")->Arg(0)->Arg(1);

}  // namespace
}  // namespace cuaudit::harness

BENCHMARK_MAIN();
