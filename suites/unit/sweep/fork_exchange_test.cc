// SPDX-License-Identifier: MIT
// What the tool and the forks of a program tell each other in shared files.
#include "harness/sweep/runners/fork_exchange.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "faults/driver/call_id.h"
#include "faults/journal/journal_view.h"
#include "harness/process/files.h"
#include "harness/sweep/runners/fork_control.h"
#include "harness/sweep/runners/make_runner.h"
#include "suites/support/journal_builder.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::fork_exchange_test {
namespace {

// The test writes what a program and its forks would write into the shared file.

using driver::CallId;
using faults::ForkHeader;
using faults::ForkNode;
using faults::ForkSlot;
using faults::JournalHeader;
using faults::kNoSlot;
using faults::Record;

constexpr std::size_t kRecords = 4096;

std::vector<std::vector<faults::Fault>> Lists(int forks) {
  std::vector<std::vector<faults::Fault>> lists;
  for (int i = 1; i <= forks; ++i) {
    faults::Fault fault;
    const std::string text = "cuStreamCreate#" + std::to_string(i) + "=OUT_OF_MEMORY";
    EXPECT_EQ(faults::ParseFault(text, &fault).expected, nullptr);
    lists.push_back({fault});
    faults::Fault second;
    EXPECT_EQ(faults::ParseFault("cuStreamDestroy#1=INVALID_VALUE", &second).expected, nullptr);
    lists.push_back({fault, second});
  }
  return lists;
}

class ForkExchangeTest : public ::testing::Test {
 protected:
  void Make(int forks) {
    Result<std::unique_ptr<ForkExchange>> made =
        ForkExchange::Make(dir_.File("forks"), dir_.File("trunk"), PlantForks(Lists(forks)), kRecords, {2, 2});
    ASSERT_TRUE(made.ok()) << made.status().message();
    exchange_ = std::move(*made);
    const int file = open(dir_.File("forks").c_str(), O_RDWR | O_CLOEXEC);
    struct stat facts = {};
    ASSERT_EQ(fstat(file, &facts), 0);
    bytes_ = static_cast<std::size_t>(facts.st_size);
    file_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
  }
  void TearDown() override {
    if (file_ != nullptr) munmap(file_, bytes_);
  }

  const ForkHeader& header() const { return exchange_->header(); }
  ForkNode& Node(std::uint32_t i) { return reinterpret_cast<ForkNode*>(file_ + header().nodes_offset)[i]; }
  ForkSlot& Shared(std::uint32_t slot) { return reinterpret_cast<ForkSlot*>(file_ + header().slots_offset)[slot]; }
  JournalHeader& Slot(std::uint32_t slot) {
    return *reinterpret_cast<JournalHeader*>(file_ + header().journals_offset + slot * header().journal_bytes);
  }
  // As the parent does before it goes on.
  void Fork(std::uint32_t node, std::uint32_t slot, std::uint32_t parent_slot) {
    const JournalHeader& parent = parent_slot == kNoSlot ? trunk_.header() : Slot(parent_slot);
    Node(node).slot = slot;
    Node(node).parent_slot = parent_slot;
    Node(node).parent_records = parent.next_record.load();
    Node(node).pid = 1000 + static_cast<std::int32_t>(node);
    Shared(slot).node = node;
    Shared(slot).state = faults::SlotState::Claimed;
    std::memcpy(static_cast<void*>(&Slot(slot)), static_cast<const void*>(&parent), sizeof(JournalHeader));
    Slot(slot).next_record.store(0);
    Slot(slot).record_capacity = header().record_capacity;
  }
  Record& Write(std::uint32_t slot, CallId call, std::uint64_t handle) {
    JournalHeader& journal = Slot(slot);
    auto* const records = reinterpret_cast<Record*>(reinterpret_cast<char*>(&journal) + header().records_offset);
    Record& record = records[journal.next_record.fetch_add(1)];
    record = Record();
    record.kind = faults::RecordKind::Call;
    record.call = static_cast<std::uint16_t>(call);
    record.begin = journal.clock.fetch_add(1) + 1;
    record.end = journal.clock.fetch_add(1) + 1;
    record.pid = 1;
    record.tid = 1;
    record.flags = faults::kForwarded;
    record.context = 0xc0;
    record.argument[0] = handle;
    return record;
  }
  // Three records of the program itself: a stream that stays, an event that comes and goes.
  void Trunk(std::uint64_t n) {
    trunk_.Call(CallId::StreamCreate).argument[0] = 0x1000 + n;
    trunk_.Call(CallId::EventCreate).argument[0] = 0x9000 + n;
    trunk_.Call(CallId::EventDestroy_v2).argument[0] = 0x9000 + n;
  }

