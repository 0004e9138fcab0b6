// SPDX-License-Identifier: MIT
// Recordings in rings: what makes room, what a kill leaves, and what a reader believes.
#include "harness/recording/recording.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "suites/unit/recording/recorded_file.h"

namespace cuaudit::harness::recording_test {
namespace {

TEST(Recording, BeginsWithTheProgramWhileThereIsRoom) {
  File file;
  for (std::uint64_t i = 0; i < 40; ++i) Append(&file.journal, kMake, i);
  const Recording seen = ReadBytes(file.Read());
  ASSERT_EQ(seen.records.size(), 40U);
  for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(seen.records[i].argument[0], i);
  EXPECT_TRUE(seen.Whole());
}

TEST(Recording, NewRecordsTakeThePlaceOfTheOldest) {
  File file(64);  // 48 and 16
  for (std::uint64_t i = 0; i < 200; ++i) Append(&file.journal, kMake, i);
  const Recording seen = ReadBytes(file.Read());
  ASSERT_EQ(seen.records.size(), 48U);
  EXPECT_EQ(seen.records.front().argument[0], 152U);
  EXPECT_EQ(seen.records.back().argument[0], 199U);
  EXPECT_EQ(seen.gone[kLasting], 152U);
  EXPECT_EQ(seen.gone_until[kLasting], 2U * 152U) << "two tickets a record";
  EXPECT_FALSE(seen.WholeOfWhatLasts());
}

TEST(Recording, LaunchesAndCopiesPushOutNothingThatLasts) {
  File file(64);
  for (std::uint64_t i = 0; i < 10; ++i) Append(&file.journal, kMake, i);
  for (std::uint64_t i = 0; i < 1000; ++i) Append(&file.journal, kCopy, i);
  const Recording seen = ReadBytes(file.Read());
  EXPECT_EQ(seen.records.size(), 10U + 16U);
  EXPECT_TRUE(seen.WholeOfWhatLasts());
  EXPECT_FALSE(seen.Whole());
  EXPECT_EQ(seen.gone[kPassing], 1000U - 16U);
}

TEST(Recording, ACallUnderWayKeepsItsSlot) {
  File file(64);
  Record* const waiting = Begin(&file.journal, kMake, 4711);
  for (std::uint64_t i = 0; i < 500; ++i) Append(&file.journal, kMake, i);
  Recording seen = ReadBytes(file.Read());
  ASSERT_EQ(seen.records.size(), 48U);
  EXPECT_EQ(seen.records.front().argument[0], 4711U) << "it may be why the program stands still";
  EXPECT_EQ(seen.records.front().end, 0U);
  file.journal.Finish(waiting);
  seen = ReadBytes(file.Read());
  EXPECT_EQ(seen.torn + seen.damaged, 0U);
}

TEST(Recording, CallsThatNeverReturnCannotFillItForEver) {
  File file(8);  // 6 and 2
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_NE(Begin(&file.journal, kMake, i), nullptr);
  EXPECT_EQ(Begin(&file.journal, kMake, 7), nullptr) << "the program goes on without a record";
  const Recording seen = ReadBytes(file.Read());
  EXPECT_EQ(seen.dropped, 1U);
  EXPECT_FALSE(seen.Undamaged());
}

TEST(Recording, AKillTearsAtMostTheRecordBeingWritten) {
  File file;
  const pid_t child = fork();
  if (child == 0) {
    for (std::uint64_t i = 0; i < 10; ++i) Append(&file.journal, kMake, i);
    Begin(&file.journal, kMake, 99);
    Record* const half = file.journal.Begin();
    half->kind = RecordKind::Call;
    half->call = kMake;
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const Recording seen = ReadBytes(file.Read());
  ASSERT_EQ(seen.records.size(), 11U);
  EXPECT_EQ(seen.records.back().argument[0], 99U);
  EXPECT_EQ(seen.records.back().end, 0U) << "a call that did not return";
  EXPECT_EQ(seen.torn, 1U);
  EXPECT_EQ(seen.damaged, 0U);
  EXPECT_FALSE(seen.Whole()) << "the torn record is something that it lacks";
}

TEST(Recording, AnyChangedByteOfASlotIsNoticed) {
  File file(8);
  Append(&file.journal, kMake, 42);
  Bytes bytes(file.Read());
  const std::size_t at = bytes.header().records_offset;
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  ASSERT_EQ(ReadRecording(view).records.size(), 1U);
  for (std::size_t byte = 0; byte < sizeof(RecordSlot); ++byte) {
    for (const char change : {'\x01', '\x80'}) {
      char& changed = bytes.data()[at + byte];
      changed = static_cast<char>(changed ^ change);
      EXPECT_EQ(ReadRecording(view).records.size(), 0U) << byte;
      EXPECT_EQ(ReadRecording(view).damaged, 1U) << byte;
      changed = static_cast<char>(changed ^ change);
    }
  }
}

TEST(Recording, ASlotThatWasTakenIsNeverFreeAgain) {
  File file(8);
  for (std::uint64_t i = 0; i < 3; ++i) Append(&file.journal, kMake, i);
  Append(&file.journal, kCopy, 3);
  const std::string raw = file.Read();
  for (const std::string& good : {raw, Packed(raw)}) {
    const Recording whole = ReadBytes(good);
    ASSERT_EQ(whole.records.size(), 4U);
    EXPECT_TRUE(whole.Whole());
    Bytes bytes(good);
    auto* const slots = reinterpret_cast<RecordSlot*>(bytes.data() + bytes.header().records_offset);
    for (const std::size_t at : {std::size_t{0}, std::size_t{2}, good.size() == raw.size() ? std::size_t{6} : std::size_t{3}}) {
      for (const std::size_t zeroed : {sizeof(RecordSlot), sizeof(slots->state)}) {
        const std::string kept(reinterpret_cast<const char*>(&slots[at]), sizeof(RecordSlot));
        std::memset(zeroed == sizeof(RecordSlot) ? static_cast<void*>(&slots[at]) : static_cast<void*>(&slots[at].state), 0, zeroed);
        const Recording seen = ReadBytes({bytes.data(), bytes.size()});
        EXPECT_EQ(seen.records.size(), 3U) << at;
        EXPECT_EQ(seen.damaged, 1U) << at;
        std::memcpy(static_cast<void*>(&slots[at]), kept.data(), kept.size());
      }
    }
  }
}

TEST(Recording, ARingOfAFullDiskEndsWhereItsStorageEnds) {
  File file(64);
  for (std::uint64_t i = 0; i < 5; ++i) Append(&file.journal, kMake, i);
  file.journal.header().ring[kLasting].reserved.store(4);
  file.journal.header().flags.fetch_or(kNoSpace);
  file.journal.header().ring[kLasting].next.store(40);
  EXPECT_EQ(ReadBytes(file.Read()).damaged, 0U);
}

TEST(Recording, ManyThreadsShareASmallRing) {
  File file(64);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 3000; ++i) Append(&file.journal, i % 3 == 0 ? kCopy : kMake, t << 32U | i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Recording seen = ReadBytes(file.Read());
  EXPECT_EQ(seen.torn + seen.damaged + seen.dropped, 0U);
  EXPECT_LE(seen.records.size(), 64U);
  EXPECT_GE(seen.records.size(), 32U);  // how far one of the two rings is ahead of the other is chance
  for (std::size_t i = 1; i < seen.records.size(); ++i) EXPECT_LT(seen.records[i - 1].begin, seen.records[i].begin);
}

TEST(Recording, TheWindowLeavesOutWhatIsOlder) {
  File file(64);
  for (std::uint64_t i = 0; i < 20; ++i) Append(&file.journal, i % 2 == 0 ? kMake : kCopy, i);
  Bytes bytes(file.Read());
  auto* const slots = reinterpret_cast<RecordSlot*>(bytes.data() + bytes.header().records_offset);
  for (std::size_t i = 0; i < 64; ++i) {
    slots[i].time = static_cast<std::uint32_t>(slots[i].record.argument[0] * 100);
    slots[i].done.store(DoneCheckOf(slots[i]));
  }
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  EXPECT_EQ(ReadRecording(view).records.size(), 20U);
  const Recording seen = ReadRecording(view, 500);  // of 19 seconds the last five
  ASSERT_EQ(seen.records.size(), 6U);
  EXPECT_EQ(seen.records.front().argument[0], 14U);
  EXPECT_EQ(seen.gone[kLasting], 7U);
  EXPECT_FALSE(seen.WholeOfWhatLasts());
}

}  // namespace
}  // namespace cuaudit::harness::recording_test
