// SPDX-License-Identifier: MIT
// What a thread keeps, and who empties its cache: behind a barrier in all threads (membarrier), without one, and at each instruction of a
// take.
#include "allocator/tables/thread_cache.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "suites/unit/allocator/allocating.h"

namespace {

long refused_barrier = 0;   // that command of membarrier, as some sandboxes do
int barriers = 0;           // asked for
bool is_registered = true;  // false: as in a process that was restored from an image, until it registers again
std::function<void()> during_barrier;
thread_local std::function<void()> at_pause;  // once, when this thread yields

}  // namespace

// Link-time names of what the allocator asks the kernel (--wrap).
extern "C" {
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long argument[6];
  for (long& each : argument) each = va_arg(list, long);
  va_end(list);
  if (number != SYS_membarrier) return __real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  const int command = static_cast<int>(argument[0]);
  const bool is_run = command == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  barriers += is_run;
  is_registered = is_registered || command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  if (is_run && during_barrier) during_barrier();
  if (command != refused_barrier && (!is_run || is_registered)) return __real_syscall(number, command, 0, 0);
  errno = EPERM;
  return -1;
}
int __real_sched_yield();
int __wrap_sched_yield();
int __wrap_sched_yield() {
  if (at_pause) std::exchange(at_pause, nullptr)();
  return __real_sched_yield();
}
}

namespace cuaudit::alloc {
namespace {

// A thread that keeps a block of 4 MiB, until it is told what to do next.
class Keeper {
 public:
  explicit Keeper(Allocating* a) : a_(a), ref_(a->Ref(a->Stream())), other_(a->Ref(a->Stream())), thread_([this] { Run(); }) {
    Do(kTakeAndKeep);
  }
  ~Keeper() { End(); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  enum Act { kTakeAndKeep, kTake, kKeep, kCallForAnotherStream, kEnd };
  void Do(Act act) {
    act_ = act;
    may_go_on_.release();
    has_done_.acquire();
  }
  void End() {
    if (!thread_.joinable()) return;
    Do(kEnd);
    thread_.join();
  }

 private:
  void Run() {
    CUdeviceptr address = 0;
    CUdeviceptr other = 0;
    for (Act act = kTake; act != kEnd; has_done_.release()) {
      may_go_on_.acquire();
      act = act_;
      const auto expect = [](CUresult result) { EXPECT_OK(result); };
      if (act == kTake || act == kTakeAndKeep) expect((*a_)->Allocate(4 * kMiB, ref_, &address));
      if (act == kKeep || act == kTakeAndKeep) expect((*a_)->Free(address));
      if (act == kCallForAnotherStream) {
        expect((*a_)->Allocate(kMiB / 2, other_, &other));
        expect((*a_)->Free(other));
      }
    }
  }

  Allocating* a_;
  const StreamRef ref_;
  const StreamRef other_;
  std::binary_semaphore may_go_on_{0};
  std::binary_semaphore has_done_{0};
  Act act_ = kTake;
  std::thread thread_;
};

class KeptBlocks : public testing::Test {
 public:
  KeptBlocks() { Reset(); }
  ~KeptBlocks() override { Reset(); }
  static void Reset() {
    refused_barrier = 0;
    barriers = 0;
    is_registered = true;
    during_barrier = nullptr;
  }
  static constexpr auto kReserved = 20 * static_cast<std::int64_t>(kMiB);
};

// Behind a barrier in the thread, or by locked instructions where the kernel has no such barrier.
TEST(HostMemory, WhatAThreadKeepsIsTakenFromIt) {
  for (const bool has_barrier : {true, false}) {
    refused_barrier = has_barrier ? 0 : MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    Allocating a;
    Keeper keeper(&a);
    barriers = 0;
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(), 0);
    EXPECT_EQ(barriers, has_barrier ? 1 : 0);
    keeper.Do(Keeper::kTakeAndKeep);
    EXPECT_EQ(a.Reserved(), KeptBlocks::kReserved);
    KeptBlocks::Reset();
  }
}

TEST_F(KeptBlocks, OfManyThreadsAreTakenBehindOneBarrier) {
  Allocating a;
  const StreamRef ref = a.Ref(a.Stream());
  constexpr int kThreads = 3;
  std::counting_semaphore<kThreads> has_kept{0};
  std::counting_semaphore<kThreads> may_end{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      CUdeviceptr address = 0;
      EXPECT_OK(a->Allocate(4 * kMiB, ref, &address));
      EXPECT_OK(a->Free(address));
      has_kept.release();
      may_end.acquire();
    });
    has_kept.acquire();
  }
  EXPECT_EQ(barriers, 0);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_EQ(barriers, 1);
  may_end.release(kThreads);
  for (std::thread& thread : threads) thread.join();
}

