// SPDX-License-Identifier: MIT
// record_use_rules.cc: many uses, no use, two allocators, threads.
#include <thread>

#include "suites/reducers/side_stream.h"

// Two streams read one block, and both say so.
//
// Story   D5: uses add up; who gets the memory waits for all of them. A block with room for one remembered use forgets the first reader,
//         and with it whoever was slower.
// Source  https://github.com/pytorch/pytorch/issues/181191, rule 4 of its third version; written anew from the facts.
namespace cuaudit::reducers::record_use_d5_accumulation {
namespace {

// As a block that holds an event for the reader of last.
template <std::size_t remembered>
struct Remembers : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    std::vector<CUstream> uses;
    for (CUstream reader : {streams.side, streams.other}) {
      CUAUDIT_STEP(Order(driver, streams.owner, reader));
      CUAUDIT_STEP(streams.Read(driver, block, reader));
      if (uses.size() == remembered) uses.erase(uses.begin());
      uses.push_back(reader);
    }
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    for (CUstream reader : uses) CUAUDIT_STEP(Order(driver, reader, streams.owner));
    CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      for (CUstream reader : {streams.side, streams.other, streams.side}) {
        CUAUDIT_STEP(Order(driver, streams.owner, reader));
        CUAUDIT_STEP(streams.Read(driver, block, reader));
        CUAUDIT_STEP(allocator->RecordUse(block, reader));
      }
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD5, ABlockThatRemembersOneUseForgetsTheFirstReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Remembers<1>>("record_use_d5"), "unordered_access device_memory");
}

TEST(RecordUseD5, ABlockThatRemembersBothIsSilent) { ExpectSilent(OnPool<Remembers<2>>("record_use_d5_right")); }

TEST(RecordUseD5, UsesAddUp) { ExpectSilentInOneSegment<OurAllocator>("record_use_d5_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d5_accumulation

// Record_use with the stream that the block was allocated for.
//
// Story   D6: work on the owner's stream is ordered anyway, so the call is to do nothing. One that records an event all the same, and
//         looks for uses of other streams when the block is freed, keeps an event for each call.
// Source  https://github.com/pytorch/pytorch/issues/181191, rule 3 of its third version; written anew from the facts.
namespace cuaudit::reducers::record_use_d6_own_stream {
namespace {

template <bool looks_first>
struct Records : WithPool {
  struct Use {
    CUstream stream;
    CUevent event;
  };
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    std::vector<Use> uses;
    CUAUDIT_STEP(RecordUse(driver, streams.owner, &uses));
    pool.Free(block);
    CUresult code = CUDA_SUCCESS;
    for (const Use& use : uses) {
      if (use.stream != streams.owner) code = First(code, driver.EventDestroy(use.event));
    }
    return code;
  }
  CUresult RecordUse(DriverRef driver, CUstream stream, std::vector<Use>* uses) {
    if (looks_first && stream == streams.owner) return CUDA_SUCCESS;
    uses->push_back({stream, nullptr});
    CUAUDIT_STEP(driver.EventCreate(&uses->back().event, CU_EVENT_DISABLE_TIMING));
    return driver.EventRecord(uses->back().event, stream);
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.owner));
      CUAUDIT_STEP(allocator->RecordUse(0, streams.side));  // of nothing
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD6, AnEventForTheOwnStreamIsKeptByNobody) {
  EXPECT_EQ(Lost(RunCycles(OnPool<Records<false>>("record_use_d6"), {.warm_up = 1, .cycles = 3})), "event 3");
}

TEST(RecordUseD6, ACallThatLooksFirstIsSilent) { ExpectSilent(OnPool<Records<true>>("record_use_d6_right")); }

TEST(RecordUseD6, ItMakesNoEventAndNoWait) {
  const auto lifecycle = OnAllocator<OurAllocator>("record_use_d6_allocator");
  ExpectSilentOnce(lifecycle);
  EXPECT_TRUE(FitsInto(1, lifecycle));
  for (const char* const call : {"cuEventCreate#1=OUT_OF_MEMORY,refuse", "cuStreamWaitEvent#1=INVALID_HANDLE,refuse"})
    EXPECT_EQ(Replay(lifecycle, {call}).fired, 0U) << call;
}

}  // namespace
}  // namespace cuaudit::reducers::record_use_d6_own_stream

