// SPDX-License-Identifier: MIT
// What the allocator itself costs, natively and through the plug-in's C functions, with no harness between: on a driver that answers each
// call at once (null_libcuda.c), or on the genuine one.
//
//   allocator_cost [ROW [TURNS]]
//
// Without arguments every row, as a table: row, threads, median and least nanoseconds of CPU time for a pair (an allocation and a free) or
// a call; with a row, that one. With a number of turns too it only runs, for allocator_profile.py to count instructions of.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/lock.h"
#include "allocator/plugin/process_driver.h"

namespace cuaudit::alloc {
namespace {

double Nanoseconds() {
  timespec now{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

[[noreturn]] void Die(const char* why) {
  std::fprintf(stderr, "allocator_cost: %s\n", why);
  std::exit(3);
}

constexpr int kMostThreads = 16;

struct Native {
  explicit Native(driver::DriverRef d) : driver(d) {
    DeviceConfig config;
    if (d.Init(0) != CUDA_SUCCESS || d.DeviceGet(&config.device, 0) != CUDA_SUCCESS ||
        d.DevicePrimaryCtxRetain(&context, config.device) != CUDA_SUCCESS)
      Die("no device");
    Enter();
    if (Allocator::Create(d, &config, 1, {}, &allocator) != CUDA_SUCCESS) Die("the allocator does not open");
    for (int i = 0; i < kMostThreads + 1; ++i) {
      CUstream stream = nullptr;
      StreamRef ref;
      if (d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || allocator->Identify(0, stream, &ref) != CUDA_SUCCESS)
        Die("no stream");
      refs.push_back(ref);
      handles.push_back(stream);
    }
  }
  void Enter() const {
    if (driver.CtxSetCurrent(context) != CUDA_SUCCESS) Die("no context");
  }
  driver::DriverRef driver;
  CUcontext context = nullptr;
  std::unique_ptr<Allocator> allocator;
  std::vector<StreamRef> refs;
  std::vector<CUstream> handles;
};

struct PlugIn {
  explicit PlugIn(const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) Die(dlerror());
    get = reinterpret_cast<void* (*)(ssize_t, int, CUstream)>(dlsym(library, "cuaudit_malloc"));
    put = reinterpret_cast<void (*)(void*, ssize_t, int, CUstream)>(dlsym(library, "cuaudit_free"));
    use = reinterpret_cast<int (*)(void*, CUstream)>(dlsym(library, "cuaudit_record_use"));
    if (get == nullptr || put == nullptr || use == nullptr) Die("the plug-in lacks a function");
  }
  void* (*get)(ssize_t, int, CUstream) = nullptr;
  void (*put)(void*, ssize_t, int, CUstream) = nullptr;
  int (*use)(void*, CUstream) = nullptr;
};

// A row's loop, as thread `index`, `turns` times.
using Loop = void (*)(Native& native, PlugIn& plugin, int index, std::uint64_t turns);

void NativePair(Native& native, PlugIn&, int index, std::uint64_t turns) {
  const StreamRef stream = native.refs[static_cast<std::size_t>(index)];
  for (; turns != 0; --turns) {
    CUdeviceptr address = 0;
    if (native.allocator->Allocate(64 << 10, stream, &address) != CUDA_SUCCESS || native.allocator->Free(address) != CUDA_SUCCESS)
      Die("pair");
  }
}

void PairOf(PlugIn& plugin, CUstream stream, std::uint64_t turns) {
  for (; turns != 0; --turns) plugin.put(plugin.get(64 << 10, 0, stream), 64 << 10, 0, stream);
}

void PluginPair(Native& native, PlugIn& plugin, int index, std::uint64_t turns) {
  PairOf(plugin, native.handles[static_cast<std::size_t>(index)], turns);
}

// PyTorch's stream unless it is told otherwise.
void PluginLegacyPair(Native&, PlugIn& plugin, int, std::uint64_t turns) { PairOf(plugin, nullptr, turns); }

// 64 slots; a random one is freed and filled again; sizes log-uniform from 512 B to 8 MiB.
template <typename Get, typename Put>
void Mix(int index, std::uint64_t turns, Get get, Put put) {
  std::array<CUdeviceptr, 64> slot{};
  std::uint64_t random = 88172645463325252U + static_cast<std::uint64_t>(index);
  for (; turns != 0; --turns) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    CUdeviceptr& one = slot[random % slot.size()];
    const std::size_t power = 9 + (random >> 8) % 14;
    const std::size_t bytes = (std::size_t{1} << power) + ((random >> 16) & ((std::size_t{1} << power) - 1));
    if (one != 0) put(one);
    one = get(bytes);
  }
  for (const CUdeviceptr one : slot) {
    if (one != 0) put(one);
  }
}

void NativeMixed(Native& native, PlugIn&, int index, std::uint64_t turns) {
  const StreamRef stream = native.refs[static_cast<std::size_t>(index)];
  Allocator& allocator = *native.allocator;
  Mix(
      index, turns,
      [&](std::size_t bytes) {
        CUdeviceptr address = 0;
        if (allocator.Allocate(bytes, stream, &address) != CUDA_SUCCESS) Die("mixed");
        return address;
      },
      [&](CUdeviceptr address) {
        if (allocator.Free(address) != CUDA_SUCCESS) Die("mixed");
      });
}

void PluginMixed(Native& native, PlugIn& plugin, int index, std::uint64_t turns) {
  CUstream const stream = native.handles[static_cast<std::size_t>(index)];
  Mix(
      index, turns, [&](std::size_t bytes) { return reinterpret_cast<CUdeviceptr>(plugin.get(static_cast<ssize_t>(bytes), 0, stream)); },
      [&](CUdeviceptr address) { plugin.put(reinterpret_cast<void*>(address), 1, 0, stream); });  // NOLINT(performance-no-int-to-ptr)
}

void NativeRecordUse(Native& native, PlugIn&, int index, std::uint64_t turns) {
  Allocator& allocator = *native.allocator;
  CUdeviceptr address = 0;
  if (allocator.Allocate(64 << 10, native.refs[static_cast<std::size_t>(index)], &address) != CUDA_SUCCESS) Die("record_use");
  const StreamRef user = native.refs[static_cast<std::size_t>(index + 1)];
  for (; turns != 0; --turns) {
    if (allocator.RecordUse(address, user) != CUDA_SUCCESS) Die("record_use");
  }
  (void)allocator.Free(address);
}

void PluginRecordUse(Native& native, PlugIn& plugin, int index, std::uint64_t turns) {
  void* const block = plugin.get(64 << 10, 0, native.handles[static_cast<std::size_t>(index)]);
  for (; turns != 0; --turns) {
    if (plugin.use(block, native.handles[static_cast<std::size_t>(index + 1)]) != 0) Die("plug-in record_use");
  }
  plugin.put(block, 64 << 10, 0, nullptr);
}

// The driver's own part of a RecordUse: to be taken off.
void DriverCalls(Native& native, PlugIn&, int index, std::uint64_t turns) {
  CUstream const stream = native.handles[static_cast<std::size_t>(index)];
  CUevent event = nullptr;
  if (native.driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) Die("event");
  for (; turns != 0; --turns) {
    if (native.driver.EventRecord(event, stream) != CUDA_SUCCESS) Die("event");
  }
}

// What an arena's lock that its main thread passes without a locked instruction could win, beside the one that there is: around a section
// of as many stores as a direct call has between its two. Others would take it behind a barrier in all threads, and for good.
class OwnerBiasedLock {
 public:
  void lock() noexcept {
    if (owner_ == &me_) [[likely]] {
      is_inside_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (!is_taken_away_.load(std::memory_order_acquire)) [[likely]]
        return;
      is_inside_.store(false, std::memory_order_release);
    }
    LockSlowly();
  }
  void unlock() noexcept {
    if (is_shared_) [[unlikely]]
      return shared_.unlock();
    is_inside_.store(false, std::memory_order_release);
  }
  void GiveToMe() noexcept { owner_ = &me_; }