  TemporaryDir dir_;
  JournalBuilder trunk_{dir_.File("trunk"), kRecords};
  std::unique_ptr<ForkExchange> exchange_;
  char* file_ = nullptr;
  std::size_t bytes_ = 0;
};

void ExpectWhole(const Observation& seen, std::size_t records, std::size_t own) {
  EXPECT_EQ(seen.journal.records().size(), records);
  EXPECT_EQ(seen.journal.own_records().size(), own);
  EXPECT_TRUE(seen.ledger == Fold(seen.journal.records())) << "of " << records << " records";
}

// Whoever forks in turn must not wait for those that wait for it, so each depth has slots of its own.
TEST_F(ForkExchangeTest, EachDepthHasItsSlots) {
  Make(1);
  std::vector<std::uint32_t> pools;
  for (std::uint32_t slot = 0; slot < header().slots; ++slot) pools.push_back(exchange_->slot(slot).pool);
  const std::uint32_t depth = exchange_->node(exchange_->node(0).first_child).depth;
  EXPECT_EQ(pools, std::vector<std::uint32_t>({0, 0, depth, depth}));
}

TEST_F(ForkExchangeTest, AFileThatDoesNotFitIntoTheAddressSpaceIsAnError) {
  constexpr rlim_t kRoom = rlim_t{16} << 20U;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const Result<std::string> pages = ReadFile("/proc/self/statm");
  ASSERT_TRUE(pages.ok());
  rlimit narrow = before;
  narrow.rlim_cur = std::stoul(*pages) * static_cast<rlim_t>(getpagesize()) + kRoom;
  const std::vector<faults::ForkNode> rows = PlantForks(Lists(1));
  ASSERT_EQ(setrlimit(RLIMIT_AS, &narrow), 0);
  const Result<std::unique_ptr<ForkExchange>> made =
      ForkExchange::Make(dir_.File("forks"), dir_.File("trunk"), rows, 2 * kRoom / sizeof(Record), {2, 2});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(), dir_.File("forks") + ": cannot map: Cannot allocate memory");
}

TEST_F(ForkExchangeTest, ALedgerThatGoesOnIsThatOfTheWholeJournal) {
  constexpr std::uint32_t kForks = 100;
  Make(kForks);
  for (std::uint32_t i = 0; i < kForks; ++i) {
    const std::uint32_t first = exchange_->node(0).first_child + i;
    const std::uint32_t second = exchange_->node(first).first_child;
    Fork(first, 2, kNoSlot);
    exchange_->Follow(exchange_->Noted(2));
    Trunk(i);
    Write(2, CallId::EventCreate, 0x8000);
    Fork(second, 0, 2);
    exchange_->Follow(exchange_->Noted(0));
    Write(2, CallId::EventDestroy_v2, 0x8000);
    if (i > 0) Write(0, CallId::StreamDestroy_v2, 0x1000);
    ExpectWhole(exchange_->Collect(second, {}), 3 * i + (i > 0 ? 2 : 1), i > 0 ? 2 : 1);
    ExpectWhole(exchange_->Collect(first, {}), 3 * i + 2, 2);
    exchange_->Free(0);
    exchange_->Free(2);
  }
  EXPECT_LE(exchange_->folded(), 3 * kForks + 4 * kForks) << "each record once";
  EXPECT_LE(exchange_->copied(), 2 * (3 * kForks + 4 * kForks)) << "and again when the room for them has to grow";
}

