// SPDX-License-Identifier: MIT
// record_use_d12_same_handle.cc: two streams that are called by one handle.
//
// Story   D12: "the own stream" is decided by comparing handles. A new stream may have the handle of one that was destroyed, and the
//         default stream of each thread has the same one: a use on it is then taken for the owner's, does nothing, and the reader is
//         forgotten. The driver's number of a stream is never given out twice. Here two threads' default streams, which need no luck to
//         meet.
// Source  https://github.com/pytorch/pytorch/issues/181191, and https://github.com/rapidsai/rmm (streams by cuStreamGetId); written anew
//         from the facts.
#include <thread>

#include "suites/reducers/side_stream.h"

namespace cuaudit::reducers::record_use_d12_same_handle {
namespace {

const CUstream kOfThisThread = CU_STREAM_PER_THREAD;

// On a thread of its own, whose default stream waits for `ready`, then reads the block; `use` tells of it there.
template <typename Use>
CUresult ReadOnAnotherThread(DriverRef driver, const Streams& streams, CUdeviceptr block, CUevent ready, CUevent done, const Use& use) {
  CUcontext context = nullptr;
  CUAUDIT_STEP(driver.CtxGetCurrent(&context));
  CUresult code = CUDA_SUCCESS;
  std::thread([&] {
    code = driver.CtxPushCurrent(context);
    if (code != CUDA_SUCCESS) return;
    code = driver.StreamWaitEvent(kOfThisThread, ready, 0);
    if (code == CUDA_SUCCESS) code = streams.Read(driver, block, kOfThisThread);
    if (code == CUDA_SUCCESS) code = driver.EventRecord(done, kOfThisThread);
    if (code == CUDA_SUCCESS) code = use();
    CUcontext popped = nullptr;
    const CUresult left = driver.CtxPopCurrent(&popped);
    if (left != CUDA_SUCCESS) (void)driver.CtxPopCurrent(&popped);
    code = First(code, left);
  }).join();
  return code;
}

enum class SameBy { Handle, Number };

template <SameBy same>
struct Pooled : WithPool {
  CUevent ready = nullptr;
  CUevent done = nullptr;
  CUresult Init(DriverRef driver) {
    CUAUDIT_STEP(WithPool::Init(driver));
    CUAUDIT_STEP(driver.EventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    return driver.EventCreate(&done, CU_EVENT_DISABLE_TIMING);
  }
  CUresult Identify(DriverRef driver, unsigned long long* identity) const {
    *identity = reinterpret_cast<std::uintptr_t>(kOfThisThread);
    return same == SameBy::Handle ? CUDA_SUCCESS : driver.StreamGetId(kOfThisThread, identity);
  }
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    unsigned long long owner = 0;
    CUAUDIT_STEP(Identify(driver, &owner));
    CUAUDIT_STEP(streams.Write(driver, block, kOfThisThread));
    CUAUDIT_STEP(driver.EventRecord(ready, kOfThisThread));
    unsigned long long user = 0;
    CUAUDIT_STEP(ReadOnAnotherThread(driver, streams, block, ready, done, [&] { return Identify(driver, &user); }));
    if (user != owner) CUAUDIT_STEP(driver.StreamWaitEvent(kOfThisThread, done, 0));
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, kOfThisThread));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = driver.StreamSynchronize(kOfThisThread);
    if (done != nullptr) {  // the other thread's read, for which this thread's stream need not have waited
      const CUresult waited = driver.EventSynchronize(done);
      if (waited != CUDA_SUCCESS) (void)driver.EventSynchronize(done);
      code = First(code, waited);
    }
    for (CUevent* one : {&ready, &done}) {
      if (*one != nullptr) code = First(code, driver.EventDestroy(std::exchange(*one, nullptr)));
    }
    return First(code, WithPool::Teardown(driver));
  }
};

struct OurAllocator : WithAllocator {
  CUevent ready = nullptr;
  CUevent done = nullptr;
  CUresult Init(DriverRef driver) {
    CUAUDIT_STEP(driver.EventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    CUAUDIT_STEP(driver.EventCreate(&done, CU_EVENT_DISABLE_TIMING));
    return WithAllocator::Init(driver);
  }
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, kOfThisThread, &block));
      CUAUDIT_STEP(streams.Write(driver, block, kOfThisThread));
      CUAUDIT_STEP(driver.EventRecord(ready, kOfThisThread));
      CUAUDIT_STEP(
          ReadOnAnotherThread(driver, streams, block, ready, done, [&] { return allocator->RecordUse(block, CU_STREAM_PER_THREAD); }));
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = driver.StreamSynchronize(kOfThisThread);
    if (code != CUDA_SUCCESS) (void)driver.StreamSynchronize(kOfThisThread);
    code = First(code, WithAllocator::Teardown(driver));
    for (CUevent* one : {&ready, &done}) {
      if (*one != nullptr) code = First(code, driver.EventDestroy(std::exchange(*one, nullptr)));
    }
    return code;
  }
};

TEST(RecordUseD12, AnotherThreadsDefaultStreamIsTakenForTheOwn) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Pooled<SameBy::Handle>>("record_use_d12"), "unordered_access device_memory");
}

TEST(RecordUseD12, StreamsByTheirNumberAreSilent) { ExpectSilent(OnPool<Pooled<SameBy::Number>>("record_use_d12_right")); }

TEST(RecordUseD12, OursTellsThemApart) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d12_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d12_same_handle
