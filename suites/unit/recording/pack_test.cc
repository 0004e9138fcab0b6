// SPDX-License-Identifier: MIT
// Packed recordings: what packing keeps, which files a reader refuses, and who still writes one.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "faults/journal/stack_key.h"
#include "faults/journal/stack_table.h"
#include "harness/recording/recording.h"
#include "suites/unit/recording/recorded_file.h"

namespace cuaudit::harness::recording_test {
namespace {

TEST(Pack, KeepsRecordsTimesAndStacks) {
  File file(64);
  auto stacks = std::make_unique<StackTable>();
  stacks->Attach(&file.journal, false);
  Record* const record = Begin(&file.journal, kMake, 1);
  record->stack = stacks->Capture();
  ASSERT_NE(record->stack, 0U);
  file.journal.Finish(record);
  Append(&file.journal, kCopy, 2);
  ASSERT_NE(Begin(&file.journal, kMake, 3), nullptr);

  Bytes before(file.Read());
  JournalView old_view;
  ASSERT_EQ(old_view.Open(before.data(), before.size()), nullptr);
  Recording old = ReadRecording(old_view);
  Bytes after(PackRecording(old_view, old));
  EXPECT_LT(after.size(), 64U << 10U) << "small enough to send";
  JournalView view;
  ASSERT_EQ(view.Open(after.data(), after.size()), nullptr);
  const Recording seen = ReadRecording(view);
  ASSERT_EQ(seen.records.size(), 3U);
  EXPECT_EQ(seen.times, old.times);
  EXPECT_EQ(seen.records[2].end, 0U);
  for (std::size_t i = 0; i < 3; ++i) {
    old.records[i].stack = seen.records[i].stack;
    EXPECT_EQ(std::memcmp(&seen.records[i], &old.records[i], sizeof(Record)), 0) << i;
  }
  const auto frames = view.Stack(seen.records[0].stack);
  const auto old_frames = old_view.Stack(ReadRecording(old_view).records[0].stack);
  ASSERT_EQ(frames.size(), old_frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(FrameOffset(frames[i]), FrameOffset(old_frames[i]));
    EXPECT_EQ(view.ModulePath(FrameModule(frames[i])), old_view.ModulePath(FrameModule(old_frames[i])));
    if (FrameModule(frames[i]) == kNoModule) continue;
    EXPECT_EQ(view.modules()[FrameModule(frames[i])].base.load(), old_view.modules()[FrameModule(old_frames[i])].base.load())
        << "the load address, 0 for a program that is linked at a fixed place";
  }
  EXPECT_EQ(PackRecording(view, seen), std::string(after.data(), after.size())) << "packing twice changes nothing";
}

TEST(Pack, NobodyAppendsToAPackedRecording) {
  File file;
  Append(&file.journal, kMake, 1);
  const std::string packed = Packed(file.Read());
  const int out = open(file.path(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  ASSERT_EQ(write(out, packed.data(), packed.size()), static_cast<ssize_t>(packed.size()));
  close(out);
  Journal other;
  EXPECT_NE(other.Open(file.path()), nullptr);
}

TEST(Pack, RemembersWhatMadeRoom) {
  File file(64);
  for (std::uint64_t i = 0; i < 200; ++i) Append(&file.journal, kMake, i);
  const Recording seen = ReadBytes(Packed(file.Read()));
  EXPECT_EQ(seen.records.size(), 48U);
  EXPECT_EQ(seen.gone[kLasting], 152U);
  EXPECT_FALSE(seen.WholeOfWhatLasts());
}

TEST(Pack, RemembersWhatWasTornAndDamaged) {
  File file(64);
  for (std::uint64_t i = 0; i < 3; ++i) Append(&file.journal, kMake, i);
  ASSERT_NE(file.journal.Begin(), nullptr) << "a record that its process never came to finish";
  Bytes bytes(file.Read());
  bytes.data()[bytes.header().records_offset + sizeof(RecordSlot) + 8] ^= 0x40;
  const std::string raw(bytes.data(), bytes.size());
  for (const std::string& text : {raw, Packed(raw), Packed(Packed(raw))}) {
    const Recording seen = ReadBytes(text);
    EXPECT_EQ(seen.records.size(), 2U);
    EXPECT_EQ(seen.torn, 1U);
    EXPECT_EQ(seen.damaged, 1U);
    EXPECT_FALSE(seen.Whole());
    EXPECT_FALSE(seen.Undamaged());
  }
}

// What cuaudit wrote before the header had a check and counts: `fixed_check` is 0, and checks are of the record alone.
TEST(Pack, AnEarlierFormIsReadAndNeverCalledWhole) {
  File file;
  for (std::uint64_t i = 0; i < 3; ++i) Append(&file.journal, kMake, i);
  Bytes bytes(Packed(file.Read()));
  bytes.header().fixed_check = 0;
  auto* const slots = reinterpret_cast<RecordSlot*>(bytes.data() + bytes.header().records_offset);
  for (std::size_t i = 0; i < 3; ++i) slots[i].done.store(CheckOf(slots[i].record));
  bytes.header().tables_check = DigestOf(bytes.header(), bytes.data());
  const std::string earlier(bytes.data(), bytes.size());
  for (const std::string& text : {earlier, Packed(earlier)}) {
    const Recording seen = ReadBytes(text);
    EXPECT_EQ(seen.records.size(), 3U);
    EXPECT_TRUE(seen.Undamaged());
    EXPECT_TRUE(seen.counts_unknown);
    EXPECT_FALSE(seen.Whole()) << "nobody knows what was damaged when it was packed";
  }
}

TEST(Pack, AnyChangedByteIsRefusedOrNoticed) {
  File file(8);
  auto stacks = std::make_unique<StackTable>();
  stacks->Attach(&file.journal, false);
  for (std::uint64_t i = 0; i < 3; ++i) {
    Record* const record = Begin(&file.journal, kMake, i);
    record->stack = stacks->Capture();
    file.journal.Finish(record);
  }
  const std::string good = Packed(file.Read());
  Bytes whole(good);
  const std::size_t records_at = whole.header().records_offset;
  for (std::size_t at = 0; at < good.size(); at += at < records_at ? 5 : 1) {
    Bytes changed(good);
    changed.data()[at] = static_cast<char>(changed.data()[at] ^ 0x20);
    JournalView view;
    const char* const wrong = view.Open(changed.data(), changed.size());
    if (at < records_at) {
      EXPECT_NE(wrong, nullptr) << at;
      continue;
    }
    ASSERT_EQ(wrong, nullptr) << at;
    EXPECT_EQ(ReadRecording(view).records.size(), 2U) << at;
    EXPECT_EQ(ReadRecording(view).damaged, 1U) << at;
  }
}

TEST(Reader, RefusesStrangersInOneLine) {
  File file;
  Append(&file.journal, kMake, 1);
  for (const std::string& good : {file.Read(), Packed(file.Read())}) {
    const auto refused = [&](auto change) {
      Bytes bytes(good);
      change(&bytes.header());
      JournalView view;
      const char* const wrong = view.Open(bytes.data(), bytes.size());
      return wrong == nullptr ? std::string() : std::string(wrong);
    };
    const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
    EXPECT_TRUE(has(refused([](JournalHeader* h) { h->version = kJournalVersion + 1; }), "another version"));
    EXPECT_TRUE(has(refused([](JournalHeader* h) { h->version = __builtin_bswap32(h->version); }), "other order of bytes"));
    EXPECT_TRUE(has(refused([](JournalHeader* h) { h->byte_order = __builtin_bswap32(h->byte_order); }), "order of bytes"));
    EXPECT_TRUE(has(refused([](JournalHeader* h) { h->pointer_bytes = 4; }), "other pointers"));
    EXPECT_TRUE(has(refused([](JournalHeader* h) { ++h->table_digest; }), "other CUDA headers"));
    EXPECT_TRUE(has(refused([](JournalHeader* h) { h->stack_rows = 1U << 30U; }), "damaged"));
    EXPECT_TRUE(has(refused([](JournalHeader* h) { h->module_rows = ~0U; }), "damaged"));
    EXPECT_TRUE(has(refused([](JournalHeader* h) { h->records_offset = ~std::uint64_t{0}; }), "damaged"));
  }
}

TEST(Reader, RefusesAHeaderThatIsNotTheOneThatWasMade) {
  File file;
  Append(&file.journal, kMake, 1);
  for (const std::string& good : {file.Read(), Packed(file.Read())}) {
    const auto opens = [&](auto change) {
      Bytes bytes(good);
      change(&bytes.header());
      JournalView view;
      return view.Open(bytes.data(), bytes.size()) == nullptr;
    };
    EXPECT_TRUE(opens([](JournalHeader*) {}));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->flags.fetch_xor(kRecording); })) << "it would be an audit's journal without a record";
    EXPECT_FALSE(opens([](JournalHeader* h) { h->flags.fetch_xor(kPacked); }));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->flags.fetch_xor(kCountsUnknown); }));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->record_capacity ^= 2; }));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->window ^= 1; }));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->started ^= 1; }));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->ring[kPassing].first ^= 1; }));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->ring[kLasting].slots ^= 1; }));
    EXPECT_FALSE(opens([](JournalHeader* h) { h->fixed_check ^= 1; }));
    // Nor is one believed that an earlier tool made, which had no check.
    EXPECT_FALSE(opens([](JournalHeader* h) { h->flags.fetch_xor(kRecording), h->fixed_check = 0; }));
  }
}

