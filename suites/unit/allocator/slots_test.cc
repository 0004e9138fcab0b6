// SPDX-License-Identifier: MIT
// Uses of one block on one stream after the other, on more streams than a block has slots for, life after life: none is overlooked.
#include <array>
#include <thread>

#include "suites/unit/allocator/allocating.h"
#include "suites/unit/allocator/model/faulty_driver.h"

namespace cuaudit::alloc::slots_test {
namespace {

constexpr std::size_t kBytes = 12 * kMiB;  // a segment of its own: it cannot be served from elsewhere without growing
constexpr std::size_t kUsers = 6;          // more than slots

class Slots : public testing::TestWithParam<bool> {
 protected:
  static Options Chosen() { return {.reuse = Reuse::Poll, .thread_cache = GetParam()}; }
  Slots() {
    for (std::size_t i = 0; i < kUsers; ++i) {
      users.push_back(a.Stream());
      refs.push_back(a.Ref(users.back()));
    }
  }
  CUdeviceptr Get() {
    CUdeviceptr address = 0;
    EXPECT_OK(a->Allocate(kBytes, own, &address)) << a.LastText();
    return address;
  }
  // Freed while the gate is closed, it is not given out before that opens. Answers it, in its next life.
  CUdeviceptr FreeAndGetBack(CUdeviceptr x, Gate* gate) {
    EXPECT_OK(a->Free(x));
    const CUdeviceptr other = Get();
    EXPECT_NE(other, x);
    gate->Open();
    const CUdeviceptr again = Get();
    EXPECT_EQ(again, x);
    EXPECT_OK(a->Free(other));
    EXPECT_OK(a->EmptyCache());
    return again;
  }