// It exchanges the slot by then: the block is its own, and who empties the cache finds none.
TEST_F(KeptBlocks, AreTakenByTheirThreadDuringTheBarrier) {
  Allocating a;
  Keeper keeper(&a);
  during_barrier = [&] { keeper.Do(Keeper::kTake); };
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(barriers, 1);
  EXPECT_EQ(a.Stats().served_thread_cache, 1U);
  EXPECT_EQ(a.Reserved(), kReserved);
  during_barrier = nullptr;
  keeper.Do(Keeper::kKeep);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
}

// As by a sandbox that a process enters later. What the thread keeps is to be had when it has made another slow call, for whatever stream.
TEST_F(KeptBlocks, AreNotLostWhereABarrierIsRefusedLater) {
  Allocating a;
  Keeper keeper(&a);
  refused_barrier = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), kReserved);
  keeper.Do(Keeper::kCallForAnotherStream);
  barriers = 0;
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_EQ(barriers, 0) << "of a thread that exchanges";
  // A thread that begins now exchanges from the start.
  Keeper later(&a);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_EQ(barriers, 0);
}

// Nor does the thread have to call anything but what it always calls.
TEST_F(KeptBlocks, AreToBeHadWhenTheirThreadHasTakenAndKeptThem) {
  Allocating a;
  Keeper keeper(&a);
  refused_barrier = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  EXPECT_OK(a->EmptyCache());
  keeper.Do(Keeper::kTakeAndKeep);
  EXPECT_EQ(a.Stats().served_thread_cache, 1U);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
}

TEST_F(KeptBlocks, OfAThreadThatHasEndedNeedNoBarrier) {
  Allocating a;
  Keeper keeper(&a);
  keeper.End();
  refused_barrier = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_EQ(barriers, 0);
  Keeper next(&a);  // has the cache now
  refused_barrier = 0;
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_EQ(barriers, 1);
}

TEST_F(KeptBlocks, AreGivenBackByCloseWithoutABarrier) {
  Allocating a;
  Keeper keeper(&a);
  refused_barrier = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  EXPECT_OK(a->Close());
  EXPECT_EQ(a.Reserved(), 0);
}

TEST_F(KeptBlocks, AreTakenWhereTheProcessMustRegisterAgain) {
  Allocating a;
  Keeper keeper(&a);
  is_registered = false;
  EXPECT_OK(a->EmptyCache());
  EXPECT_TRUE(is_registered);
  EXPECT_EQ(barriers, 2);
  EXPECT_EQ(a.Reserved(), 0);
}

// Not where a thread sanitizer keeps books for each access: the thread would be stopped in them.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CUAUDIT_HAS_NO_STEPS
#endif
#endif
#if defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define CUAUDIT_HAS_NO_STEPS
#endif
#if !defined(CUAUDIT_HAS_NO_STEPS)
// A thread is run instruction by instruction (the processor's trap flag), and stopped before two of them.
struct Steps {
  bool is_on = false;
  long done = 0;
  long first = 0;
  long second = 0;
  std::function<void()> at_first;
  std::function<void()> at_second;
};
Steps steps;

