// SPDX-License-Identifier: MIT
// side_stream.h: memory that belongs to one stream and is read on another, once with a pool and the five steps, once with cuaudit's
// allocator.
//
// Owns the streams, the pool or the allocator, and the pinned bytes that readers copy to. Needs a current context. Steps return the
// driver's first error. Teardown goes on after an error, and also follows a failed Init and a failed Work.
// The pool is the plainest there is. It knows nothing of streams, so its user must order the work, as the five steps do. It owns its
// segments, each cut into blocks of one size; the block that was freed last is handed out first. A pool that failed to grow hands out
// nothing and stays as it was. It reports its blocks (cuaudit/block.h), so that their misuse can be judged.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "cuaudit/block.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers {

class SmallPool {
 public:
  static constexpr std::size_t kBlock = 4096;

  void Open(DriverRef driver, std::size_t blocks_in_segment) {
    driver_ = driver;
    blocks_ = blocks_in_segment;
  }
  CUresult Allocate(CUdeviceptr* out) {
    if (free_.empty()) {
      CUdeviceptr segment = 0;
      const CUresult code = driver_.MemAlloc(&segment, blocks_ * kBlock);
      if (code != CUDA_SUCCESS) return code;
      segments_.push_back(segment);
      for (std::size_t i = blocks_; i > 0; --i) free_.push_back(segment + (i - 1) * kBlock);
    }
    *out = free_.back();
    free_.pop_back();
    out_.push_back(*out);
    BlockOut(driver_, *out, kBlock);
    return CUDA_SUCCESS;
  }
  void Free(CUdeviceptr block) {
    if (std::erase(out_, block) == 0) return;
    BlockBack(driver_, block);
    free_.push_back(block);
  }
  // For tools that believe what a pool says of a block: whether it is free. Of pending reads it knows nothing.
  bool IsFree(CUdeviceptr block) const { return std::find(free_.begin(), free_.end(), block) != free_.end(); }
  // All of it, what is still out included.
  CUresult Close() {
    CUresult first = CUDA_SUCCESS;
    while (!out_.empty()) Free(out_.back());
    free_.clear();
    for (const CUdeviceptr segment : std::exchange(segments_, {})) {
      const CUresult code = driver_.MemFree(segment);
      if (first == CUDA_SUCCESS) first = code;
    }
    return first;
  }

 private:
  DriverRef driver_;
  std::size_t blocks_ = 1;
  std::vector<CUdeviceptr> segments_, free_, out_;
};

}  // namespace cuaudit::reducers

// The first error ends the step.
#define CUAUDIT_STEP(call) \
  if (const CUresult code_of_step = (call); code_of_step != CUDA_SUCCESS) return code_of_step

namespace cuaudit::reducers {

// Why a test is skipped on a genuine driver: an access that nothing orders before the next owner's, memory given back under a queued
// access.
inline constexpr const char* kOrder = "no genuine driver tells which operations nothing orders: memory is spoiled, or is not, in silence";

inline CUresult First(CUresult one, CUresult two) { return one != CUDA_SUCCESS ? one : two; }

// A stream that owns memory, and two that use it, too.
struct Streams {
  static constexpr std::size_t kBytes = SmallPool::kBlock;  // of a block, that are written and read
  CUstream owner = nullptr;
  CUstream side = nullptr;
  CUstream other = nullptr;
  void* result = nullptr;  // pinned: what readers read

  CUresult Open(DriverRef driver) {
    for (CUstream* one : {&owner, &side, &other}) CUAUDIT_STEP(driver.StreamCreate(one, CU_STREAM_NON_BLOCKING));
    return driver.MemAllocHost(&result, 2 * kBytes);
  }
  // Each stream has come to its end, as far as the driver lets us wait.
  CUresult Settle(DriverRef driver) const {
    CUresult code = CUDA_SUCCESS;
    for (CUstream one : {owner, side, other}) {
      if (one == nullptr) continue;
      const CUresult waited = driver.StreamSynchronize(one);
      if (waited != CUDA_SUCCESS) (void)driver.StreamSynchronize(one);
      code = First(code, waited);
    }
    return code;
  }
  CUresult Close(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (CUstream* one : {&owner, &side, &other}) {
      if (*one != nullptr) code = First(code, driver.StreamDestroy(std::exchange(*one, nullptr)));
    }
    return result == nullptr ? code : First(code, driver.MemFreeHost(std::exchange(result, nullptr)));
  }

