// SPDX-License-Identifier: MIT
// record_use_d8_threads.cc: one thread tells of a use while another one frees the block.
//
// Story   D8: record_use and free are called from any threads. Where free looks at the uses, lets go of the lock and gives the block back
//         then, a use that is told of in between is kept with a block that somebody else has already. The turn-taking here makes that one
//         interleaving happen every time.
// Source  https://github.com/pytorch/pytorch/issues/181191, rules 6 and 8 of its third version; written anew from the facts.
#include <thread>

#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d8_threads {
namespace {

// Runs `step` on a thread of its own, with the context current, and waits for it.
template <typename Step>
CUresult OnAnotherThread(DriverRef driver, Step step) {
  CUcontext context = nullptr;
  CUAUDIT_STEP(driver.CtxGetCurrent(&context));
  CUresult code = CUDA_SUCCESS;
  std::thread([&] {
    code = driver.CtxPushCurrent(context);
    if (code != CUDA_SUCCESS) return;
    code = step();
    CUcontext popped = nullptr;
    const CUresult left = driver.CtxPopCurrent(&popped);
    if (left != CUDA_SUCCESS) (void)driver.CtxPopCurrent(&popped);
    code = First(code, left);
  }).join();
  return code;
}

template <bool looks_at_uses_last>
struct Pooled : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    std::vector<CUstream> uses;
    const std::vector<CUstream> seen = uses;  // free, first half
    CUAUDIT_STEP(OnAnotherThread(driver, [&] {
      uses.push_back(streams.side);  // record_use of the reader
      return CUDA_SUCCESS;
    }));
    for (CUstream stream : looks_at_uses_last ? uses : seen) CUAUDIT_STEP(Order(driver, stream, streams.owner));
    pool.Free(block);  // free, second half
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
};

// Read and told of on one thread, dropped on another.
struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      const CUresult used = OnAnotherThread(driver, [&] {
        CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
        CUAUDIT_STEP(streams.Read(driver, block, streams.side));
        return allocator->RecordUse(block, streams.side);
      });
      CUAUDIT_STEP(used);
      CUresult dropped = CUDA_SUCCESS;
      std::thread([&] { dropped = Drop(block); }).join();
      CUAUDIT_STEP(dropped);
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD8, AUseThatIsToldOfInTheMiddleOfAFreeIsLost) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Pooled<false>>("record_use_d8"), "unordered_access device_memory");
}

TEST(RecordUseD8, AFreeThatLooksLastIsSilent) { ExpectSilent(OnPool<Pooled<true>>("record_use_d8_right")); }

TEST(RecordUseD8, AnyThreadMayTellAndAnyMayDrop) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d8_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d8_threads
