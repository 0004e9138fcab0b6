// SPDX-License-Identifier: MIT
// record_use_captures.cc: uses in a capture, in a tight loop and in a snapshot.
#include "suites/reducers/side_stream.h"

// Record_use on a stream that is being captured.
//
// Story   D9: the proposal makes the call a no-op with a warning there. The block is freed and handed out again within the capture, and
//         the graph then has a node that reads it beside one that writes it, at every launch. Never a silent no-op: the block stays aside
//         until the graph itself orders the next owner behind the reader.
// Source  https://github.com/pytorch/pytorch/issues/181191, its third version; written anew from the facts.
namespace cuaudit::reducers::record_use_d9_capture {
namespace {

// Captures what `body` gives the streams, from the owner's on; launches it once and waits.
template <typename Body>
CUresult CaptureAndLaunch(DriverRef driver, const Streams& streams, const Body& body) {
  CUAUDIT_STEP(driver.StreamBeginCapture(streams.owner, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUresult code = body();
  CUgraph graph = nullptr;
  CUresult ended = driver.StreamEndCapture(streams.owner, &graph);
  if (ended != CUDA_SUCCESS && graph == nullptr) (void)driver.StreamEndCapture(streams.owner, &graph);
  code = First(code, ended);
  CUgraphExec executable = nullptr;
  if (code == CUDA_SUCCESS) code = driver.GraphInstantiateWithFlags(&executable, graph, 0);
  if (code == CUDA_SUCCESS) code = driver.GraphLaunch(executable, streams.owner);
  if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(streams.owner);
  if (executable != nullptr) code = First(code, driver.GraphExecDestroy(executable));
  return graph == nullptr ? code : First(code, driver.GraphDestroy(graph));
}

template <bool no_op>
struct Pooled : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    return CaptureAndLaunch(driver, streams, [&] {
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      if (!no_op) CUAUDIT_STEP(Order(driver, streams.side, streams.owner));
      pool.Free(block);
      CUdeviceptr next = 0;
      CUAUDIT_STEP(pool.Allocate(&next));
      CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
      pool.Free(next);
      return Order(driver, streams.side, streams.owner);  // a capture ends with all its streams joined
    });
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    alloc::PoolId pool;
    CUAUDIT_STEP(allocator->CreatePool({}, &pool));
    CUAUDIT_STEP(allocator->BeginAllocateToPool(0, pool, {}));
    CUresult code = CaptureAndLaunch(driver, streams, [&] {
      for (int i = 0; i < 2; ++i) {
        CUdeviceptr block = 0;
        CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
        CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
        CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
        CUAUDIT_STEP(streams.Read(driver, block, streams.side));
        CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
        CUAUDIT_STEP(Drop(block));
      }
      return Order(driver, streams.side, streams.owner);
    });
    code = First(code, allocator->EndAllocateToPool(0, pool));
    return First(code, allocator->ReleasePool(pool));
  }
};

TEST(RecordUseD9, ANoOpWithinACaptureMakesAGraphThatRacesWithItself) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Pooled<true>>("record_use_d9"), "unordered_access device_memory");
}

TEST(RecordUseD9, AWaitWithinTheCaptureIsSilent) { EXPECT_ALLOCATION_NEUTRAL(OnPool<Pooled<false>>("record_use_d9_right")); }

// The graph does not order the second block behind the first one's reader: it gets memory of its own.
TEST(RecordUseD9, OursKeepsTheBlockAside) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d9_allocator");
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.warm_up = 1, .cycles = 3});
  EXPECT_FALSE(FitsInto(1, lifecycle));
  EXPECT_TRUE(FitsInto(2, lifecycle));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d9_capture

// A block that is used again and again, and not freed for long.
//
// Story   D10: each use appends an event to the block, and only an allocation ever takes one away: a parameter that a side stream reads
//         in every step collects an event per step. The first version asked for a cap, the third dropped the question. The newest use of
//         a stream covers its earlier ones, so one entry per stream is enough.
// Source  https://github.com/pytorch/pytorch/issues/181191, its open questions; written anew from the facts.
namespace cuaudit::reducers::record_use_d10_tight_loop {
namespace {

constexpr int kSteps = 100;

template <bool newest_only>
struct Pooled : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    std::vector<CUevent> uses;
    CUresult code = CUDA_SUCCESS;
    for (int i = 0; i < kSteps && code == CUDA_SUCCESS; ++i) {
      code = streams.Read(driver, block, streams.side);
      if (code == CUDA_SUCCESS && (!newest_only || uses.empty())) {
        uses.push_back(nullptr);
        code = driver.EventCreate(&uses.back(), CU_EVENT_DISABLE_TIMING);
      }
      if (code == CUDA_SUCCESS) code = driver.EventRecord(uses.back(), streams.side);
    }
    for (CUevent use : uses) {
      if (use == nullptr) continue;
      code = First(code, driver.StreamWaitEvent(streams.owner, use, 0));
      code = First(code, driver.EventDestroy(use));
    }
    pool.Free(block);
    return code;
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    for (int i = 0; i < kSteps; ++i) {
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
    }
    return Drop(block);
  }
};