void OnTrap(int /*signal*/, siginfo_t* /*info*/, void* context) {
  constexpr greg_t kTrapFlag = 0x100;
  greg_t& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
  flags = steps.is_on ? flags | kTrapFlag : flags & ~kTrapFlag;
  if (!steps.is_on) return;
  ++steps.done;
  if (steps.done == steps.first) steps.at_first();
  if (steps.done != steps.second) return;
  steps.at_second();
  flags &= ~kTrapFlag;
}

// The owner takes a block and is stopped twice. At the first stop another thread begins to empty the magazine, and goes on until it waits
// for the owner, or has another block in its hands; from the second on it does the rest. Whatever the two stops, one of them has the block.
class StoppedTakes : public testing::Test {
 protected:
  StoppedTakes() {
    struct sigaction action = {};
    action.sa_sigaction = OnTrap;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(sigaction(SIGTRAP, &action, &before_), 0);
    EXPECT_TRUE(MayRunBarrier());
  }
  ~StoppedTakes() override { EXPECT_EQ(sigaction(SIGTRAP, &before_, nullptr), 0); }

  // How many instructions the take had.
  static long Run(long first, long second) {
    Magazine magazine(false);
    Block other;
    Block block;
    other.key = 2;
    block.key = 1;
    EXPECT_TRUE(magazine.Put(&other, kMiB));  // in the slot that is emptied first
    EXPECT_TRUE(magazine.Put(&block, kMiB));
    std::binary_semaphore may_begin{0};
    std::binary_semaphore has_stopped{0};
    std::binary_semaphore may_go_on{0};
    std::binary_semaphore has_ended{0};
    bool is_begun = false;
    bool has_other = false;  // of the emptying thread, which stands still then
    bool is_released = false;
    int emptied = 0;
    std::thread emptier([&] {
      may_begin.acquire();
      bool has_told = false;
      const auto tell = [&] {
        if (!std::exchange(has_told, true)) has_stopped.release();
      };
      at_pause = tell;
      magazine.BeginEmptying();
      EXPECT_TRUE(RunBarrier());
      EXPECT_TRUE(magazine.EndEmptying(true, [&](const Block* each) {
        emptied += each == &block;
        if (each != &other) return;
        has_other = !has_told;
        tell();
        may_go_on.acquire();
      }));
      at_pause = nullptr;
      tell();
      has_ended.release();
    });
    const auto begin = [&] {
      is_begun = true;
      may_begin.release();
      has_stopped.acquire();
    };
    const auto go_on = [&] {
      is_released = true;
      may_go_on.release();
      if (has_other) has_ended.acquire();  // otherwise it may wait for this thread
    };
    steps = {true, 0, first, second, begin, go_on};
    asm volatile("int3" ::: "memory");
    const Block* const taken = magazine.Take(1);
    asm volatile("" ::: "memory");  // the handler is no call that the compiler sees
    steps.is_on = false;
    asm volatile("" ::: "memory");
    const long count = steps.done;
    if (!is_begun) begin();
    if (!is_released) go_on();
    emptier.join();
    EXPECT_EQ(emptied, taken == nullptr ? 1 : 0) << "stopped at " << first << " and " << second << " of " << count;
    return count;
  }

 private:
  struct sigaction before_ = {};
};

TEST_F(StoppedTakes, HaveTheBlockOrTheEmptierHasIt) {
  const long count = Run(-1, -1);
  ASSERT_GT(count, 20) << "or nothing was stopped";
  RecordProperty("instructions", static_cast<int>(count));
  const long stride = count / 24 + 1;  // of an unoptimised take, which has many instructions between each two that matter
  for (long first = 1; first <= count && !HasFailure(); first += stride) {
    for (long second = first + 1; second <= count + stride && !HasFailure(); second += stride) (void)Run(first, second);
  }
}
#endif

}  // namespace
}  // namespace cuaudit::alloc
