// SPDX-License-Identifier: MIT
// libcuaudit_allocator.so as PyTorch uses it: loaded by path, functions found by name, on whatever libcuda.so.1 the process gets (here the
// drop-in with the simulated driver).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "allocator/plugin/process_driver.h"

namespace cuaudit::alloc::plugin_test {
namespace {

using MempoolId = std::pair<unsigned long long, unsigned long long>;

template <class Function>
Function* Find(const char* name) {
  static void* const library = dlopen(CUAUDIT_ALLOCATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  EXPECT_NE(found, nullptr) << name;
  return found;
}

// The types are PyTorch's, written out here once more.
class Plugin : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static driver::GenuineDriver opened;
    const char* const wrong = OpenProcessDriver(&opened);
    ASSERT_EQ(wrong, nullptr) << wrong;
    driver_ = driver::Driver(&opened);
    ASSERT_EQ(driver_.Init(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(driver_.DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver_.CtxSetCurrent(context), CUDA_SUCCESS);
    for (CUstream& stream : stream_) ASSERT_EQ(driver_.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  long long Count(const char* name) const {
    long long value = -1;
    EXPECT_EQ(statistic(0, name, &value), 0) << name << ": " << last_error();
    return value;
  }

  static driver::DriverRef driver_;
  static CUstream stream_[2];
  void* (*allocate)(ssize_t, int, CUstream) = Find<void*(ssize_t, int, CUstream)>("cuaudit_malloc");
  void (*release)(void*, ssize_t, int, CUstream) = Find<void(void*, ssize_t, int, CUstream)>("cuaudit_free");
  void (*record_stream)(void*, CUstream) = Find<void(void*, CUstream)>("cuaudit_record_stream");
  int (*record_use)(void*, CUstream) = Find<int(void*, CUstream)>("cuaudit_record_use");
  void (*initialise)(int) = Find<void(int)>("cuaudit_init");
  void (*reset)() = Find<void()>("cuaudit_reset");
  void (*memory_fraction)(double, int) = Find<void(double, int)>("cuaudit_memory_fraction");
  void* (*base_alloc)(void*, std::size_t*) = Find<void*(void*, std::size_t*)>("cuaudit_base_alloc");
  void (*begin_pool)(int, MempoolId, std::function<bool(CUstream)>) =
      Find<void(int, MempoolId, std::function<bool(CUstream)>)>("cuaudit_begin_allocate_to_pool");
  void (*end_pool)(int, MempoolId) = Find<void(int, MempoolId)>("cuaudit_end_allocate_to_pool");
  void (*release_pool)(int, MempoolId) = Find<void(int, MempoolId)>("cuaudit_release_pool");
  int (*statistic)(int, const char*, long long*) = Find<int(int, const char*, long long*)>("cuaudit_statistic");
  int (*snapshot)(const char*) = Find<int(const char*)>("cuaudit_snapshot");
  const char* (*last_error)() = Find<const char*()>("cuaudit_last_error");
};
driver::DriverRef Plugin::driver_;
CUstream Plugin::stream_[2];

TEST_F(Plugin, AllocatesCountsAndGivesBack) {
  initialise(1);
  EXPECT_EQ(allocate(0, 0, stream_[0]), nullptr);
  void* const block = allocate(1000, 0, stream_[0]);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(Count("requested_bytes.all.current"), 1000);
  EXPECT_EQ(Count("allocated_bytes.small_pool.current"), 1024);
  EXPECT_EQ(driver_.MemsetD8Async(reinterpret_cast<CUdeviceptr>(block), 1, 1000, stream_[0]), CUDA_SUCCESS);
  std::size_t size = 0;
  EXPECT_EQ(base_alloc(static_cast<char*>(block) + 100, &size), block);
  EXPECT_GE(size, 1000U);
  EXPECT_EQ(base_alloc(&size, &size), nullptr);
  release(block, 1000, 0, stream_[0]);
  EXPECT_EQ(Count("allocation.all.current"), 0);
  EXPECT_EQ(Count("allocation.all.freed"), 1);
  reset();
  EXPECT_EQ(Count("reserved_bytes.all.current"), 0);
}

TEST_F(Plugin, UsesOfOtherStreamsAreKnown) {
  void* const block = allocate(4096, 0, stream_[0]);
  const long long before = Count("uses_recorded");
  EXPECT_EQ(record_use(block, stream_[1]), 0);
  EXPECT_EQ(record_use(static_cast<char*>(block) + 8, stream_[1]), 0) << "views count";
  EXPECT_GT(Count("uses_recorded"), before);
  record_stream(block, stream_[1]);
  release(block, 4096, 0, stream_[0]);
  EXPECT_EQ(record_use(block, stream_[1]), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(last_error(), testing::HasSubstr("in no live block"));
  EXPECT_EQ(record_use(nullptr, stream_[1]), 0);
  int outside = 0;
  EXPECT_EQ(record_use(&outside, stream_[1]), CUDA_ERROR_INVALID_VALUE);
  record_stream(&outside, stream_[1]);  // as PyTorch: nothing
}

TEST_F(Plugin, AllocatesWithoutExceptions) {
  auto* const get = Find<int(std::size_t, int, CUstream, void**)>("cuaudit_allocate");
  auto* const check = Find<int()>("cuaudit_check_settings");
  EXPECT_EQ(check(), CUDA_SUCCESS);
  void* block = nullptr;
  ASSERT_EQ(get(1000, 0, stream_[0], &block), CUDA_SUCCESS) << last_error();
  EXPECT_EQ(base_alloc(block, nullptr), block);
  release(block, 1000, 0, stream_[0]);
  block = &block;
  EXPECT_EQ(get(std::size_t{1} << 50, 0, stream_[0], &block), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(block, nullptr);
  EXPECT_THAT(last_error(), testing::HasSubstr("out of memory on device 0: 1.00 PiB asked for"));
  EXPECT_NE(get(8, 63, stream_[0], &block), CUDA_SUCCESS) << "no such device";
  EXPECT_NE(get(8, -1, stream_[0], &block), CUDA_SUCCESS);
  EXPECT_THAT(last_error(), testing::HasSubstr("0 to 63 expected"));
  EXPECT_EQ(get(8, 0, stream_[0], nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Count("allocation.all.current"), 0);
}

TEST_F(Plugin, RunningOutThrowsTheWholeAccount) {
  void* const held = allocate(1 << 20, 0, stream_[0]);
  try {
    (void)allocate(ssize_t{1} << 50, 0, stream_[0]);
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& error) {
    for (const char* part : {"cuaudit_malloc: out of memory on device 0: 1.00 PiB asked for", "free of", "allocated", "served by"}) {
      EXPECT_THAT(error.what(), testing::HasSubstr(part));
    }
  }
  EXPECT_THROW((void)allocate(-1, 0, stream_[0]), std::runtime_error) << "negative after conversion";
  EXPECT_THROW((void)allocate(8, 63, stream_[0]), std::runtime_error) << "no such device";
  EXPECT_THROW((void)allocate(8, -1, stream_[0]), std::runtime_error);
  release(held, 1 << 20, 0, stream_[0]);
  EXPECT_EQ(Count("allocation.all.current"), 0);
  release(&initialise, 8, 0, stream_[0]);
  EXPECT_EQ(Count("foreign_pointers"), 1);
  long long value = 0;
  EXPECT_EQ(statistic(0, "no_such_counter", &value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(last_error(), testing::HasSubstr("no_such_counter"));
}

TEST_F(Plugin, PoolsFollowPyTorchsCounting) {
  const MempoolId id = {0, 7};
  reset();
  const CUstream in = stream_[0];
  begin_pool(0, id, [in](CUstream stream) { return stream == in; });
  void* const inside = allocate(4096, 0, stream_[0]);
  void* const outside = allocate(4096, 0, stream_[1]);
  end_pool(0, id);
  EXPECT_EQ(Count("segment.all.current"), 2) << "one of the pool, one of everybody";
  begin_pool(0, id, nullptr);
  void* const again = allocate(4096, 0, stream_[0]);
  end_pool(0, id);
  EXPECT_EQ(Count("segment.all.current"), 2) << "the same pool";
  for (void* const block : {inside, outside, again}) release(block, 4096, 0, nullptr);
  release_pool(0, id);
  release_pool(0, id);
  release_pool(0, id);
  EXPECT_STRNE(last_error(), "") << "once more than it was begun";
  reset();
  EXPECT_EQ(Count("segment.all.current"), 0) << "a pool without users gives all back";
}

// Tells whether a filter that the plug-in was given still exists.
struct Filter {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  CUstream wanted = nullptr;
  bool operator()(CUstream stream) const {
    ++*calls;
    return stream == wanted;
  }
};

// While allocations are directed to a pool its last use stays, and with it the filter that each allocation asks.
TEST_F(Plugin, APoolReleasedTooEarlyKeepsItsFilter) {
  const MempoolId id = {0, 11};
  reset();
  std::weak_ptr<int> alive;
  {
    const Filter filter{.wanted = stream_[0]};
    alive = filter.calls;
    begin_pool(0, id, filter);
  }
  ASSERT_FALSE(alive.expired());
  release_pool(0, id);
  ASSERT_FALSE(alive.expired()) << "the native pool refused: it is still asked";
  const int before = *alive.lock();
  void* const inside = allocate(4096, 0, stream_[0]);
  EXPECT_GT(*alive.lock(), before);
  end_pool(0, id);
  EXPECT_TRUE(alive.expired()) << "nobody asks it any more";
  release(inside, 4096, 0, stream_[0]);
  release_pool(0, id);
  reset();
  EXPECT_EQ(Count("segment.all.current"), 0) << "the release that was refused can be made again";
}

TEST_F(Plugin, ARefusedBeginLeavesTheFilterThatIsInUse) {
  const MempoolId id = {0, 12};
  reset();
  const Filter first{.wanted = stream_[0]};
  const Filter second{.wanted = stream_[1]};
  begin_pool(0, id, first);
  begin_pool(0, id, second);
  EXPECT_STRNE(last_error(), "");
  void* const inside = allocate(4096, 0, stream_[0]);
  EXPECT_GT(*first.calls, 0);
  EXPECT_EQ(*second.calls, 0) << "its begin was refused";
  release(inside, 4096, 0, stream_[0]);
  end_pool(0, id);
  release_pool(0, id);
  release_pool(0, id);
  EXPECT_STRNE(last_error(), "") << "one use, since one begin was refused";
  reset();
  EXPECT_EQ(Count("segment.all.current"), 0);
}

// A filter of PyTorch's may run Python, which may allocate: no lock of the allocator is held then.
TEST_F(Plugin, AFilterMayAllocate) {
  const MempoolId id = {0, 13};
  reset();
  int asked = 0;
  begin_pool(0, id, [&](CUstream stream) {
    ++asked;
    void* const scratch = allocate(2048, 0, stream_[1]);
    release(scratch, 2048, 0, stream_[1]);
    return stream == stream_[0];
  });
  void* const inside = allocate(4096, 0, stream_[0]);
  EXPECT_EQ(asked, 1) << "what a filter allocates is not asked about";
  end_pool(0, id);
  release(inside, 4096, 0, stream_[0]);
  release_pool(0, id);
  reset();
  EXPECT_EQ(Count("segment.all.current"), 0);
}

// As torch.cuda.graph does: on a stream that was never used, into a pool whose filter asks the driver for the capture.
TEST_F(Plugin, ACaptureOnAnUnknownStreamGoesToItsPool) {
  const MempoolId id = {0, 9};
  reset();
  for (int round = 0; round < 2; ++round) {
    CUstream fresh = nullptr;
    ASSERT_EQ(driver_.StreamCreate(&fresh, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    begin_pool(0, id, [](CUstream stream) {
      CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
      return driver_.StreamIsCapturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    });
    ASSERT_EQ(driver_.StreamBeginCapture(fresh, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    void* const temporary = allocate(4 << 20, 0, fresh);
    void* const result = allocate(4 << 20, 0, fresh);
    EXPECT_EQ(driver_.MemsetD8Async(reinterpret_cast<CUdeviceptr>(temporary), 1, 4 << 20, fresh), CUDA_SUCCESS);
    record_stream(temporary, fresh);
    release(temporary, 4 << 20, 0, fresh);
    void* const again = allocate(4 << 20, 0, fresh);
    EXPECT_EQ(again, temporary) << "within the capture";
    void* const outside = allocate(4 << 20, 0, stream_[0]);
    CUgraph graph = nullptr;
    EXPECT_EQ(driver_.StreamEndCapture(fresh, &graph), CUDA_SUCCESS) << "nothing invalidated it";
    end_pool(0, id);
    if (graph != nullptr) {
      EXPECT_EQ(driver_.GraphDestroy(graph), CUDA_SUCCESS);
    }
    for (void* const block : {again, result, outside}) release(block, 4 << 20, 0, nullptr);
    EXPECT_EQ(driver_.StreamDestroy(fresh), CUDA_SUCCESS);
  }
  for (int round = 0; round < 2; ++round) release_pool(0, id);
  reset();
  EXPECT_EQ(Count("segment.all.current"), 0);
}

TEST_F(Plugin, SnapshotOpens) {
  void* const block = allocate(3 << 20, 0, stream_[0]);
  void* const freed = allocate(3000, 0, stream_[0]);
  EXPECT_EQ(record_use(freed, stream_[1]), 0);
  release(freed, 3000, 0, stream_[0]);
  const std::string path = testing::TempDir() + "cuaudit_snapshot_" + std::to_string(::getpid());
  ASSERT_EQ(snapshot(path.c_str()), 0) << last_error();
  EXPECT_EQ(std::system((std::string(CUAUDIT_PYTHON) + " " + CUAUDIT_READ_SNAPSHOT + " " + path).c_str()), 0);
  EXPECT_EQ(std::remove(path.c_str()), 0);
  EXPECT_NE(snapshot("/no/such/directory/snapshot"), 0);
  EXPECT_THAT(last_error(), testing::HasSubstr("No such file or directory"));
  release(block, 3 << 20, 0, stream_[0]);
}

TEST_F(Plugin, AFractionLimitsWhatIsReserved) {
  void* const woken = allocate(8, 0, stream_[0]);
  release(woken, 8, 0, stream_[0]);
  memory_fraction(1e-9, 0);
  reset();
  try {
    (void)allocate(64 << 20, 0, stream_[0]);
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("for this process"));
  }
  memory_fraction(1.0, 0);
  void* const block = allocate(64 << 20, 0, stream_[0]);
  release(block, 64 << 20, 0, stream_[0]);
}

// In a process of its own: settings are read once.
TEST(PluginDeathTest, WrongSettingsAreOneClearError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("CUAUDIT_ALLOC_CONF", "policy:never", 1);
        try {
          (void)Find<void*(ssize_t, int, CUstream)>("cuaudit_malloc")(8, 0, nullptr);
        } catch (const std::runtime_error& error) {
          std::fprintf(stderr, "%s\n", error.what());
          std::_Exit(7);
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(7),
      "cuaudit_malloc: CUAUDIT_ALLOC_CONF: allocator settings: policy: 'never' at character 8, expected poll or wait");
}

}  // namespace
}  // namespace cuaudit::alloc::plugin_test
