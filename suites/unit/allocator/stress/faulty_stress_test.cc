// SPDX-License-Identifier: MIT
// Everything at once, and driver calls fail meanwhile: threads that share streams and blocks allocate, use, free, empty, trim, make pools
// and end streams, while calls of theirs fail at random. Nothing that is live or still used is given out, whoever is told of an error has
// met a failing call himself, the books stay right, and in the end everything is given back.
//
// CUAUDIT_STRESS_SEEDS=N runs N seeds from CUAUDIT_STRESS_SEED (1) on instead of the few that are fixed.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "faults/driver/call_id.h"
#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/stress/random_faults.h"

namespace cuaudit::alloc::faulty_stress_test {
namespace {

constexpr std::size_t kThreads = 3;
constexpr int kTurns = 120;
constexpr std::uint64_t kSeeds = 2;

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Held {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CUstream owner = nullptr;
};

// What is live, by address; and blocks of the shared streams that whoever comes by may use and free.
class Table {
 public:
  void Enter(const Held& block) {
    const std::lock_guard<std::mutex> held(mutex_);
    const auto after = live_.lower_bound(block.address);
    if (after != live_.end() && after->first < block.address + block.bytes) ADD_FAILURE() << "two live blocks overlap";
    if (after != live_.begin() && std::prev(after)->first + std::prev(after)->second > block.address)
      ADD_FAILURE() << "two live blocks overlap";
    live_[block.address] = block.bytes;
  }
  void Leave(CUdeviceptr address) {
    const std::lock_guard<std::mutex> held(mutex_);
    EXPECT_EQ(live_.erase(address), 1U);
  }
  Held Swap(std::size_t at, const Held& mine) {
    const std::lock_guard<std::mutex> held(mutex_);
    return std::exchange(places_[at % places_.size()], mine);
  }
  std::size_t places() const { return places_.size(); }
  std::size_t live() const { return live_.size(); }

 private:
  std::mutex mutex_;
  std::map<CUdeviceptr, std::size_t> live_;
  std::array<Held, 6> places_{};
};

struct Conditions {
  Options options;
  std::uint64_t seed = 1;
  Counted counted = Counted::PerThread;
  std::size_t device_bytes = 0;
  bool may_run_out = false;
};

class Stress {
 public:
  explicit Stress(const Conditions& conditions)
      : conditions_(conditions),
        a_({},
           {.schedule = conditions.seed % 2 == 0 ? sim::Schedule::Fifo : sim::Schedule::Random, .device_bytes = conditions.device_bytes}),
        faults_(a_.d, conditions.seed, conditions.counted == Counted::PerThread ? 40 : 60, conditions.counted) {
    const DeviceConfig device{0, nullptr};
    EXPECT_OK(Allocator::Create(faults_.ref(), &device, 1, conditions.options, &subject_));
    for (CUstream& stream : shared_) stream = a_.Stream();
    for (CUstream& stream : users_) stream = a_.Stream();
  }

  void Run() {
    if (subject_ == nullptr) return;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([this, i] { Work(i); });
    threads.emplace_back([this] { Keep(); });
    for (std::thread& thread : threads) thread.join();
    End();
  }
  std::uint64_t fired() const { return faults_.fired(); }
  Statistics statistics() const {
    Statistics statistics;
    subject_->GetStatistics(0, &statistics);
    return statistics;
  }

 private:
  struct Worker {
    std::size_t index = 0;
    std::mt19937_64 random;
    CUstream own = nullptr;
    std::vector<Held> mine;
  };

  // A call of the allocator, in which driver calls may fail. False: it said so.
  template <typename Call>
  bool Try(std::uint64_t thread, const char* what, const Call& call) {
    const RandomFaults::Call scope(&faults_, thread + 1);
    const CUresult result = call();
    if (result == CUDA_SUCCESS) return true;
    if (!scope.failed() && !(conditions_.may_run_out && result == CUDA_ERROR_OUT_OF_MEMORY))
      ADD_FAILURE() << "seed " << conditions_.seed << ": " << what << " answers " << result
                    << " though no driver call of it failed: " << subject_->LastErrorText();
    return false;
  }