TEST_F(ForkExchangeTest, AForkThatIsSeenTooLateIsFoldedWhole) {
  Make(2);
  const std::uint32_t first = exchange_->node(0).first_child;
  Trunk(0);
  Fork(first, 0, kNoSlot);
  Trunk(1);
  Fork(first + 1, 1, kNoSlot);
  exchange_->Follow(exchange_->Noted(1));
  exchange_->Follow(exchange_->Noted(0));
  Write(0, CallId::StreamDestroy_v2, 0x1000);
  ExpectWhole(exchange_->Collect(first, {}), 4, 1);
  ExpectWhole(exchange_->Collect(first + 1, {}), 6, 0);
}

// The program was inside a call when it was forked, and has left it by the time that the fork is looked at.
TEST_F(ForkExchangeTest, WhatMayHaveChangedSinceTheForkIsFoldedWhole) {
  Make(2);
  const std::uint32_t first = exchange_->node(0).first_child;
  Trunk(0);
  Record& outer = trunk_.Call(CallId::StreamSynchronize);
  const std::uint64_t end = outer.end;
  outer.end = 0;
  Fork(first, 0, kNoSlot);
  exchange_->Follow(exchange_->Noted(0));
  Trunk(1);
  outer.end = end + 100;
  Fork(first + 1, 1, kNoSlot);
  exchange_->Follow(exchange_->Noted(1));
  Write(0, CallId::StreamDestroy_v2, 0x1000);
  ExpectWhole(exchange_->Collect(first, {}), 5, 1);
  Write(1, CallId::StreamDestroy_v2, 0x1000);
  ExpectWhole(exchange_->Collect(first + 1, {}), 8, 1);
}

// A program writes over the tables that it shares with the tool. Each field is wrong alone.
TEST_F(ForkExchangeTest, WhatNobodyCanHaveNotedIsNoFork) {
  Make(2);
  const std::uint32_t first = exchange_->node(0).first_child;
  const std::uint32_t second = exchange_->node(first).first_child;
  EXPECT_EQ(exchange_->Noted(2).node, 0U) << "free";
  Shared(2).state = static_cast<faults::SlotState>(7);
  EXPECT_EQ(exchange_->Noted(2).node, ForkExchange::kNobody);
  Fork(first, 2, kNoSlot);
  const ForkExchange::Fork right = exchange_->Noted(2);
  EXPECT_TRUE(exchange_->Fits(right, 2));
  for (const std::uint32_t node : {header().nodes, 0xffffffffU}) {
    Shared(2).node = node;
    EXPECT_EQ(exchange_->Noted(2).node, ForkExchange::kNobody) << node;
  }
  EXPECT_FALSE(exchange_->Fits(right, 3)) << "it notes another slot";
  Fork(first, 0, kNoSlot);
  EXPECT_FALSE(exchange_->Fits(exchange_->Noted(0), 0)) << "a slot of processes that fork no further";
  Fork(first, 2, 1);
  EXPECT_FALSE(exchange_->Fits(exchange_->Noted(2), 2)) << "of a parent that forks no further";
  exchange_->Follow(right);
  EXPECT_FALSE(exchange_->Fits(right, 2)) << "a node forks once";
  Fork(second, 0, 2);
  EXPECT_TRUE(exchange_->Fits(exchange_->Noted(0), 0));
  Fork(second, 0, kNoSlot);
  EXPECT_FALSE(exchange_->Fits(exchange_->Noted(0), 0)) << "its parent is in slot 2";
}