TEST(Writers, AProcessThatHasTheFileMappedIsOne) {
  File file;
  int way[2] = {-1, -1};
  ASSERT_EQ(pipe2(way, O_CLOEXEC), 0);
  EXPECT_FALSE(WriterOf(file.path(), ReadBytes(file.Read()))) << "this process does not count";
  const pid_t child = fork();  // it inherits the mapping
  if (child == 0) {
    close(way[1]);
    char byte = 0;
    _exit(read(way[0], &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_EQ(WriterOf(file.path(), ReadBytes(file.Read())), child);
  close(way[1]);
  close(way[0]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(WriterOf(file.path(), ReadBytes(file.Read())));
}

TEST(Reader, ReadsNothingBeyondAnyCut) {
  File file(8);
  for (std::uint64_t i = 0; i < 6; ++i) Append(&file.journal, kMake, i);
  const std::string good = Packed(file.Read());
  std::size_t most = 0;
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    const auto exact = std::make_unique<char[]>(cut);  // what AddressSanitizer watches
    std::memcpy(exact.get(), good.data(), cut);
    JournalView view;
    if (view.Open(exact.get(), cut) != nullptr) continue;
    EXPECT_TRUE(view.truncated()) << cut;
    const std::size_t records = ReadRecording(view).records.size();
    EXPECT_GE(records, most) << cut;
    most = records;
  }
  EXPECT_EQ(most, 5U);
}

TEST(Data, WhatACallWritesIsNeverRecorded) {
  EXPECT_TRUE(IsData(driver::BaseId::MemsetD32, 1));
  EXPECT_TRUE(IsData(driver::BaseId::StreamWriteValue64, 2));
  EXPECT_FALSE(IsData(driver::BaseId::MemsetD32, 0)) << "an address";
  EXPECT_FALSE(IsData(driver::BaseId::MemsetD32, 2)) << "a length";
  EXPECT_FALSE(IsData(driver::BaseId::MemAlloc, 1));
}

}  // namespace
}  // namespace cuaudit::harness::recording_test
