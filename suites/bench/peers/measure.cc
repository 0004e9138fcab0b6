// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "suites/bench/peers/loops.h"

namespace cuaudit::bench {
namespace {

constexpr std::size_t kMaxSamples = 1U << 16;

// Peers are other people's code: what they throw ends a row, not the comparison.
template <typename Step>
void Caught(Step step, std::string* failure) {
  try {
    step();
  } catch (const std::exception& error) {
    *failure = std::string("threw: ") + error.what();
  } catch (...) {
    *failure = "threw";
  }
}

double Percentile(std::vector<double>* samples, double fraction) {
  if (samples->empty()) return 0;
  const auto at = samples->begin() + static_cast<std::ptrdiff_t>(fraction * static_cast<double>(samples->size() - 1));
  std::nth_element(samples->begin(), at, samples->end());
  return *at;
}

// What two readings of the clock cost, the one subtracted from the other.
std::uint64_t ClockCost() {
  std::vector<double> costs;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t begin = Now();
    costs.push_back(static_cast<double>(Now() - begin));
  }
  return static_cast<std::uint64_t>(Percentile(&costs, 0.5));
}

struct Samples {
  std::vector<double> batches;
  std::vector<double> singles;
  std::uint64_t operations = 0;
  std::uint64_t elapsed = 0;
  std::string failure;  // what was thrown
};

// False: an operation failed.
bool RunBatches(const Operation& operation, std::uint64_t batch, std::uint64_t until, const std::atomic<bool>& is_over, Samples* samples) {
  const std::uint64_t start = Now();
  std::uint64_t begin = start;
  do {  // once at least, however late the thread was let in
    for (std::uint64_t i = 0; i < batch; ++i) {
      if (!operation()) return false;
    }
    const std::uint64_t end = Now();
    if (samples->batches.size() < kMaxSamples) samples->batches.push_back(static_cast<double>(end - begin) / static_cast<double>(batch));
    samples->operations += batch;
    begin = end;
  } while (begin < until && !is_over.load(std::memory_order_relaxed));
  samples->elapsed = begin - start;
  return true;
}

bool RunSingles(const Operation& operation, std::uint64_t clock_cost, std::uint64_t until, const std::atomic<bool>& is_over,
                Samples* samples) {
  std::uint64_t begin = 0;
  while (begin < until && samples->singles.size() < kMaxSamples && !is_over.load(std::memory_order_relaxed)) {
    begin = Now();
    if (!operation()) return false;
    const std::uint64_t taken = Now() - begin;
    samples->singles.push_back(static_cast<double>(taken > clock_cost ? taken - clock_cost : 0));
  }
  return true;
}

Figures Sum(std::vector<Samples>* threads) {
  Figures figures;
  std::vector<double> batches;
  std::vector<double> singles;
  double rate = 0;
  for (const Samples& samples : *threads) {
    batches.insert(batches.end(), samples.batches.begin(), samples.batches.end());
    singles.insert(singles.end(), samples.singles.begin(), samples.singles.end());
    figures.operations += samples.operations;
    if (samples.operations == 0 || samples.elapsed == 0) continue;
    const double each = static_cast<double>(samples.elapsed) / static_cast<double>(samples.operations);
    figures.mean_ns += each / static_cast<double>(threads->size());
    rate += 1000.0 / each;
  }
  figures.millions_per_second = rate;
  figures.median_ns = Percentile(&batches, 0.5);
  figures.p99_ns = Percentile(&singles, 0.99);
  return figures;
}

}  // namespace

// The cores are read by the first caller, before anybody is pinned: a pinned thread's children inherit its one core.
void PinTo(int number) {
  static const std::vector<int> cores = [] {
    std::vector<int> found;
    cpu_set_t allowed;
    if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) != 0) return found;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &allowed)) found.push_back(core);
    }
    return found;
  }();
  if (cores.empty()) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cores[static_cast<std::size_t>(number) % cores.size()], &own);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
}

std::uint64_t Now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

Figures Measure(const Workload& workload, const Budget& budget) {
  const std::uint64_t clock_cost = ClockCost();
  std::vector<Samples> samples(static_cast<std::size_t>(workload.threads));
  std::atomic<int> ready{0};
  std::atomic<std::uint64_t> start{0};
  std::atomic<bool> has_failed{false};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workload.threads));
  for (int number = 0; number < workload.threads; ++number) {
    threads.emplace_back([&, number] {
      PinTo(number);
      Samples& own = samples[static_cast<std::size_t>(number)];
      own.batches.reserve(kMaxSamples);
      own.singles.reserve(kMaxSamples);
      Operation operation;
      Caught([&] { operation = workload.make(number); }, &own.failure);
      if (operation == nullptr) has_failed = true;
      ready.fetch_add(1);
      while (start.load(std::memory_order_acquire) == 0) std::this_thread::yield();
      const std::uint64_t begin = start.load(std::memory_order_acquire);
      const auto at = [&](std::uint64_t percent) { return begin + budget.nanoseconds / 100 * percent; };
      Samples warm;
      bool is_well = false;
      Caught(
          [&] {
            is_well = operation != nullptr && RunBatches(operation, budget.batch, at(10), has_failed, &warm);
            is_well = is_well && RunBatches(operation, budget.batch, at(60), has_failed, &own);
            is_well = is_well && RunSingles(operation, clock_cost, at(100), has_failed, &own);
          },
          &own.failure);
      if (!is_well || !own.failure.empty()) has_failed = true;
      if (workload.finish) Caught([&] { workload.finish(number); }, &own.failure);
    });
  }
  while (ready.load() < workload.threads) std::this_thread::yield();
  start.store(Now(), std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
  Figures figures = Sum(&samples);
  if (has_failed) figures.failure = "an operation failed";
  for (const Samples& each : samples) {
    if (!each.failure.empty()) figures.failure = each.failure;
  }
  return figures;
}

Figures MeasureRounds(const Rounds& rounds, const Budget& budget) {
  const std::uint64_t clock_cost = ClockCost();
  std::vector<Samples> samples(1);
  Samples& own = samples[0];
  const std::uint64_t until = Now() + budget.nanoseconds;
  for (std::uint64_t round = 0; round < 4 || Now() < until; ++round) {
    bool is_well = rounds.before();
    const bool is_single = round % 2 == 1;
    const std::uint64_t begin = Now();
    const auto run = [&] {
      for (std::uint64_t i = 0; i < rounds.count && is_well; ++i) {
        const std::uint64_t one = is_single ? Now() : 0;
        is_well = rounds.operation();
        if (!is_single) continue;
        const std::uint64_t taken = Now() - one;
        if (own.singles.size() < kMaxSamples) own.singles.push_back(static_cast<double>(taken > clock_cost ? taken - clock_cost : 0));
      }
    };
    Caught(run, &own.failure);
    is_well = is_well && own.failure.empty();
    const std::uint64_t taken = Now() - begin;
    if (!rounds.after() || !is_well) {
      Figures figures;
      figures.failure = own.failure.empty() ? "an operation failed" : own.failure;
      return figures;
    }
    if (is_single || round == 0) continue;  // the first is warm-up
    own.batches.push_back(static_cast<double>(taken) / static_cast<double>(rounds.count));
    own.operations += rounds.count;
    own.elapsed += taken;
  }
  return Sum(&samples);
}

}  // namespace cuaudit::bench