  CUresult Write(DriverRef driver, CUdeviceptr block, CUstream stream) const { return driver.MemsetD8Async(block, 1, kBytes, stream); }
  CUresult Read(DriverRef driver, CUdeviceptr block, CUstream stream) const {
    return driver.MemcpyDtoHAsync(static_cast<char*>(result) + (stream == other ? kBytes : 0), block, kBytes, stream);
  }
};

// `after`'s work from here on comes behind `before`'s until here.
inline CUresult Order(DriverRef driver, CUstream before, CUstream after) {
  CUevent event = nullptr;
  CUAUDIT_STEP(driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUresult code = driver.EventRecord(event, before);
  if (code == CUDA_SUCCESS) code = driver.StreamWaitEvent(after, event, 0);
  return First(code, driver.EventDestroy(event));
}

// With the pool that knows nothing of streams.
struct WithPool {
  explicit WithPool(std::size_t blocks_in_segment = 8) : blocks(blocks_in_segment) {}
  std::size_t blocks;
  Streams streams;
  SmallPool pool;

  CUresult Init(DriverRef driver) {
    pool.Open(driver, blocks);
    return streams.Open(driver);
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = streams.Settle(driver);
    code = First(code, pool.Close());
    return First(code, streams.Close(driver));
  }
};

// With our allocator, which tells of its blocks, too.
struct WithAllocator {
  // A block of this size has a segment of its own, so the next one is that memory again, or has to wait for new.
  static constexpr std::size_t kLarge = std::size_t{12} << 20;
  static alloc::Options Waiting() { return {.reuse = alloc::Reuse::Wait}; }
  explicit WithAllocator(const alloc::Options& chosen = Waiting()) : options(chosen) {}
  alloc::Options options;
  DriverRef audited;
  Streams streams;
  std::unique_ptr<alloc::Allocator> allocator;
  std::vector<CUdeviceptr> held;

  CUresult Init(DriverRef driver) {
    audited = driver;
    CUAUDIT_STEP(streams.Open(driver));
    const alloc::DeviceConfig device;
    CUAUDIT_STEP(alloc::Allocator::Create(driver, &device, 1, options, &allocator));
    alloc::Tracer tracer;
    tracer.self = this;
    tracer.record = &Tell;
    allocator->SetTracer(tracer);
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = streams.Settle(driver);
    while (!held.empty()) code = First(code, Drop(held.back()));
    if (allocator != nullptr) {
      const CUresult closed = allocator->Close();
      if (closed != CUDA_SUCCESS) (void)allocator->Close();
      code = First(code, closed);
    }
    allocator.reset();
    return First(code, streams.Close(driver));
  }

  CUresult Get(std::size_t bytes, CUstream stream, CUdeviceptr* out) {
    CUAUDIT_STEP(allocator->Allocate(0, bytes, stream, out));
    held.push_back(*out);
    return CUDA_SUCCESS;
  }
  CUresult Drop(CUdeviceptr block) {
    std::erase(held, block);
    return allocator->Free(block);
  }

 private:
  static void Tell(void* self, const alloc::TraceEvent& event) noexcept {
    const DriverRef driver = static_cast<WithAllocator*>(self)->audited;
    if (event.action == alloc::TraceAction::Alloc) BlockOut(driver, event.address, event.size);
    if (event.action == alloc::TraceAction::FreeRequested) BlockBack(driver, event.address);
  }
};

// What is wrong in clean cycles: "unordered_access device_memory". Each misuse once, however often.
template <typename State>
std::string Wrong(const char* name) {
  return Lost(RunCycles(Lifecycle::Of<State>(name).WithCurrentContext(), {.warm_up = 1, .cycles = 1}));
}

template <typename State>
Lifecycle OnPool(const char* name) {
  return Lifecycle::Of<State>(name).WithCurrentContext().TeardownAfterFailedInit();
}
template <typename State>
Lifecycle OnAllocator(const char* name) {
  return OnPool<State>(name);
}

// Whether a cycle does with that many calls (of "cuMemAlloc": segments): the next one is refused, and all after it.
inline bool FitsInto(int calls, Lifecycle lifecycle, const std::string& call = "cuMemAlloc") {
  const std::string next = call + "#" + std::to_string(calls + 1);
  const Audit audit = Replay(lifecycle.Benign(next), {next + "=OUT_OF_MEMORY,persist"});
  const bool is_enough = audit.fired == 0;
  EXPECT_EQ(audit.outcome, is_enough ? AuditOutcome::NotExercised : AuditOutcome::Findings) << audit.Text();
  EXPECT_GT(audit.calls, 0U) << "nothing ran";
  EXPECT_EQ(is_enough ? "" : Lost(audit), is_enough ? "" : "benign_not_absorbed");
  return is_enough;
}

// Clean cycles, and every call that fails once; second faults are swept in suites/lifecycle/allocator_test.cc.
inline void ExpectSilentOnce(const Lifecycle& repaired) {
  EXPECT_ALLOCATION_NEUTRAL(repaired, {.warm_up = 1, .cycles = 3});
  const Audit audit = gtest::Swept(repaired, {.depth = 1});
  EXPECT_TRUE(audit.findings.empty() && audit.fired != 0 && audit.fired == audit.trials) << audit.Text();
}

// The form that uses our allocator: it is silent, and one segment is enough for it.
template <typename State>
void ExpectSilentInOneSegment(const char* name) {
  const Lifecycle lifecycle = OnAllocator<State>(name);
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
}

}  // namespace cuaudit::reducers