// Beside those of the uses, one event orders the first reader.
TEST(RecordUseD10, AnEventForEachUseIsNeverEnough) {
  const auto lifecycle = OnPool<Pooled<false>>("record_use_d10");
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 1})), "");
  EXPECT_FALSE(FitsInto(1 + kSteps - 1, lifecycle, "cuEventCreate"));
  EXPECT_TRUE(FitsInto(1 + kSteps, lifecycle, "cuEventCreate"));
}

TEST(RecordUseD10, OneForTheNewestUseIs) {
  const auto lifecycle = OnPool<Pooled<true>>("record_use_d10_right");
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.warm_up = 1, .cycles = 1});
  EXPECT_TRUE(FitsInto(2, lifecycle, "cuEventCreate"));
}

// Whatever the device is behind with: as many as stamps are told apart (Options::max_stamps_per_stream), and one that is taken before the
// oldest is given up.
TEST(RecordUseD10, OursStaysBounded) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d10_allocator");
  EXPECT_ALLOCATION_NEUTRAL(lifecycle, {.warm_up = 1, .cycles = 1});
  EXPECT_TRUE(FitsInto(2 + static_cast<int>(alloc::Options().max_stamps_per_stream), lifecycle, "cuEventCreate"));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d10_tight_loop

// Somebody looks at the pool's own account of a block that was freed with a use that is not over.
//
// Story   D11: a block with pending waits looks inactive in a snapshot, and nothing says why a stream stalls later, or that the memory is
//         not at rest. A tool that believes it and moves the block to another stream lets that stream write under the reader.
// Source  https://github.com/pytorch/pytorch/issues/181191: asked for in the first version, dropped without an answer in the third;
//         written anew from the facts.
namespace cuaudit::reducers::record_use_d11_snapshot {
namespace {

template <bool uses_are_told>
struct MovedByATool : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    const std::vector<CUstream> pending = {streams.side};
    pool.Free(block);
    // The tool.
    if (!pool.IsFree(block)) return CUDA_ERROR_ASSERT;
    CUAUDIT_STEP(Order(driver, streams.owner, streams.other));
    if (uses_are_told) {
      for (CUstream reader : pending) CUAUDIT_STEP(Order(driver, reader, streams.other));
    }
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.other));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
};

// The tool is told who is not done yet, and by whose count.
struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
    CUAUDIT_STEP(Drop(block));
    alloc::Snapshot snapshot;
    CUAUDIT_STEP(allocator->TakeSnapshot(&snapshot));
    std::size_t told = 0;
    for (const alloc::SnapshotSegment& segment : snapshot.segments) {
      for (const alloc::SnapshotBlock& one : segment.blocks) {
        if (one.state == alloc::BlockState::ActiveAllocated) return CUDA_ERROR_ASSERT;
        for (const alloc::PendingUse& use : one.uses) {
          if (one.address != block || use.handle != streams.side || use.sequence == 0) return CUDA_ERROR_ASSERT;
          CUAUDIT_STEP(Order(driver, use.handle, streams.other));
          ++told;
        }
      }
    }
    return told == 1 ? CUDA_SUCCESS : CUDA_ERROR_ASSERT;
  }
};

TEST(RecordUseD11, AnAccountWithoutUsesLetsAnotherStreamWriteUnderTheReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<MovedByATool<false>>("record_use_d11"), "unordered_access device_memory");
}

TEST(RecordUseD11, AnAccountWithUsesIsEnough) { ExpectSilent(OnPool<MovedByATool<true>>("record_use_d11_right")); }

TEST(RecordUseD11, OurSnapshotNamesTheReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("on a device the read may be over before anybody looks");
  ExpectSilentOnce(OnAllocator<OurAllocator>("record_use_d11_allocator"));
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d11_snapshot