// One block, told of a use on one stream and given to another one by record_stream.
//
// Story   D7: the two ways to tell are independent. record_stream covers all that its stream is given until the block is freed; a
//         record_use that replaces it, or takes its event for both, loses what came after the call.
// Source  https://github.com/pytorch/pytorch/issues/181191, rule 5 of its third version; written anew from the facts.
namespace cuaudit::reducers::record_use_d7_with_record_stream {
namespace {

enum class Both { OneReplacesTheOther, Kept };

template <Both both>
struct Pooled : WithPool {
  CUresult Work(DriverRef driver) {
    CUdeviceptr block = 0;
    CUAUDIT_STEP(pool.Allocate(&block));
    CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
    CUAUDIT_STEP(Order(driver, streams.owner, streams.other));
    bool other_until_free = true;  // record_stream(other)
    CUAUDIT_STEP(streams.Read(driver, block, streams.side));
    CUevent used = nullptr;  // record_use(side)
    CUAUDIT_STEP(driver.EventCreate(&used, CU_EVENT_DISABLE_TIMING));
    CUresult code = driver.EventRecord(used, streams.side);
    if (both == Both::OneReplacesTheOther) other_until_free = false;
    if (code == CUDA_SUCCESS) code = streams.Read(driver, block, streams.other);
    if (code == CUDA_SUCCESS) code = driver.StreamWaitEvent(streams.owner, used, 0);
    code = First(code, driver.EventDestroy(used));
    if (code != CUDA_SUCCESS) return code;
    if (other_until_free) CUAUDIT_STEP(Order(driver, streams.other, streams.owner));
    pool.Free(block);
    CUdeviceptr next = 0;
    CUAUDIT_STEP(pool.Allocate(&next));
    CUAUDIT_STEP(streams.Write(driver, next, streams.owner));
    pool.Free(next);
    return CUDA_SUCCESS;
  }
};

struct OurAllocator : WithAllocator {
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr block = 0;
      CUAUDIT_STEP(Get(kLarge, streams.owner, &block));
      CUAUDIT_STEP(streams.Write(driver, block, streams.owner));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.side));
      CUAUDIT_STEP(Order(driver, streams.owner, streams.other));
      CUAUDIT_STEP(allocator->RecordStream(block, streams.other));
      CUAUDIT_STEP(streams.Read(driver, block, streams.side));
      CUAUDIT_STEP(allocator->RecordUse(block, streams.side));
      CUAUDIT_STEP(streams.Read(driver, block, streams.other));
      CUAUDIT_STEP(Drop(block));
    }
    return CUDA_SUCCESS;
  }
};

TEST(RecordUseD7, ARecordUseThatReplacesRecordStreamLosesTheOtherReader) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kOrder);
  EXPECT_EQ(Wrong<Pooled<Both::OneReplacesTheOther>>("record_use_d7"), "unordered_access device_memory");
}

TEST(RecordUseD7, BothKeptIsSilent) { ExpectSilent(OnPool<Pooled<Both::Kept>>("record_use_d7_right")); }

TEST(RecordUseD7, OurBlocksCarryBoth) { ExpectSilentInOneSegment<OurAllocator>("record_use_d7_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d7_with_record_stream

// One thread tells of a use while another one frees the block.
//
// Story   D8: record_use and free are called from any threads. Where free looks at the uses, lets go of the lock and gives the block back
//         then, a use that is told of in between is kept with a block that somebody else has already. The turn-taking here makes that one
//         interleaving happen every time.
// Source  https://github.com/pytorch/pytorch/issues/181191, rules 6 and 8 of its third version; written anew from the facts.
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

TEST(RecordUseD8, AnyThreadMayTellAndAnyMayDrop) { ExpectSilentInOneSegment<OurAllocator>("record_use_d8_allocator"); }

}  // namespace
}  // namespace cuaudit::reducers::record_use_d8_threads
