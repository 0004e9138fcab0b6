// SPDX-License-Identifier: MIT
// The ring, its stacks, and the text on running out of memory.
#include "allocator/observe/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "allocator/observe/account.h"

namespace cuaudit::alloc::history_test {
namespace {

TraceEvent Event(TraceAction action, CUdeviceptr address, void* stack) {
  TraceEvent event = {};
  event.action = action;
  event.address = address;
  event.size = 512;
  event.stack = stack;
  return event;
}

[[gnu::noinline]] void* CaptureHere(const Tracer& tracer) {
  void* const stack = tracer.capture(tracer.self);
  asm volatile("" : : : "memory");  // or the call is a jump, and this frame is none
  return stack;
}

TEST(History, KeepsTheNewestInOrderAndCountsTheRest) {
  History history;
  EXPECT_EQ(history.Start({.max_entries = 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(history.Start({.max_entries = SIZE_MAX}), CUDA_ERROR_OUT_OF_MEMORY);
  const Tracer tracer = history.tracer();
  tracer.record(tracer.self, Event(TraceAction::Alloc, 1, nullptr));
  EXPECT_TRUE(history.Copy().empty()) << "not started";
  ASSERT_EQ(history.Start({.max_entries = 4, .stacks = StackLevel::Never}), CUDA_SUCCESS);
  EXPECT_EQ(tracer.capture(tracer.self), nullptr);
  for (CUdeviceptr i = 1; i <= 10; ++i) tracer.record(tracer.self, Event(TraceAction::Alloc, i, nullptr));
  const std::vector<HistoryEntry> kept = history.Copy();
  ASSERT_EQ(kept.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(kept[i].event.address, 7 + i);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GE(kept[i].time_us, kept[i - 1].time_us);
  EXPECT_EQ(history.overflowed(), 6U);
  EXPECT_EQ(history.Start({.max_entries = SIZE_MAX / 2}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(history.Copy().size(), 4U) << "a refused Start changes nothing";
  ASSERT_EQ(history.Start({.max_entries = 8}), CUDA_SUCCESS);
  EXPECT_TRUE(history.Copy().empty()) << "Start begins afresh";
  EXPECT_EQ(history.overflowed(), 0U);
}

TEST(History, LevelSaysWhoseStacksAreKept) {
  for (const StackLevel level : {StackLevel::Never, StackLevel::Alloc, StackLevel::All}) {
    History history;
    ASSERT_EQ(history.Start({.max_entries = 8, .stacks = level}), CUDA_SUCCESS);
    const Tracer tracer = history.tracer();
    void* const stack = CaptureHere(tracer);
    tracer.record(tracer.self, Event(TraceAction::Alloc, 1, stack));
    tracer.record(tracer.self, Event(TraceAction::FreeRequested, 1, stack));
    const std::vector<HistoryEntry> kept = history.Copy();
    EXPECT_EQ(kept[0].event.stack != nullptr, level != StackLevel::Never);
    EXPECT_EQ(kept[1].event.stack != nullptr, level == StackLevel::All);
  }
}

TEST(CallStacks, EqualStacksAreOneNumber) {
  History history;
  ASSERT_EQ(history.Start({}), CUDA_SUCCESS);
  const Tracer tracer = history.tracer();
  void* stack[3] = {};
  const volatile int times = 2;  // or it is no loop
  for (int i = 0; i < times; ++i) stack[i] = CaptureHere(tracer);
  stack[2] = CaptureHere(tracer);
  ASSERT_NE(stack[0], nullptr);
  EXPECT_EQ(stack[0], stack[1]) << "the same place of a loop";
  EXPECT_NE(stack[0], stack[2]) << "another line";
  std::uintptr_t frames[kMaxFrames];
  std::uintptr_t others[kMaxFrames];
  const std::size_t count = history.stacks().Read(CallStacks::FromToken(stack[0]), frames);
  ASSERT_GT(count, 2U);
  ASSERT_EQ(history.stacks().Read(CallStacks::FromToken(stack[2]), others), count);
  EXPECT_EQ(frames[0], others[0]) << "inside CaptureHere";
  EXPECT_NE(frames[1], others[1]);
  EXPECT_TRUE(std::equal(frames + 2, frames + count, others + 2));
  const Frame frame = CallStacks::Describe(frames[0]);
  EXPECT_THAT(frame.module, testing::HasSubstr("allocator_text_test"));
  EXPECT_FALSE(frame.name.empty());
  EXPECT_EQ(CallStacks::Describe(1).name, "0x1");
}

TEST(CallStacks, FullTableIsCountedAndNeverWrong) {
  CallStacks stacks;
  std::uintptr_t frame[2] = {1, 2};
  EXPECT_EQ(stacks.Intern(frame), kNoStack) << "nothing reserved";
  ASSERT_TRUE(stacks.Reserve(16));
  std::vector<StackId> ids;
  std::uint64_t refused = 0;
  for (std::uintptr_t i = 1; i <= 100; ++i) {
    frame[0] = i;
    const StackId id = stacks.Intern(frame);
    if (id == kNoStack) {
      ++refused;
      continue;
    }
    ids.push_back(id);
    std::uintptr_t read[kMaxFrames];
    ASSERT_EQ(stacks.Read(id, read), 2U);
    EXPECT_EQ(read[0], i);
  }
  EXPECT_GE(ids.size(), 16U);
  EXPECT_EQ(stacks.overflowed(), refused);
  EXPECT_GT(refused, 0U);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  std::uintptr_t read[kMaxFrames];
  EXPECT_EQ(stacks.Read(kNoStack, read), 0U);
  EXPECT_EQ(stacks.Read(1U << 30, read), 0U);
  std::vector<std::uintptr_t> deep(3 * kMaxFrames, 5);
  ASSERT_TRUE(stacks.Reserve(16));
  EXPECT_EQ(stacks.Read(stacks.Intern(deep), read), kMaxFrames) << "cut, not refused";
}

TEST(History, ThreadsKeepTheOrderOfEachAddress) {
  constexpr CUdeviceptr kThreads = 4;
  constexpr std::size_t kRounds = 300;
  History history;
  ASSERT_EQ(history.Start({.max_entries = kThreads * kRounds * 2, .max_stacks = 64}), CUDA_SUCCESS);
  const Tracer tracer = history.tracer();
  std::vector<std::thread> threads;
  for (CUdeviceptr address = 1; address <= kThreads; ++address) {
    threads.emplace_back([&, address] {
      for (std::size_t i = 0; i < kRounds; ++i) {
        tracer.record(tracer.self, Event(TraceAction::Alloc, address, tracer.capture(tracer.self)));
        tracer.record(tracer.self, Event(TraceAction::FreeCompleted, address, nullptr));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::size_t> seen(kThreads + 1);
  std::uint64_t time = 0;
  for (const HistoryEntry& entry : history.Copy()) {
    EXPECT_EQ(entry.event.action, seen[entry.event.address]++ % 2 == 0 ? TraceAction::Alloc : TraceAction::FreeCompleted);
    EXPECT_GE(entry.time_us, time);
    time = entry.time_us;
  }
  for (CUdeviceptr address = 1; address <= kThreads; ++address) EXPECT_EQ(seen[address], 2 * kRounds);
}

TEST(Account, SaysWhereTheMemoryIsAndWhatWasTried) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(std::size_t{20} << 20), "20.00 MiB");
  EXPECT_EQ(FormatBytes(SIZE_MAX), "16.00 EiB");
  OutOfMemory account;
  account.device = 1;
  account.requested = 3 << 20;
  account.rounded = 20 << 20;
  account.stream = 42;
  account.pool = {0, 3};
  account.driver_result = CUDA_ERROR_OUT_OF_MEMORY;
  account.device_free = 1 << 20;
  account.device_total = std::size_t{1} << 30;
  account.limit = SIZE_MAX;
  account.reserved = 100 << 20;
  account.allocated = 60 << 20;
  account.pending = 10 << 20;
  account.largest_free = 2 << 20;
  Statistics statistics;
  statistics.num_ooms = 1;
  statistics.num_alloc_retries = 2;
  statistics.num_sync_all_streams = 3;
  statistics.blocks_pending = 5;
  statistics.served_grown = 17;
  const std::string text = FormatOutOfMemory(account, statistics);
  for (const char* part :
       {"device 1: 3.00 MiB asked for on stream 42 in pool 0.3, which needs a segment of 20.00 MiB; the driver answered OUT_OF_MEMORY (2)",
        "1.00 MiB free of 1.00 GiB",
        "100.00 MiB reserved: 60.00 MiB allocated, 10.00 MiB freed with uses that are not over (5 blocks), 30.00 MiB cached",
        "largest free block 2.00 MiB", "1 out of memory, 2 retries", "3 times all uses", "growth 17"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("limit")));
  account.limit = 64 << 20;
  account.driver_result = CUDA_SUCCESS;
  account.device_total = 0;
  EXPECT_THAT(FormatOutOfMemory(account, statistics), testing::HasSubstr("refused by the limit, the driver was not asked"));
  EXPECT_THAT(FormatOutOfMemory(account, statistics), testing::HasSubstr("64.00 MiB for this process"));
  EXPECT_THAT(FormatOutOfMemory(account, statistics), testing::HasSubstr("did not say"));
  char cut[32] = "untouched";
  EXPECT_EQ(FormatOutOfMemory(account, statistics, cut, sizeof(cut)), sizeof(cut) - 1);
  EXPECT_STREQ(cut, "out of memory on device 1: 3.00");
  EXPECT_EQ(FormatOutOfMemory(account, statistics, nullptr, 0), 0U);
}

TEST(Account, OfABackendWithoutACacheIsShort) {
  OutOfMemory account;
  account.requested = std::size_t{256} << 40;
  account.driver_result = CUDA_ERROR_OUT_OF_MEMORY;
  Statistics statistics;
  statistics.reserved_bytes[0].current = 32 << 20;
  statistics.allocated_bytes[0].current = 1 << 20;
  statistics.allocation[0].current = 3;
  statistics.num_ooms = 1;
  EXPECT_EQ(FormatDriverOutOfMemory(account, statistics, "cuMemAllocFromPoolAsync"),
            "out of memory on device 0: 256.00 TiB asked for; cuMemAllocFromPoolAsync answered OUT_OF_MEMORY (2)\n"
            "  device     the driver did not say how much is free\n"
            "  allocator  32.00 MiB reserved: 1.00 MiB allocated in 3 blocks\n"
            "  so far     1 out of memory\n");
  account.device_free = std::size_t{1} << 30;
  account.device_total = std::size_t{2} << 30;
  EXPECT_THAT(FormatDriverOutOfMemory(account, statistics, "cuMemAlloc"), testing::HasSubstr("  device     1.00 GiB free of 2.00 GiB\n"));
}

TEST(StatisticsList, HasEveryCounterOnceUnderPyTorchsNames) {
  // Each eight bytes of the structure hold their own number, so a counter that is left out or listed twice shows.
  Statistics statistics;
  static_assert(sizeof(Statistics) % sizeof(std::int64_t) == 0);
  std::vector<std::int64_t> numbers(sizeof(Statistics) / sizeof(std::int64_t));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i + 1);
  std::memcpy(static_cast<void*>(&statistics), numbers.data(), sizeof(statistics));
  std::vector<std::int64_t> listed;
  std::vector<std::string> names;
  for (const auto& [name, value] : ListStatistics(statistics)) {
    names.push_back(name);
    listed.push_back(value);
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(numbers));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_THAT(names,
              testing::IsSupersetOf({"allocation.all.current", "allocated_bytes.large_pool.peak", "reserved_bytes.small_pool.allocated",
                                     "inactive_split_bytes.all.freed", "requested_bytes.all.current", "num_alloc_retries", "num_ooms",
                                     "num_device_alloc", "oversize_segments.current", "uses_recorded"}));
}

}  // namespace
}  // namespace cuaudit::alloc::history_test
