// SPDX-License-Identifier: MIT
// Each request of the allocator for host memory fails in turn, alone and with all behind it in the same call: the call says so, nothing
// throws out of it, nothing is lost or given out too early, and the allocator serves afterwards.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "suites/unit/allocator/allocating.h"

namespace {

// Of this thread, while a call of the allocator is under way.
struct HostMemory {
  bool is_armed = false;
  bool fails_on = false;  // every one behind the first that failed, until the call is over
  std::uint64_t until = 0;
  std::uint64_t asked = 0;
  bool has_failed = false;

  bool Refuses() {
    if (!is_armed) return false;
    const bool refuses = ++asked == until || (fails_on && has_failed && asked > until);
    has_failed = has_failed || refuses;
    return refuses;
  }
};
HostMemory host;
bool refuses_to_wipe = false;  // madvise, as kernels before 4.14 and some sandboxes do

}  // namespace

// Link-time names of what the allocator's host memory comes from (--wrap).
extern "C" {
void* __real_malloc(std::size_t bytes);
void* __real_calloc(std::size_t count, std::size_t bytes);
void* __wrap_malloc(std::size_t bytes);
void* __wrap_calloc(std::size_t count, std::size_t bytes);
void* __wrap_malloc(std::size_t bytes) { return host.Refuses() ? nullptr : __real_malloc(bytes); }
void* __wrap_calloc(std::size_t count, std::size_t bytes) { return host.Refuses() ? nullptr : __real_calloc(count, bytes); }
int __real_madvise(void* address, std::size_t bytes, int advice);
int __wrap_madvise(void* address, std::size_t bytes, int advice);
int __wrap_madvise(void* address, std::size_t bytes, int advice) {
  if (!refuses_to_wipe || advice != MADV_WIPEONFORK) return __real_madvise(address, bytes, advice);
  errno = EINVAL;
  return -1;
}
}

