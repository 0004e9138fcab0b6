// SPDX-License-Identifier: MIT
// Recordings in rings: what makes room, what a kill leaves, what a reader believes, and what packing keeps.
#include "harness/recording/recording.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/journal/journal.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/recording.h"
#include "faults/journal/stack_key.h"
#include "faults/journal/stack_table.h"
#include "harness/recording/pack.h"

namespace cuaudit::harness::recording_test {
namespace {

using namespace cuaudit::faults;

constexpr auto kMake = static_cast<std::uint16_t>(driver::CallId::EventCreate);
constexpr auto kCopy = static_cast<std::uint16_t>(driver::CallId::MemcpyHtoD_v2);

// The bytes of a file in memory that is aligned for its rows.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : size_(bytes.size()), words_(std::make_unique<std::uint64_t[]>(size_ / 8 + 1)) {
    std::memcpy(words_.get(), bytes.data(), size_);
  }
  char* data() { return reinterpret_cast<char*>(words_.get()); }
  std::size_t size() const { return size_; }
  JournalHeader& header() { return *reinterpret_cast<JournalHeader*>(words_.get()); }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint64_t[]> words_;
};

class File {
 public:
  explicit File(std::size_t slots = 64, std::uint32_t window = 0) {
    const int file = mkstemp(path_);
    EXPECT_GE(file, 0);
    close(file);
    JournalOptions options;
    options.record_capacity = slots;
    options.recording = true;
    options.window = window;
    options.tool_version = "1.2.3";
    EXPECT_EQ(CreateJournal(path_, options), nullptr);
    EXPECT_EQ(journal.Open(path_), nullptr);
  }
  ~File() { unlink(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string Read() const {
    std::string bytes;
    const int file = open(path_, O_RDONLY | O_CLOEXEC);
    char block[1 << 16];
    for (ssize_t got = 0; (got = read(file, block, sizeof(block))) > 0;) bytes.append(block, static_cast<std::size_t>(got));
    close(file);
    return bytes;
  }
  const char* path() const { return path_; }

  Journal journal;

 private:
  char path_[32] = "/tmp/cuaudit-recording-XXXXXX";
};

Record* Begin(Journal* journal, std::uint16_t call, std::uint64_t value) {
  Record* const record = journal->Begin(IsPassing(RecordKind::Call, call));
  if (record == nullptr) return nullptr;
  record->kind = RecordKind::Call;
  record->call = call;
  record->argument[0] = value;
  journal->Entered(record);
  return record;
}

void Append(Journal* journal, std::uint16_t call, std::uint64_t value) {
  Record* const record = Begin(journal, call, value);
  ASSERT_NE(record, nullptr);
  journal->Finish(record);
}

// What a reader makes of these bytes; nothing when they are refused.
Recording ReadBytes(std::string_view text) {
  Bytes bytes(text);
  JournalView view;
  const char* const wrong = view.Open(bytes.data(), bytes.size());
  EXPECT_EQ(wrong, nullptr) << wrong;
  return wrong == nullptr ? ReadRecording(view) : Recording();
}

std::string Packed(std::string_view text) {
  Bytes bytes(text);
  JournalView view;
  EXPECT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  return PackRecording(view, ReadRecording(view));
}

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
}

TEST(Recording, AnyChangedByteOfARecordIsNoticed) {
  File file(8);
  Append(&file.journal, kMake, 42);
  Bytes bytes(file.Read());
  const std::size_t at = bytes.header().records_offset;
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  ASSERT_EQ(ReadRecording(view).records.size(), 1U);
  for (std::size_t byte = 0; byte < sizeof(Record); ++byte) {
    for (const char change : {'\x01', '\x80'}) {
      char& changed = bytes.data()[at + byte];
      changed = static_cast<char>(changed ^ change);
      EXPECT_EQ(ReadRecording(view).records.size(), 0U) << byte;
      EXPECT_EQ(ReadRecording(view).damaged, 1U) << byte;
      changed = static_cast<char>(changed ^ change);
    }
  }
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
  EXPECT_GE(seen.records.size(), 50U);
  for (std::size_t i = 1; i < seen.records.size(); ++i) EXPECT_LT(seen.records[i - 1].begin, seen.records[i].begin);
}

TEST(Recording, TheWindowLeavesOutWhatIsOlder) {
  File file(64);
  for (std::uint64_t i = 0; i < 20; ++i) Append(&file.journal, i % 2 == 0 ? kMake : kCopy, i);
  Bytes bytes(file.Read());
  auto* const slots = reinterpret_cast<RecordSlot*>(bytes.data() + bytes.header().records_offset);
  for (std::size_t i = 0; i < 64; ++i) slots[i].time = static_cast<std::uint32_t>(slots[i].record.argument[0] * 100);
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  EXPECT_EQ(ReadRecording(view).records.size(), 20U);
  const Recording seen = ReadRecording(view, 500);  // of 19 seconds the last five
  ASSERT_EQ(seen.records.size(), 6U);
  EXPECT_EQ(seen.records.front().argument[0], 14U);
  EXPECT_EQ(seen.gone[kLasting], 7U);
  EXPECT_FALSE(seen.WholeOfWhatLasts());
}

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
    EXPECT_NE(view.modules()[FrameModule(frames[i])].base.load(), 0U) << "the load address";
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
    const std::size_t in_slot = (at - records_at) % sizeof(RecordSlot);
    if (in_slot < sizeof(Record)) {
      EXPECT_EQ(ReadRecording(view).records.size(), 2U) << at;
      EXPECT_EQ(ReadRecording(view).damaged, 1U) << at;
    }
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