TEST_F(ForkExchangeTest, WhatIsOverwrittenIsNoEvidence) {
  Make(2);
  const std::uint32_t first = exchange_->node(0).first_child;
  const std::uint32_t second = exchange_->node(first).first_child;
  Trunk(0);
  Fork(first, 2, kNoSlot);
  exchange_->Follow(exchange_->Noted(2));
  Fork(second, 0, 2);
  exchange_->Follow(exchange_->Noted(0));
  EXPECT_TRUE(exchange_->Whole(0));
  EXPECT_TRUE(exchange_->Whole(second));
  const auto overwritten = [&](auto* field, auto value) {
    const auto before = value;
    std::memcpy(static_cast<void*>(&value), static_cast<const void*>(field), sizeof(value));
    std::memcpy(static_cast<void*>(field), static_cast<const void*>(&before), sizeof(value));
    const bool noticed = !exchange_->Whole(second);
    std::memcpy(static_cast<void*>(field), static_cast<const void*>(&value), sizeof(value));
    return noticed && exchange_->Whole(second);
  };
  EXPECT_TRUE(overwritten(&Node(second).trial, 0x7fffffffU));
  EXPECT_TRUE(overwritten(&Node(first).parent, 0x7fffffffU)) << "of its parent";
  EXPECT_TRUE(overwritten(&Node(first).fault, faults::Fault()));
  EXPECT_TRUE(overwritten(&Node(first).slot, 99U));
  EXPECT_TRUE(overwritten(&Node(second).parent_slot, 99U));
  EXPECT_TRUE(overwritten(&Node(second).parent_records, std::uint64_t{1} << 40));
  EXPECT_TRUE(overwritten(&Node(second).pid, 1));
  EXPECT_TRUE(overwritten(&Shared(0).node, first));
  EXPECT_TRUE(overwritten(&Slot(0).record_capacity, std::uint64_t{1} << 40));
  Node(first + 1).why = static_cast<faults::ForkRefusal>(faults::kForkRefusals);
  EXPECT_FALSE(exchange_->Whole(0));
  EXPECT_EQ(exchange_->Refusal(first + 1), faults::ForkRefusal::None);
  Node(first + 1).why = faults::ForkRefusal::None;
  Shared(3).pool = 9;
  EXPECT_FALSE(exchange_->Whole(0));
  Shared(3).pool = exchange_->slot(3).pool;
  EXPECT_TRUE(exchange_->Whole(0));
}

// What the parent recorded before the fork is the child's, whatever the parent writes over it later; and the counts of records are bounded.
TEST_F(ForkExchangeTest, RecordsAreThoseFromBeforeTheFork) {
  Make(1);
  const std::uint32_t first = exchange_->node(0).first_child;
  Trunk(0);
  Fork(first, 2, kNoSlot);
  exchange_->Follow(exchange_->Noted(2));
  auto* const records = reinterpret_cast<Record*>(reinterpret_cast<char*>(&trunk_.header()) + trunk_.header().records_offset);
  std::memset(static_cast<void*>(records), 0xa5, 3 * sizeof(Record));
  Node(first).parent = 0x7fffffff;
  Slot(2).next_record = ~std::uint64_t{0};
  const Observation seen = exchange_->Collect(first, {});
  ExpectWhole(seen, 3 + kRecords, kRecords);
  EXPECT_EQ(seen.journal.records().front().call, static_cast<std::uint16_t>(CallId::StreamCreate));
}

TEST_F(ForkExchangeTest, AFileThatIsCutIsNoEvidence) {
  Make(1);
  const std::uint32_t first = exchange_->node(0).first_child;
  Fork(first, 2, kNoSlot);
  exchange_->Follow(exchange_->Noted(2));
  ASSERT_EQ(truncate(dir_.File("trunk").c_str(), 0), 0);
  EXPECT_FALSE(exchange_->Whole(first));
  EXPECT_EQ(exchange_->Collect(first, {}).journal.records().size(), 0U);
  ASSERT_EQ(truncate(dir_.File("forks").c_str(), 0), 0);
  EXPECT_FALSE(exchange_->Whole(first));
  EXPECT_EQ(exchange_->Noted(2).node, 0U);
}

// What whoever has the journal counts in its header.
template <typename T>
void Count(const std::string& journal, std::size_t at) {
  const FileDescriptor file(open(journal.c_str(), O_WRONLY | O_CLOEXEC));
  const T one = 1;
  ASSERT_EQ(pwrite(file.get(), &one, sizeof(one), static_cast<off_t>(at)), static_cast<ssize_t>(sizeof(one)));
}

