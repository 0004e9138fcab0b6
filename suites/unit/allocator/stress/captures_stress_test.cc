// SPDX-License-Identifier: MIT
// Captures and private pools while everything else goes on: threads capture into pools of their own and without, launch the graphs, take
// and restore checkpoints, and between that allocate, use and free on streams that they share, while another empties the cache, trims it
// and looks on. No two live blocks overlap, none overlaps what a graph has that may still run, the world's oracle sees no use of memory
// that is not its own, and in the end nothing is left. Meant for ThreadSanitizer.
//
// CUAUDIT_STRESS_SEEDS=N runs N seeds from CUAUDIT_STRESS_SEED (1) on instead of the few that are fixed.
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::captures_stress_test {
namespace {

constexpr std::size_t kThreads = 4;
constexpr int kTurns = 40;
constexpr std::uint64_t kSeeds = 2;

struct Live {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CUstream owner = nullptr;
};

// What is live, and what graphs have that may run.
class Books {
 public:
  // `graph`: whose capture it is for; 0: none's.
  void Enter(const Live& block, std::uint64_t graph) {
    const std::lock_guard<std::mutex> held(mutex_);
    for (const auto& [address, bytes] : live_) {
      if (Overlap(block, address, bytes)) ADD_FAILURE() << "two live blocks overlap";
    }
    for (const auto& [other, part] : graphs_) {
      if (other != graph && Overlap(block, part.address, part.bytes)) ADD_FAILURE() << "a graph has that memory";
    }
    live_[block.address] = block.bytes;
    if (graph != 0) graphs_.emplace(graph, block);
  }
  void Leave(CUdeviceptr address) {
    const std::lock_guard<std::mutex> held(mutex_);
    EXPECT_EQ(live_.erase(address), 1U);
  }
  void Forget(std::uint64_t graph) {
    const std::lock_guard<std::mutex> held(mutex_);
    EXPECT_NE(graphs_.erase(graph), 0U);
  }
  // Blocks of the shared streams, for whoever comes by.
  Live Swap(std::size_t at, const Live& mine) {
    const std::lock_guard<std::mutex> held(mutex_);
    return std::exchange(places_[at % places_.size()], mine);
  }
  std::size_t places() const { return places_.size(); }
  std::size_t size() const { return live_.size() + graphs_.size(); }

 private:
  static bool Overlap(const Live& block, CUdeviceptr address, std::size_t bytes) {
    return block.address < address + bytes && address < block.address + block.bytes;
  }
  std::mutex mutex_;
  std::map<CUdeviceptr, std::size_t> live_;
  std::multimap<std::uint64_t, Live> graphs_;
  std::array<Live, 6> places_{};
};

struct Shared {
  Shared(const Options& options, const Setting& setting, std::uint64_t the_seed) : a(options, setting), seed(the_seed) {
    for (CUstream& stream : streams) stream = a.Stream();
  }
  Allocating a;
  const std::uint64_t seed;
  std::array<CUstream, 2> streams{};  // never captured
  Books books;
  std::atomic<std::uint64_t> graphs{0}, launches{0}, restored{0}, uses{0};
  std::atomic<int> working{static_cast<int>(kThreads)};
  std::mutex mutex;             // for the books of `a`
  std::shared_mutex announced;  // nobody empties anything between the beginning of a capture and Identify, which tells of it
};

class Worker {
 public:
  Worker(Shared* shared, std::size_t index) : to_(*shared), a_(shared->a), random_(shared->seed * 64 + index) {
    EXPECT_OK(a_.d.CtxSetCurrent(a_.contexts[0]));
    // The test's own calls may be such as another's capture forbids; the allocator's are made as an ordinary thread makes them.
    Mode(CU_STREAM_CAPTURE_MODE_RELAXED);
    for (CUstream* const stream : {&own_, &side_, &user_}) *stream = NewStream();
  }
  ~Worker() { EXPECT_OK(a_.d.CtxSetCurrent(nullptr)); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Run() {
    for (int turn = 0; turn < kTurns && !testing::Test::HasFailure(); ++turn) {
      switch (random_() % 10) {
        case 0:
        case 1:
          CaptureIntoAPool();
          break;
        case 2:
          CaptureWithoutAPool();
          break;
        case 3:
          RestoreAPool();
          break;
        case 4:
          Empty([&] { return a_->EmptyCache(); });
          break;
        case 5:
          ChangeStream();
          break;
        default:
          for (int i = 0; i < 6; ++i) Eager();
      }
    }
    --to_.working;
  }

 private:
  void Mode(CUstreamCaptureMode mode) { EXPECT_OK(a_.d.ThreadExchangeStreamCaptureMode(&mode)); }
  void Said(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) ADD_FAILURE() << "seed " << to_.seed << ": " << what << " answers " << result << ": " << a_.LastText();
  }
  // A call of the allocator.
  template <typename Call>
  void Ask(const char* what, const Call& call) {
    Mode(CU_STREAM_CAPTURE_MODE_GLOBAL);
    const CUresult result = call();
    Mode(CU_STREAM_CAPTURE_MODE_RELAXED);
    Said(result, what);
  }
  template <typename Call>
  void Empty(const Call& call) {
    const std::shared_lock<std::shared_mutex> held(to_.announced);
    Ask("EmptyCache", call);
  }
  CUstream NewStream() {
    const std::lock_guard<std::mutex> held(to_.mutex);
    return a_.Stream();
  }

  Live Allocate(CUstream stream, std::uint64_t graph = 0) {
    const std::uint64_t draw = random_();
    Live block{0, draw % 4 == 0 ? 3 * kMiB : draw % 9 == 0 ? 11 * kMiB : std::size_t{512} << (draw / 64 % 11), stream};
    Ask("Allocate", [&] { return a_->Allocate(0, block.bytes, stream, &block.address); });
    if (block.address == 0) return block;
    to_.books.Enter(block, graph);
    EXPECT_OK(a_.d.MemsetD8Async(block.address, 1, 512, stream));
    return block;
  }
  void Free(const Live& block) {
    if (block.address == 0) return;
    to_.books.Leave(block.address);
    Ask("Free", [&] { return a_->Free(block.address); });
  }
  // By `user`, behind what `before` was given, which comes behind it in turn.
  void Use(const Live& block, CUstream before, CUstream user) {
    if (block.address == 0) return;
    a_.Order(before, user);
    EXPECT_OK(a_.d.MemsetD8Async(block.address, 2, 512, user));
    if (random_() % 4 == 0) {
      CUevent event = nullptr;
      EXPECT_OK(a_.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
      EXPECT_OK(a_.d.EventRecord(event, user));
      Ask("KeepAliveUntil", [&] { return a_->KeepAliveUntil(block.address, event); });
      EXPECT_OK(a_.d.EventDestroy(event));
    } else {
      Ask("RecordUse", [&] { return a_->RecordUse(block.address, user); });
    }
    ++to_.uses;
  }
  void Eager() {
    const std::uint64_t draw = random_();
    const Live block = Allocate(draw % 2 == 0 ? to_.streams[draw / 2 % 2] : own_);
    if (block.owner == own_) {
      if (draw / 4 % 2 == 0) Use(block, own_, user_);
      return Free(block);
    }
    const Live other = to_.books.Swap(draw / 8, block);
    if (other.address == 0) return;
    if (draw / 128 % 2 == 0) Use(other, other.owner, user_);
    Free(other);
  }
  void ChangeStream() {
    Ask("RetireStream", [&] { return a_->RetireStream(0, own_); });
    const std::lock_guard<std::mutex> held(to_.mutex);
    a_.Destroy(own_);
    own_ = a_.Stream();
  }

  void Begin() {
    const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED};
    EXPECT_OK(a_.d.StreamBeginCapture(own_, modes[random_() % std::size(modes)]));
  }
  CUgraphExec End() {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    EXPECT_OK(a_.d.StreamEndCapture(own_, &graph));
    EXPECT_OK(a_.d.GraphInstantiateWithFlags(&exec, graph, 0));
    EXPECT_OK(a_.d.GraphDestroy(graph));
    return exec;
  }
  // And all that others do meanwhile must leave its memory alone.
  void Launch(CUgraphExec exec) {
    a_.Order(own_, side_);
    for (std::uint64_t i = random_() % 3; i != ~std::uint64_t{0}; --i) {
      EXPECT_OK(a_.d.GraphLaunch(exec, side_));
      Eager();
      ++to_.launches;
    }
    EXPECT_OK(a_.d.StreamSynchronize(side_));
    EXPECT_OK(a_.d.GraphExecDestroy(exec));
  }

  void CaptureIntoAPool() {
    const std::uint64_t graph = ++to_.graphs;
    const Live outside = Allocate(own_);
    PoolId pool;
    Route route = {.user = this};
    route.applies = [](void* self, StreamRef stream) noexcept {
      const auto* const worker = static_cast<Worker*>(self);
      return stream.handle() == worker->own_ || stream.handle() == worker->side_;
    };
    Ask("CreatePool", [&] { return a_->CreatePool({}, &pool); });
    Ask("BeginAllocateToPool", [&] { return a_->BeginAllocateToPool(0, pool, route); });
    Begin();
    std::vector<Live> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(Allocate(own_, graph));
    Use(blocks[0], own_, side_);
    Use(outside, own_, side_);
    Free(std::exchange(blocks[0], Allocate(own_, graph)));
    blocks.push_back(Allocate(side_, graph));
    a_.Order(side_, own_);
    blocks.push_back(Allocate(own_, graph));
    CUgraphExec const exec = End();
    Ask("EndAllocateToPool", [&] { return a_->EndAllocateToPool(0, pool); });
    const bool frees_first = random_() % 2 == 0;  // the pool keeps it for the graph
    if (frees_first) {
      for (const Live& block : blocks) Free(block);
    }
    Launch(exec);
    if (!frees_first) {
      for (const Live& block : blocks) Free(block);
    }
    Free(outside);
    to_.books.Forget(graph);
    if (random_() % 2 == 0) Empty([&] { return a_->EmptyCache(pool); });
    for (int user = 0; user < 2; ++user) Ask("ReleasePool", [&] { return a_->ReleasePool(pool); });
  }

  // Announced by Identify: what it was given it keeps as long as the graph.
  void CaptureWithoutAPool() {
    const std::uint64_t graph = ++to_.graphs;
    {
      const std::unique_lock<std::shared_mutex> held(to_.announced);
      Begin();
      StreamRef inside;
      Ask("Identify", [&] { return a_->Identify(0, own_, &inside); });
    }
    Live blocks[2];
    for (Live& block : blocks) block = Allocate(own_, graph);
    CUgraphExec const exec = End();
    Launch(exec);
    to_.books.Forget(graph);
    for (const Live& block : blocks) Free(block);
  }

  void RestoreAPool() {
    PoolId pool;
    Route route;
    route.user = this;
    route.applies = [](void* self, StreamRef stream) noexcept { return stream.handle() == static_cast<Worker*>(self)->own_; };
    Ask("CreatePool", [&] { return a_->CreatePool({}, &pool); });
    Ask("BeginAllocateToPool", [&] { return a_->BeginAllocateToPool(0, pool, route); });
    std::map<CUdeviceptr, Live> live;
    const auto enter = [&](const Live& block) { live[block.address] = block; };
    enter(Allocate(own_));
    enter(Allocate(own_));
    Free(Allocate(own_));
    Checkpoint checkpoint;
    Ask("TakeCheckpoint", [&] { return a_->TakeCheckpoint(0, pool, &checkpoint); });
    const std::map<CUdeviceptr, Live> then = live;
    Free(live.begin()->second);
    live.erase(live.begin());
    enter(Allocate(own_));
    RestoreResult result;
    Ask("RestoreCheckpoint", [&] { return a_->RestoreCheckpoint(checkpoint, &result); });
    for (const CUdeviceptr address : result.freed) to_.books.Leave(address);
    EXPECT_EQ(result.allocated.size(), then.size());
    for (const auto& [address, block] : then) {
      to_.books.Enter(block, 0);
      EXPECT_OK(a_.d.MemsetD8Async(address, 3, 512, own_));
      Free(block);
    }
    Ask("EndAllocateToPool", [&] { return a_->EndAllocateToPool(0, pool); });
    for (int user = 0; user < 2; ++user) Ask("ReleasePool", [&] { return a_->ReleasePool(pool); });
    ++to_.restored;
  }

  Shared& to_;
  Allocating& a_;
  std::mt19937_64 random_;
  CUstream own_ = nullptr;   // captured at times
  CUstream side_ = nullptr;  // forked off it, and where graphs run
  CUstream user_ = nullptr;
};

void LookOn(Shared* to) {
  EXPECT_OK(to->a.d.CtxSetCurrent(to->a.contexts[0]));
  for (std::size_t turn = 0; to->working.load() != 0; ++turn) {
    std::shared_lock<std::shared_mutex> held(to->announced);
    const CUresult emptied = turn % 3 == 0 ? to->a->EmptyCache() : turn % 3 == 1 ? to->a->Trim(0, 8 * kMiB) : CUDA_SUCCESS;
    EXPECT_OK(emptied) << to->a.LastText();
    held.unlock();
    Snapshot snapshot;
    EXPECT_OK(to->a->TakeSnapshot(&snapshot));
    to->a->ResetPeaks(0);
    EXPECT_GE(to->a.Stats().reserved_bytes[0].current, 0);
    std::this_thread::yield();
  }
  EXPECT_OK(to->a.d.CtxSetCurrent(nullptr));
}

struct Case {
  const char* name;
  Options options;
};
std::vector<Case> Cases() {
  std::vector<Case> cases = {{"Poll", {}}, {"Wait", {}}, {"Expandable", {}}, {"WithoutCaches", {}}, {"Moving", Moving()}};
  cases[0].options.cross_stream = CrossStream::Ready;
  cases[1].options.reuse = Reuse::Wait;
  cases[1].options.cross_stream = CrossStream::Wait;
  cases[2].options.expandable_segments = true;
  cases[3].options.thread_cache = false;
  cases[3].options.max_stamps_per_stream = 4;
  cases[4].options.trust_stream_handles = false;  // streams end here without RetireStream, too
  return cases;
}

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class CapturesStress : public testing::TestWithParam<std::size_t> {};

TEST_P(CapturesStress, NobodyGetsWhatAGraphHas) {
  const std::uint64_t first = FromEnvironment("CUAUDIT_STRESS_SEED", 1);
  const std::uint64_t count = FromEnvironment("CUAUDIT_STRESS_SEEDS", kSeeds);
  std::uint64_t launches = 0, restored = 0, uses = 0, captured = 0;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("CUAUDIT_STRESS_SEED=" + std::to_string(seed));
    Shared to(Cases()[GetParam()].options,
              {.schedule = seed % 2 == 0 ? sim::Schedule::Fifo : sim::Schedule::Random, .device_bytes = 4096 * kMiB}, seed);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([&to, i] { Worker(&to, i).Run(); });
    threads.emplace_back([&to] { LookOn(&to); });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < to.books.places(); ++i) {
      const Live left = to.books.Swap(i, {});
      if (left.address == 0) continue;
      to.books.Leave(left.address);
      EXPECT_OK(to.a->Free(left.address));
    }
    EXPECT_EQ(to.books.size(), 0U);
    for (const CUstream stream : to.a.streams) (void)to.a.Ref(stream);  // its last capture is seen to be over
    EXPECT_OK(to.a->EmptyCache()) << to.a.LastText();
    const Statistics now = to.a.Stats();
    EXPECT_EQ(now.reserved_bytes[0].current, 0);
    EXPECT_EQ(now.allocated_bytes[0].current, 0);
    EXPECT_EQ(now.blocks_pending, 0U);
    EXPECT_EQ(now.double_frees + now.foreign_pointers + now.releases_refused, 0U);
    EXPECT_TRUE(to.a.misuse.empty());
    launches += to.launches;
    restored += to.restored;
    uses += to.uses;
    captured += now.uses_captured;
  }
  EXPECT_GT(launches, 10 * count) << "or little was tested";
  EXPECT_GT(captured, 10 * count);
  EXPECT_GT(restored, 2 * count);
  EXPECT_GT(uses, 20 * count);
}

INSTANTIATE_TEST_SUITE_P(All, CapturesStress, testing::Range(std::size_t{0}, Cases().size()),
                         [](const testing::TestParamInfo<std::size_t>& chosen) { return Cases()[chosen.param].name; });

}  // namespace
}  // namespace cuaudit::alloc::captures_stress_test