  Allocating a{Chosen()};
  StreamRef own = a.Ref(a.Stream());
  std::vector<CUstream> users;
  std::vector<StreamRef> refs;
};

TEST_P(Slots, TheUseThatIsNotOverIsWaitedForWhicheverStreamsItIs) {
  CUdeviceptr x = Get();
  for (std::size_t busy = 0; busy < kUsers; ++busy) {
    Gate gate(a.d);
    gate.Hold(users[busy]);
    for (const StreamRef user : refs) EXPECT_OK(a->RecordUse(x, user));
    x = FreeAndGetBack(x, &gate);
  }
  EXPECT_OK(a->Free(x));
}

TEST_P(Slots, AreOthersInOtherLives) {
  CUdeviceptr x = Get();
  for (std::size_t life = 0; life < 3 * kUsers; ++life) {
    Gate gate(a.d);
    gate.Hold(users[life % kUsers]);
    EXPECT_OK(a->RecordUse(x, refs[life % kUsers]));
    x = FreeAndGetBack(x, &gate);
  }
  EXPECT_OK(a->Free(x));
}

// The first use of a life finds the slot of the one before, and nothing tells of it but what it leaves there.
TEST_P(Slots, OfOneStreamServeLifeAfterLife) {
  CUdeviceptr x = Get();
  for (int life = 0; life < 5; ++life) {
    Gate gate(a.d);
    gate.Hold(users[0]);
    EXPECT_OK(a->RecordUse(x, refs[0]));
    EXPECT_OK(a->RecordUse(x, refs[0]));
    x = FreeAndGetBack(x, &gate);
  }
  EXPECT_EQ(a.Stats().uses_recorded, 10U);
  EXPECT_EQ(a.Stats().uses_merged, 5U);  // the second of each life, and not the first
  EXPECT_OK(a->Free(x));
}

// A life without uses owes nothing for those of the one before.
TEST_P(Slots, AreEmptyInANewLife) {
  CUdeviceptr x = Get();
  EXPECT_OK(a->RecordUse(x, refs[0]));
  EXPECT_OK(a.d.StreamSynchronize(users[0]));
  EXPECT_OK(a->Free(x));
  EXPECT_EQ(Get(), x);
  Gate gate(a.d);
  gate.Hold(users[0]);
  const CUdeviceptr y = Get();
  EXPECT_OK(a->RecordUse(y, refs[0]));
  EXPECT_OK(a->Free(x));
  EXPECT_EQ(Get(), x);
  EXPECT_OK(a->Free(x));
  EXPECT_OK(a->Free(y));
}

// The last slot goes from hand to hand, with what it stood at: a stream has one use of the block, wherever that is noted.
TEST_P(Slots, ChangeHandsWithinALife) {
  CUdeviceptr x = Get();
  for (std::size_t busy = 0; busy < kUsers; ++busy) {
    const Statistics before = a.Stats();
    Gate gate(a.d);
    gate.Hold(users[busy]);
    EXPECT_OK(a->RecordUse(x, refs[busy]));
    for (const bool first : {true, false}) {
      for (std::size_t user = first ? 0 : kUsers - 2; user < kUsers; ++user) {
        if (user != busy) {
          EXPECT_OK(a->RecordUse(x, refs[user]));
          EXPECT_OK(a->RecordUse(x, refs[user]));
        }
      }
    }
    const Statistics after = a.Stats();
    EXPECT_EQ(after.uses_recorded - before.uses_recorded - (after.uses_merged - before.uses_merged), kUsers);
    x = FreeAndGetBack(x, &gate);
  }
  EXPECT_OK(a->Free(x));
}

// One that fails takes nobody else's use back, nor an earlier one of its own.
TEST(SlotsThatChangeHands, KeepWhatWasNotedBeforeAFailedRecording) {
  Allocating a;
  FailingCalls failing(a.d);
  std::unique_ptr<Allocator> allocator;
  const DeviceConfig config;
  ASSERT_OK(Allocator::Create(failing.ref(), &config, 1, {}, &allocator));
  const CUstream own = a.Stream();
  std::vector<CUstream> users;
  for (std::size_t i = 0; i < kUsers; ++i) users.push_back(a.Stream());
  for (std::size_t busy = 0; busy < kUsers; ++busy) {
    CUdeviceptr x = 0, other = 0;
    ASSERT_OK(allocator->Allocate(0, kBytes, own, &x));
    Gate gate(a.d);
    gate.Hold(users[busy]);
    for (int round = 0; round < 2; ++round) {
      for (const CUstream user : users) {
        EXPECT_OK(allocator->RecordUse(x, user)) << allocator->LastErrorText();
        failing.Fail(driver::CallId::EventRecord, Failing::Refused);
        EXPECT_EQ(allocator->RecordUse(x, users[(busy + static_cast<std::size_t>(round)) % kUsers]), CUDA_ERROR_INVALID_CONTEXT);
      }
    }
    EXPECT_OK(allocator->Free(x));
    ASSERT_OK(allocator->Allocate(0, kBytes, own, &other));
    EXPECT_NE(other, x) << "a use is not over";
    gate.Open();
    EXPECT_OK(allocator->Free(other));
    EXPECT_OK(allocator->EmptyCache());
  }
  EXPECT_OK(allocator->Close());
}

// Each thread on its own streams, all on the same blocks: the slots change hands while others record.
TEST_P(Slots, AreMadeByThreadsAtOnce) {
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kLives = 60;
  for (std::size_t life = 0; life < kLives; ++life) {
    const CUdeviceptr x = Get();
    std::array<std::thread, kThreads> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads[t] = std::thread([&, t] {
        for (std::size_t i = 0; i < 8; ++i) EXPECT_OK(a->RecordUse(x, refs[(t + i % 2 * kThreads) % kUsers]));
        EXPECT_OK(a->RecordUse(x, refs[life % kUsers]));  // all of them on one
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_OK(a->Free(x));
    for (const CUstream user : users) EXPECT_OK(a.d.StreamSynchronize(user));
  }
  EXPECT_EQ(a.Stats().uses_recorded, kLives * kThreads * 9);
  const CUdeviceptr x = Get();
  EXPECT_EQ(a.Stats().blocks_pending, 0U);
  EXPECT_OK(a->Free(x));
}

INSTANTIATE_TEST_SUITE_P(All, Slots, testing::Bool(),
                         [](const auto& param) { return std::string(param.param ? "ThreadCache" : "NoThreadCache"); });

struct Source {
  driver::DriverRef d;
  CUstream user = nullptr;
  bool was_over = false;
};

// By a stream of another device: synchronising the block's own context does not end it. `theirs` is that stream's, and older than the
// block, since Close ends what is newest first.
void UseFromElsewhere(const Allocating& a, CUdeviceptr x, CUdeviceptr theirs, CUstream user) {
  a.Write(theirs, kBytes, user);
  EXPECT_OK(a->RecordUse(x, a.Ref(user, 1)));
  a.Drop(theirs);
}

// Close takes live blocks away too, and their own memory is not given back to its owner before their uses are over.
TEST(SlotsAtTheEnd, AreWaitedForBeforeAnOwnersMemoryGoesBack) {
  Allocating a({}, {.devices = 2});
  Source source{a.d, a.Stream(1), false};
  const CUdeviceptr theirs = a.Get(kBytes, source.user, 1);
  PoolOptions options = {.user = &source};
  options.acquire = [](void* user, int, std::size_t bytes, CUstream, CUdeviceptr* out) noexcept {
    return static_cast<Source*>(user)->d.MemAlloc(out, bytes);
  };
  options.release = [](void* user, int, CUdeviceptr address, std::size_t) noexcept {
    Source* const one = static_cast<Source*>(user);
    one->was_over = one->d.StreamQuery(one->user) == CUDA_SUCCESS;
    return one->d.MemFree(address);
  };
  const PoolId pool = a.Pool(options);
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  CUstream own = a.Stream();
  const CUdeviceptr x = a.Get(kBytes, own);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  UseFromElsewhere(a, x, theirs, source.user);
  ASSERT_EQ(a.d.StreamQuery(source.user), CUDA_ERROR_NOT_READY);
  std::size_t live = 0;
  ASSERT_OK(a->Close(&live));
  EXPECT_EQ(live, 1U);
  EXPECT_TRUE(source.was_over);
}

// cuMemUnmap waits for nothing.
TEST(SlotsAtTheEnd, AreWaitedForBeforePagesAreUnmapped) {
  Allocating a({}, {.devices = 2});
  FailingCalls watched{a.d};
  Options options = {.expandable_segments = true};
  const DeviceConfig configs[] = {{0, nullptr}, {1, nullptr}};
  ASSERT_OK(Allocator::Create(watched.ref(), configs, 2, options, &a.allocator));
  CUstream own = a.Stream();
  CUstream user = a.Stream(1);
  const CUdeviceptr theirs = a.Get(kBytes, user, 1);
  const CUdeviceptr x = a.Get(kBytes, own);
  UseFromElsewhere(a, x, theirs, user);
  ASSERT_EQ(a.d.StreamQuery(user), CUDA_ERROR_NOT_READY);
  int unmapped = 0;
  watched.on_call = [&](driver::CallId call) {
    if (call != driver::CallId::MemUnmap || unmapped++ != 0) return;
    EXPECT_OK(a.d.StreamQuery(user));
  };
  std::size_t live = 0;
  ASSERT_OK(a->Close(&live));
  watched.on_call = nullptr;
  EXPECT_EQ(live, 1U);
  EXPECT_NE(unmapped, 0);
  a.allocator.reset();
}

TEST(SlotsAtTheEnd, KeepABlockFromBeingRestoredAway) {
  Allocating a;
  CUstream own = a.Stream();
  CUstream user = a.Stream();
  const PoolId pool = a.Pool();
  Checkpoint checkpoint;
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(kBytes, own);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  ASSERT_OK(a->TakeCheckpoint(0, pool, &checkpoint));
  EXPECT_OK(a->RecordUse(x, user));
  RestoreResult restored;
  EXPECT_EQ(a->RestoreCheckpoint(checkpoint, &restored), CUDA_ERROR_ILLEGAL_STATE);
  a.Drop(x);
}

}  // namespace
}  // namespace cuaudit::alloc::slots_test