TEST(ForkImages, TellWhetherTheDriverWasCalledAndAreNewForTheNext) {
  const TemporaryDir dir;
  const std::string name = dir.File("forks-1");
  const std::string second = name + "-0002.journal";
  EXPECT_EQ(ForkImages::Trunk(name), name + "-0000.journal");
  {
    ForkImages images;
    ASSERT_TRUE(images.Make(name, 2, {}).ok());
    EXPECT_FALSE(images.Called(1));
    Count<std::uint64_t>(second, offsetof(faults::JournalHeader, next_record));
    EXPECT_FALSE(images.Called(1)) << "it wrote something, and called nothing";
    const std::size_t last = offsetof(faults::JournalHeader, occurrences) + (driver::kBaseCount - 1) * sizeof(std::uint32_t);
    Count<std::uint32_t>(second, last);
    EXPECT_TRUE(images.Called(1));
    EXPECT_FALSE(images.Called(0));
    ASSERT_TRUE(images.Renew(1).ok());
    EXPECT_FALSE(images.Called(1));
    EXPECT_EQ(access((name + "-0001.journal").c_str(), F_OK), 0);
    EXPECT_NE(access((name + "-0003.journal").c_str(), F_OK), 0);
  }
  EXPECT_NE(access(second.c_str(), F_OK), 0);
}

TEST(ForkImages, AreThereAgainWhenAProgramRemovedThem) {
  const TemporaryDir dir;
  const std::string name = dir.File("forks-1");
  ForkImages images;
  ASSERT_TRUE(images.Make(name, 70, {}).ok());  // more than stay open
  for (const std::uint32_t slot : {0U, 69U}) {
    const std::string journal = name + (slot == 0 ? "-0001.journal" : "-0046.journal");
    ASSERT_EQ(unlink(journal.c_str()), 0);
    EXPECT_FALSE(images.Called(slot));
    ASSERT_TRUE(images.Renew(slot).ok());
    EXPECT_EQ(access(journal.c_str(), F_OK), 0);
    Count<std::uint32_t>(journal, offsetof(faults::JournalHeader, occurrences));
    EXPECT_TRUE(images.Called(slot));
  }
}

TEST(ForkImages, WhatTheHostWasAskedForIsNoCallOfTheDriver) {
  const TemporaryDir dir;
  const std::string name = dir.File("forks-1");
  ForkImages images;
  ASSERT_TRUE(images.Make(name, 1, {}).ok());
  for (const std::size_t host : {faults::kHostOccurrences, faults::kHostThreadOccurrences, faults::kHostRecords}) {
    Count<std::uint32_t>(name + "-0001.journal", offsetof(faults::JournalHeader, occurrences) + host * sizeof(std::uint32_t));
  }
  EXPECT_FALSE(images.Called(0));
}

TEST(MakeRunner, AGenuineDriverIsNotForkedAndTheTrialSaysWhyWhenForksWereAskedFor) {
  const TemporaryDir dir;
  const Result<WorkDir> work = WorkDir::Open(dir.File("work"));
  ASSERT_TRUE(work.ok());
  JournalBuilder journal(dir.File("rehearsal"));
  journal.Call(CallId::Init);
  Rehearsal rehearsal;
  rehearsal.run = journal.Read();
  Subject subject;
  subject.program.path = "/bin/true";
  subject.command = {"true"};
  subject.launch.driver = DriverKind::Genuine;
  subject.launch.drop_in_dir = dir.path();
  subject.deadline_ms = 20000;
  const auto fallback = [&](Isolation wished) {
    const std::unique_ptr<Runner> runner = MakeRunner(wished, subject, *work, {1, false, kRecords}, rehearsal);
    EXPECT_TRUE(runner->Give({{0, {"cuInit#1=NO_DEVICE,refuse"}}}).ok());
    const Result<TrialSeen> seen = runner->Next();
    EXPECT_TRUE(seen.ok()) << seen.status().message();
    EXPECT_EQ(seen->isolation, Isolation::Spawn);
    EXPECT_TRUE(runner->idle());
    return seen->fallback;
  };
  EXPECT_EQ(fallback(Isolation::Fork), Fallback{{Reason::ForkDriver}});
  EXPECT_EQ(fallback(Isolation::Spawn), Fallback());
  EXPECT_EQ(fallback(Isolation::Unknown), Fallback());
}

}  // namespace
}  // namespace cuaudit::harness::fork_exchange_test