 private:
  [[gnu::noinline]] void LockSlowly() noexcept {
    shared_.lock();
    is_taken_away_.store(true);
    if (!RunBarrier()) Die("no barrier");
    for (Waiter waiter; is_inside_.load(std::memory_order_acquire);) waiter.Pause();
    is_shared_ = true;
  }
  static thread_local char me_;
  const char* owner_ = nullptr;
  std::atomic<bool> is_inside_{false};
  std::atomic<bool> is_taken_away_{false};
  bool is_shared_ = false;
  Lock shared_;
};
thread_local char OwnerBiasedLock::me_ = 0;

template <typename AnyLock>
struct alignas(64) Locked {
  AnyLock lock;
  std::array<std::atomic<std::uint64_t>, 16> words{};

  void Run(std::uint64_t turns) {
    for (; turns != 0; --turns) {
      const std::lock_guard held(lock);
      for (std::atomic<std::uint64_t>& word : words) word.store(turns, std::memory_order_relaxed);
    }
  }
};

void ExchangedLock(Native&, PlugIn&, int index, std::uint64_t turns) {
  static std::array<Locked<Lock>, kMostThreads> each;
  each[static_cast<std::size_t>(index)].Run(turns);
}

void BiasedLock(Native&, PlugIn&, int index, std::uint64_t turns) {
  static std::array<Locked<OwnerBiasedLock>, kMostThreads> each;
  each[static_cast<std::size_t>(index)].lock.GiveToMe();
  each[static_cast<std::size_t>(index)].Run(turns);
}

struct Row {
  const char* name;
  Loop loop;
  int threads;
  std::uint64_t turns;
};
constexpr Row kRows[] = {
    {"native_pair", NativePair, 1, 2'000'000},
    {"native_pair", NativePair, 16, 200'000},
    {"plugin_pair", PluginPair, 1, 2'000'000},
    {"plugin_pair", PluginPair, 16, 200'000},
    {"plugin_legacy_pair", PluginLegacyPair, 1, 2'000'000},
    {"native_mixed", NativeMixed, 1, 500'000},
    {"native_mixed", NativeMixed, 16, 100'000},
    {"plugin_mixed", PluginMixed, 1, 500'000},
    {"plugin_mixed", PluginMixed, 16, 100'000},
    {"native_record_use", NativeRecordUse, 1, 1'000'000},
    {"plugin_record_use", PluginRecordUse, 1, 1'000'000},
    {"event_record", DriverCalls, 1, 2'000'000},
    {"lock", ExchangedLock, 1, 2'000'000},
    {"lock", ExchangedLock, 16, 200'000},
    {"lock_owner_biased", BiasedLock, 1, 2'000'000},
    {"lock_owner_biased", BiasedLock, 16, 200'000},
};

// Nanoseconds of CPU time for a turn: of the middle thread.
double Run(const Row& row, Native& native, PlugIn& plugin, std::uint64_t turns) {
  std::vector<double> taken(static_cast<std::size_t>(row.threads));
  const auto one = [&](int index) {
    native.Enter();
    row.loop(native, plugin, index, turns / 10);
    const double began = Nanoseconds();
    row.loop(native, plugin, index, turns);
    taken[static_cast<std::size_t>(index)] = (Nanoseconds() - began) / static_cast<double>(turns);
  };
  if (row.threads == 1) {
    one(0);
  } else {
    std::vector<std::thread> threads;
    for (int i = 0; i < row.threads; ++i) threads.emplace_back(one, i);
    for (std::thread& thread : threads) thread.join();
  }
  std::sort(taken.begin(), taken.end());
  return taken[taken.size() / 2];
}

int Main(int count, char** arguments) {
  driver::GenuineDriver opened;
  if (const char* const wrong = OpenProcessDriver(&opened); wrong != nullptr) Die(wrong);
  Native native(driver::Driver(&opened));
  // Beside the program, wherever the build was carried.
  PlugIn plugin((std::filesystem::canonical("/proc/self/exe").parent_path() / "../lib/cuaudit/libcuaudit_allocator.so").c_str());
  if (count > 2) {
    for (const Row& row : kRows) {
      if (std::string_view(row.name) != arguments[1] || row.threads != 1) continue;
      row.loop(native, plugin, 0, std::strtoull(arguments[2], nullptr, 10));
      return 0;
    }
    Die("no such row");
  }
  constexpr int kRounds = 9;
  std::array<std::array<double, kRounds>, std::size(kRows)> taken{};
  for (std::size_t round = 0; round < kRounds; ++round) {  // interleaved, so that a busy moment falls on all rows
    for (std::size_t i = 0; i < std::size(kRows); ++i) {
      if (count == 2 && std::string_view(kRows[i].name) != arguments[1]) continue;
      taken[i][round] = Run(kRows[i], native, plugin, kRows[i].turns);
    }
  }
  std::puts("row\tthreads\tmedian_ns\tleast_ns");
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    std::sort(taken[i].begin(), taken[i].end());
    if (taken[i][0] != 0) std::printf("%s\t%d\t%.1f\t%.1f\n", kRows[i].name, kRows[i].threads, taken[i][kRounds / 2], taken[i][0]);
  }
  return 0;
}

}  // namespace
}  // namespace cuaudit::alloc

int main(int count, char** arguments) { return cuaudit::alloc::Main(count, arguments); }