  // Made and ended under one lock: the books of `a_` are for one thread.
  CUstream NewStream() {
    const std::lock_guard<std::mutex> held(mutex_);
    return a_.Stream();
  }
  void EndStream(CUstream stream) {
    const std::lock_guard<std::mutex> held(mutex_);
    a_.Destroy(stream);
  }

  bool Allocate(Worker& worker, CUstream stream, Held* block) {
    const std::uint64_t draw = worker.random();
    block->owner = stream;
    block->bytes = draw % 6 == 0 ? 3 * kMiB : draw % 17 == 0 ? 11 * kMiB : std::size_t{512} << (draw / 64 % 11);
    block->address = 0;
    if (!Try(worker.index, "Allocate", [&] { return subject_->Allocate(0, block->bytes, stream, &block->address); })) {
      EXPECT_EQ(block->address, 0U);
      return false;
    }
    table_.Enter(*block);
    EXPECT_OK(a_.d.MemsetD8Async(block->address, 1, 512, stream));
    return true;
  }

  // Another stream uses the block and says so; whoever cannot say so waits.
  void Use(Worker& worker, const Held& block) {
    const std::uint64_t draw = worker.random();
    CUstream const user = users_[draw % users_.size()];
    const int way = static_cast<int>(draw / 16 % 4);
    bool told = way != 0;
    if (way == 0) told = Try(worker.index, "RecordStream", [&] { return subject_->RecordStream(block.address, user); });
    a_.Order(block.owner, user);
    EXPECT_OK(a_.d.MemsetD8Async(block.address, 2, 512, user));
    if (way == 1 || way == 2) told = Try(worker.index, "RecordUse", [&] { return subject_->RecordUse(block.address, user); });
    if (way == 3) {
      CUevent event = nullptr;
      EXPECT_OK(a_.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
      EXPECT_OK(a_.d.EventRecord(event, user));
      told = Try(worker.index, "KeepAliveUntil", [&] { return subject_->KeepAliveUntil(block.address, event); });
      EXPECT_OK(a_.d.EventDestroy(event));
    }
    if (!told) {
      EXPECT_OK(a_.d.StreamSynchronize(user));
    }
  }

  // Whatever it answers, the pointer is gone.
  void Free(Worker& worker, const Held& block) {
    table_.Leave(block.address);
    (void)Try(worker.index, "Free", [&] { return subject_->Free(block.address); });
  }

  void UsePool(Worker& worker) {
    PoolId pool;
    Route route;
    route.user = &worker;
    route.applies = [](void* user, StreamRef stream) noexcept { return static_cast<Worker*>(user)->own == stream.handle(); };
    if (!Try(worker.index, "CreatePool", [&] { return subject_->CreatePool({.use_on_oom = worker.index == 0}, &pool); })) return;
    std::vector<Held> blocks;
    if (Try(worker.index, "BeginAllocateToPool", [&] { return subject_->BeginAllocateToPool(0, pool, route); })) {
      for (int i = 0; i < 3; ++i) {
        Held block;
        if (Allocate(worker, worker.own, &block)) blocks.push_back(block);
      }
      if (!blocks.empty()) Use(worker, blocks.front());
      EXPECT_TRUE(Try(worker.index, "EndAllocateToPool", [&] { return subject_->EndAllocateToPool(0, pool); }));
      EXPECT_TRUE(Try(worker.index, "ReleasePool", [&] { return subject_->ReleasePool(pool); }));
    }
    for (const Held& block : blocks) Free(worker, block);
    if (worker.random() % 2 == 0) (void)Try(worker.index, "EmptyCache(pool)", [&] { return subject_->EmptyCache(pool); });
    EXPECT_TRUE(Try(worker.index, "ReleasePool", [&] { return subject_->ReleasePool(pool); }));
  }

  void ChangeStream(Worker& worker) {
    for (const Held& block : worker.mine) Free(worker, block);
    worker.mine.clear();
    if (worker.random() % 4 != 0) (void)Try(worker.index, "RetireStream", [&] { return subject_->RetireStream(0, worker.own); });
    EndStream(worker.own);
    worker.own = NewStream();
  }

  void Work(std::size_t index) {
    EXPECT_OK(a_.d.CtxSetCurrent(a_.contexts[0]));
    Worker worker;
    worker.index = index;
    worker.random.seed(conditions_.seed * 64 + index);
    worker.own = NewStream();
    for (int turn = 0; turn < kTurns && !testing::Test::HasFailure(); ++turn) {
      const std::uint64_t draw = worker.random();
      Held block;
      if (draw % 40 == 0) UsePool(worker);
      if (draw % 64 == 1) ChangeStream(worker);
      if (draw % 32 == 2) (void)Try(index, "EmptyCache", [&] { return subject_->EmptyCache(); });
      if (!Allocate(worker, draw / 256 % 2 == 0 ? shared_[draw / 512 % shared_.size()] : worker.own, &block)) continue;
      if (block.owner == worker.own) {
        if (draw / 1024 % 2 == 0) Use(worker, block);
        worker.mine.push_back(block);
        if (worker.mine.size() < 4) continue;
        const std::size_t at = worker.random() % worker.mine.size();
        Free(worker, worker.mine[at]);
        worker.mine.erase(worker.mine.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      const Held other = table_.Swap(draw / 2048, block);
      if (other.address == 0) continue;
      if (draw / 8192 % 2 == 0) Use(worker, other);
      Free(worker, other);
    }
    for (const Held& block : worker.mine) Free(worker, block);
    EXPECT_OK(a_.d.CtxSetCurrent(nullptr));
  }

  // Who looks on, and gives memory back meanwhile.
  void Keep() {
    EXPECT_OK(a_.d.CtxSetCurrent(a_.contexts[0]));
    for (int turn = 0; turn < 40; ++turn) {
      (void)Try(kThreads, "Trim", [&] { return subject_->Trim(0, static_cast<std::size_t>(turn % 4) * 8 * kMiB); });
      Snapshot snapshot;
      EXPECT_OK(subject_->TakeSnapshot(&snapshot));
      for (const SnapshotSegment& segment : snapshot.segments) {
        CUdeviceptr at = segment.address;
        for (const SnapshotBlock& block : segment.blocks) {
          EXPECT_EQ(block.address, at);
          at += block.size;
        }
        EXPECT_EQ(at, segment.address + segment.total_size);
      }
      const Statistics now = statistics();
      for (const StatArray* const stat : {&now.segment, &now.reserved_bytes}) {
        for (const Stat& one : *stat) EXPECT_EQ(one.allocated - one.freed, one.current);
      }
      EXPECT_EQ(now.reserved_bytes[0].current, now.reserved_bytes[1].current + now.reserved_bytes[2].current);
      std::this_thread::yield();
    }
    EXPECT_OK(a_.d.CtxSetCurrent(nullptr));
  }

  void End() {
    SCOPED_TRACE("seed " + std::to_string(conditions_.seed));
    faults_.Mend();
    for (std::size_t i = 0; i < table_.places(); ++i) {
      const Held left = table_.Swap(i, {});
      if (left.address == 0) continue;
      table_.Leave(left.address);
      EXPECT_OK(subject_->Free(left.address));
    }
    EXPECT_EQ(table_.live(), 0U);
    // No lock is held: every stream is served, also with what was pending.
    for (const CUstream stream : a_.streams) {
      CUdeviceptr address = 0;
      EXPECT_OK(subject_->Allocate(0, 2 * kMiB, stream, &address)) << subject_->LastErrorText();
      EXPECT_OK(subject_->RecordUse(address, users_[0]));
      EXPECT_OK(subject_->Free(address));
    }
    EXPECT_OK(subject_->EmptyCache()) << subject_->LastErrorText();
    const Statistics now = statistics();
    for (std::size_t kind = 0; kind < kPoolKinds; ++kind) {
      for (const StatArray* const stat : {&now.allocation, &now.allocated_bytes, &now.requested_bytes, &now.active, &now.active_bytes,
                                          &now.reserved_bytes, &now.inactive_split, &now.inactive_split_bytes}) {
        EXPECT_EQ((*stat)[kind].current, 0);
        if (stat != &now.inactive_split && stat != &now.inactive_split_bytes) {
          EXPECT_EQ((*stat)[kind].allocated, (*stat)[kind].freed);
        }
      }
      if (!conditions_.options.expandable_segments) {
        EXPECT_EQ(now.segment[kind].current, 0);
      }
    }
    EXPECT_EQ(now.blocks_pending, 0U);
    Snapshot snapshot;
    EXPECT_OK(subject_->TakeSnapshot(&snapshot));
    for (const SnapshotSegment& segment : snapshot.segments) {
      for (const SnapshotBlock& block : segment.blocks)
        ADD_FAILURE() << "pool " << segment.pool.second << ", stream " << segment.stream << ": " << block.size << " bytes stay, state "
                      << static_cast<int>(block.state) << (block.in_thread_cache ? ", cached" : "") << ", " << block.uses.size() << " uses";
    }
    EXPECT_EQ(now.double_frees + now.foreign_pointers, 0U);
    EXPECT_LE(now.releases_refused, faults_.fired());
    for (const CUstream stream : std::vector<CUstream>(a_.streams)) a_.Destroy(stream);
    EXPECT_OK(subject_->Close()) << subject_->LastErrorText();
    subject_.reset();
    // What is released once, the driver has kept when it refused that (allocator/README.md, "Releases that fail").
    for (const driver::Kind kind : {driver::Kind::PhysicalMemory, driver::Kind::Stream, driver::Kind::Event})
      a_.lost[kind] = std::min(a_.Live(kind), faults_.refused(kind));
  }

  const Conditions conditions_;
  Allocating a_;
  RandomFaults faults_;
  std::unique_ptr<Allocator> subject_;
  std::array<CUstream, 2> shared_{};
  std::array<CUstream, 3> users_{};
  Table table_;
  std::mutex mutex_;
};

struct Case {
  const char* name;
  Options options;
  bool may_run_out;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {{"PollSegments", {}, false},         {"WaitSegments", {}, false},          {"PollExpandable", {}, false},
                             {"WaitExpandable", {}, false},       {"StreamWrites", {}, false},          {"SmallDevice", {}, true},
                             {"SmallDeviceExpandable", {}, true}, {"SmallDeviceMoving", Moving(), true}};
  cases[0].options.cross_stream = CrossStream::Ready;
  cases[1].options.reuse = cases[3].options.reuse = cases[5].options.reuse = Reuse::Wait;
  cases[1].options.cross_stream = cases[5].options.cross_stream = CrossStream::Wait;
  cases[2].options.expandable_segments = cases[3].options.expandable_segments = cases[6].options.expandable_segments = true;
  cases[4].options.completion = Completion::StreamWrites;
  cases[5].options.max_split_size = 22 * kMiB;
  cases[6].options.cross_stream = CrossStream::Ready;
  cases[7].options.trust_stream_handles = false;  // a stream whose RetireStream failed ends all the same
  return cases;
}

class FaultyStress : public testing::TestWithParam<std::size_t> {};

TEST_P(FaultyStress, NothingIsGivenOutTwiceAndAllIsGivenBack) {
  const Case chosen = Cases()[GetParam()];
  const std::uint64_t first = FromEnvironment("CUAUDIT_STRESS_SEED", 1);
  const std::uint64_t count = FromEnvironment("CUAUDIT_STRESS_SEEDS", kSeeds);
  std::uint64_t fired = 0;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("CUAUDIT_STRESS_SEED=" + std::to_string(seed));
    Conditions conditions;
    conditions.options = chosen.options;
    conditions.seed = seed;
    conditions.counted = seed % 2 == 0 ? Counted::Together : Counted::PerThread;
    conditions.may_run_out = chosen.may_run_out;
    conditions.device_bytes = chosen.may_run_out ? 72 * kMiB : 1024 * kMiB;
    Stress stress(conditions);
    stress.Run();
    fired += stress.fired();
  }
  EXPECT_GT(fired, 10 * count);
}

INSTANTIATE_TEST_SUITE_P(All, FaultyStress, testing::Range(std::size_t{0}, Cases().size()),
                         [](const testing::TestParamInfo<std::size_t>& chosen) { return Cases()[chosen.param].name; });

}  // namespace
}  // namespace cuaudit::alloc::faulty_stress_test