namespace {
void* Get(std::size_t bytes, std::size_t alignment) noexcept {
  return host.Refuses() ? nullptr : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* GetOrThrow(std::size_t bytes, std::size_t alignment) {
  void* const memory = Get(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Out of line: inlined, GCC takes the free for one of memory that operator new gave out.
[[gnu::noinline]] void GiveBack(void* memory) noexcept { std::free(memory); }
constexpr std::size_t kUsual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}  // namespace

void* operator new(std::size_t bytes) { return GetOrThrow(bytes, kUsual); }
void* operator new[](std::size_t bytes) { return GetOrThrow(bytes, kUsual); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return Get(bytes, kUsual); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return Get(bytes, kUsual); }
void* operator new(std::size_t bytes, std::align_val_t to) { return GetOrThrow(bytes, static_cast<std::size_t>(to)); }
void* operator new(std::size_t bytes, std::align_val_t to, const std::nothrow_t&) noexcept {
  return Get(bytes, static_cast<std::size_t>(to));
}
void operator delete(void* memory) noexcept { GiveBack(memory); }
void operator delete[](void* memory) noexcept { GiveBack(memory); }
void operator delete(void* memory, std::size_t) noexcept { GiveBack(memory); }
void operator delete[](void* memory, std::size_t) noexcept { GiveBack(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { GiveBack(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { GiveBack(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { GiveBack(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { GiveBack(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { GiveBack(memory); }

namespace cuaudit::alloc {
namespace {

class Life {
 public:
  explicit Life(const Options& options) : options_(options), a_({}, {.device_bytes = 512 * kMiB}) {
    for (CUstream& stream : s_) stream = a_.Stream();
    EXPECT_OK(a_.d.EventCreate(&event_, CU_EVENT_DISABLE_TIMING));
  }
  ~Life() { EXPECT_OK(a_.d.EventDestroy(event_)); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  void Run() {
    const DeviceConfig device{0, nullptr};
    if (!Try("Create", [&] { return Allocator::Create(a_.d, &device, 1, options_, &subject_); })) {
      EXPECT_EQ(subject_, nullptr);
      return;
    }
    SplitAndUse();
    Capture();
    Checkpoints();
    LookOn();
    (void)Try("RetireStream", [&] { return subject_->RetireStream(0, s_[1]); });
    (void)Try("EmptyCache", [&] { return subject_->EmptyCache(); });
    ServesAfterwards();
    (void)Try("Close", [&] { return subject_->Close(); });
    EXPECT_OK(subject_->Close()) << subject_->LastErrorText();
    subject_.reset();
  }
  std::size_t misuses() const { return a_.misuse.size(); }

 private:
  template <typename Call>
  bool Try(const char* what, const Call& call) {
    const bool had_failed = host.has_failed;
    host.is_armed = true;
    const CUresult result = call();
    host.is_armed = false;
    host.fails_on = host.fails_on && !host.has_failed;
    const bool fails_here = host.has_failed && !had_failed;
    if (result != CUDA_SUCCESS && !(fails_here && result == CUDA_ERROR_OUT_OF_MEMORY))
      ADD_FAILURE() << what << " answers " << result << (fails_here ? "" : " though host memory was there") << ": "
                    << (subject_ == nullptr ? "" : subject_->LastErrorText());
    return result == CUDA_SUCCESS;
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    (void)Try("Allocate", [&] { return subject_->Allocate(0, bytes, stream, &address); });
    if (address != 0) a_.Write(address, bytes, stream);
    return address;
  }
  void Free(CUdeviceptr address) {
    (void)Try("Free", [&] { return subject_->Free(address); });
  }
  // Outside captures. Who cannot say that he uses a block waits.
  template <typename Tell>
  void Use(CUdeviceptr address, CUstream owner, CUstream user, const Tell& tell) {
    if (address == 0) return;
    a_.Order(owner, user);
    a_.Write(address, 512, user);
    EXPECT_OK(a_.d.EventRecord(event_, user));
    const bool is_told = Try("a use", [&] { return tell(user); });
    if (!is_told) {
      EXPECT_OK(a_.d.StreamSynchronize(user));
    }
  }
  void SplitAndUse() {
    CUdeviceptr block[6] = {};
    for (int turn = 0; turn < 2; ++turn) {
      for (std::size_t i = 0; i < std::size(block); ++i) block[i] = Get(i % 2 == 0 ? 2 * kMiB + i * kMiB : std::size_t{512} << i, s_[0]);
      // More streams than a block has slots, and than its list of uses has room for in itself.
      for (std::size_t i = 1; i < std::size(s_); ++i)
        Use(block[0], s_[i - 1], s_[i], [&](CUstream user) { return subject_->RecordUse(block[0], user); });
      Use(block[2], s_[0], s_[2], [&](CUstream) { return subject_->KeepAliveUntil(block[2], event_); });
      // What this promises is recorded with the free.
      if (block[4] != 0 && Try("RecordStream", [&] { return subject_->RecordStream(block[4], s_[3]); })) {
        a_.Order(s_[0], s_[3]);
        a_.Write(block[4], 512, s_[3]);
      }
      for (const CUdeviceptr one : block) Free(one);
    }
    CUdeviceptr const other = Get(3 * kMiB, s_[1]);
    Free(other);
  }
  void Capture() {
    PoolId pool;
    if (!Try("CreatePool", [&] { return subject_->CreatePool({}, &pool); })) return;
    if (Try("BeginAllocateToPool", [&] { return subject_->BeginAllocateToPool(0, pool, {}); })) {
      EXPECT_OK(a_.d.StreamBeginCapture(s_[4], CU_STREAM_CAPTURE_MODE_GLOBAL));
      CUdeviceptr block[3] = {};
      for (CUdeviceptr& one : block) one = Get(12 * kMiB, s_[4]);
      a_.Order(s_[4], s_[5]);
      if (block[0] != 0) {
        a_.Write(block[0], 512, s_[5]);
        if (Try("RecordUse in a capture", [&] { return subject_->RecordUse(block[0], s_[5]); })) Free(std::exchange(block[0], 0));
      }
      if (block[1] != 0) {
        a_.Write(block[1], 512, s_[5]);
        EXPECT_OK(a_.d.EventRecord(event_, s_[5]));
        if (Try("KeepAliveUntil in a capture", [&] { return subject_->KeepAliveUntil(block[1], event_); }))
          Free(std::exchange(block[1], 0));
      }
      a_.Order(s_[5], s_[4]);
      if (block[2] != 0) a_.Write(block[2], 512, s_[4]);
      const CUdeviceptr again = Get(12 * kMiB, s_[4]);  // what the graph orders before
      Free(again);
      CUgraph graph = nullptr;
      EXPECT_OK(a_.d.StreamEndCapture(s_[4], &graph));
      EXPECT_OK(a_.d.GraphDestroy(graph));
      EXPECT_TRUE(Try("EndAllocateToPool", [&] { return subject_->EndAllocateToPool(0, pool); }));
      EXPECT_TRUE(Try("ReleasePool", [&] { return subject_->ReleasePool(pool); }));
      for (const CUdeviceptr one : block) Free(one);
    }
    EXPECT_TRUE(Try("ReleasePool", [&] { return subject_->ReleasePool(pool); }));
  }
  void Checkpoints() {
    PoolId pool;
    if (!Try("CreatePool", [&] { return subject_->CreatePool({}, &pool); })) return;
    if (Try("BeginAllocateToPool", [&] { return subject_->BeginAllocateToPool(0, pool, {}); })) {
      const CUdeviceptr kept = Get(4 * kMiB, s_[0]);
      Checkpoint checkpoint;
      RestoreResult result;
      CUdeviceptr later = 0;
      if (Try("TakeCheckpoint", [&] { return subject_->TakeCheckpoint(0, pool, &checkpoint); })) {
        later = Get(2 * kMiB, s_[0]);
        if (Try("RestoreCheckpoint", [&] { return subject_->RestoreCheckpoint(checkpoint, &result); })) later = 0;
      }
      Free(kept);
      Free(later);
      EXPECT_TRUE(Try("EndAllocateToPool", [&] { return subject_->EndAllocateToPool(0, pool); }));
      EXPECT_TRUE(Try("ReleasePool", [&] { return subject_->ReleasePool(pool); }));
    }
    EXPECT_TRUE(Try("ReleasePool", [&] { return subject_->ReleasePool(pool); }));
  }
  void LookOn() {
    Snapshot snapshot;
    (void)Try("TakeSnapshot", [&] { return subject_->TakeSnapshot(&snapshot); });
    Statistics statistics;
    (void)Try("GetStatistics", [&] { return subject_->GetStatistics(0, &statistics), CUDA_SUCCESS; });
    EXPECT_EQ(statistics.allocation[0].current, 0);
    EXPECT_EQ(statistics.double_frees + statistics.foreign_pointers, 0U);
  }
  void ServesAfterwards() {
    for (CUstream const stream : {s_[0], s_[2], s_[4], s_[5]}) {
      CUdeviceptr address = 0;
      EXPECT_OK(subject_->Allocate(0, 2 * kMiB, stream, &address)) << subject_->LastErrorText();
      EXPECT_OK(subject_->RecordUse(address, s_[3])) << subject_->LastErrorText();
      EXPECT_OK(subject_->Free(address));
    }
    EXPECT_OK(subject_->EmptyCache()) << subject_->LastErrorText();
    Statistics statistics;
    subject_->GetStatistics(0, &statistics);
    EXPECT_EQ(statistics.reserved_bytes[0].current, 0);
    EXPECT_EQ(statistics.blocks_pending, 0U);
  }

  const Options options_;
  Allocating a_;
  std::unique_ptr<Allocator> subject_;
  CUstream s_[8] = {};
  CUevent event_ = nullptr;
};

struct Case {
  const char* name;
  Options options;
};
std::vector<Case> Cases() {
  std::vector<Case> cases = {{"Poll", {}}, {"Wait", {}}, {"Expandable", {}}, {"StreamWrites", {}}};
  cases[0].options.cross_stream = CrossStream::Ready;
  cases[1].options.reuse = Reuse::Wait;
  cases[1].options.cross_stream = CrossStream::Wait;
  cases[2].options.expandable_segments = true;
  cases[3].options.completion = Completion::StreamWrites;
  return cases;
}

class HostMemoryTest : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(HostMemoryTest, EachRequestFailsInTurn) {
  const Case chosen = Cases()[std::get<0>(GetParam())];
  bool is_through = false;
  std::uint64_t turn = 0;
  while (!is_through && !HasFailure()) {
    host = HostMemory{};
    host.until = ++turn;
    host.fails_on = std::get<1>(GetParam());
    SCOPED_TRACE("request " + std::to_string(turn));
    Life life(chosen.options);
    life.Run();
    EXPECT_EQ(life.misuses(), 0U);
    is_through = !host.has_failed;
    host = HostMemory{};
  }
  EXPECT_GT(turn, 60U) << "or little was tested";
}

INSTANTIATE_TEST_SUITE_P(All, HostMemoryTest, testing::Combine(testing::Range(std::size_t{0}, Cases().size()), testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<std::size_t, bool>>& chosen) {
                           return Cases()[std::get<0>(chosen.param)].name + std::string(std::get<1>(chosen.param) ? "Burst" : "Once");
                         });

// Where the kernel does not wipe a page for a forked child, the child finds the parent's number: then nothing takes the path that only
// compares numbers.
TEST(HostMemory, AChildIsKnownWhereNothingIsWiped) {
  refuses_to_wipe = true;
  Allocating a;
  refuses_to_wipe = false;
  const StreamRef ref = a.Ref(a.Stream());
  CUdeviceptr live = 0;
  CUdeviceptr cached = 0;
  ASSERT_OK(a->Allocate(64 * kKiB, ref, &live));
  ASSERT_OK(a->Allocate(64 * kKiB, ref, &cached));
  ASSERT_OK(a->Free(cached));
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr out = 1;
    int wrong = a->Allocate(64 * kKiB, ref, &out) == CUDA_ERROR_NOT_INITIALIZED && out == 0 ? 0 : 1;
    wrong |= a->Free(live) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 2;
    wrong |= a->RecordUse(live, ref) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 4;
    wrong |= a->Close() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 8;
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_OK(a->Free(live));
}

}  // namespace
}  // namespace cuaudit::alloc
