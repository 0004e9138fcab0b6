// SPDX-License-Identifier: MIT
#include "faults/plan/fork_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "faults/journal/layout.h"

namespace cuaudit::faults::fork_file_test {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kNodes = 4;  // the root, a control, a fault, and a fault after that one
constexpr std::uint32_t kSlots = 2;
constexpr std::uint32_t kRecords = 8;
constexpr std::size_t kJournal = (sizeof(JournalHeader) + kPage - 1) / kPage * kPage;
constexpr std::size_t kSlotBytes = kJournal + kPage;
constexpr std::size_t kBytes = 3 * kPage + kSlots * kSlotBytes;
static_assert(kNodes * sizeof(ForkNode) <= kPage && kRecords * sizeof(Record) <= kPage);

class ForkFile : public testing::Test {
 protected:
  ForkFile() {
    std::memset(file_.get(), 0, kBytes);
    ForkHeader* const made = ::new (static_cast<void*>(file_.get())) ForkHeader();
    std::memcpy(made->magic, kForkMagic, sizeof(made->magic));
    made->table_digest = driver::TableDigest();
    made->file_bytes = kBytes;
    made->nodes = kNodes;
    made->slots = kSlots;
    made->record_capacity = kRecords;
    made->nodes_offset = kPage;
    made->slots_offset = 2 * kPage;
    made->journals_offset = 3 * kPage;
    made->journal_bytes = kSlotBytes;
    made->records_offset = kJournal;
    for (std::uint32_t i = 0; i < kNodes; ++i) ::new (static_cast<void*>(&node(i))) ForkNode();
    for (std::uint32_t i = 0; i < kSlots; ++i) ::new (static_cast<void*>(file_.get() + 2 * kPage + i * sizeof(ForkSlot))) ForkSlot();
    node(0).first_child = 1;
    node(0).children = 2;
    node(1).control = true;
    node(2).first_child = 3;
    node(2).children = 1;
    for (const std::uint32_t i : {2U, 3U}) {
      EXPECT_EQ(ParseFault(i == 2 ? "cuMemAlloc#1=OUT_OF_MEMORY" : "cuMemFree#1=INVALID_VALUE", &node(i).fault).expected, nullptr);
    }
  }
  ForkHeader& header() { return *reinterpret_cast<ForkHeader*>(file_.get()); }
  ForkNode& node(std::uint32_t i) { return reinterpret_cast<ForkNode*>(file_.get() + kPage)[i]; }
  const char* Check(std::size_t bytes = kBytes) { return CheckForkFile(file_.get(), bytes, sizeof(JournalHeader), sizeof(Record)); }
  // The field, as it should not be; then as it was.
  template <typename T>
  bool Accepts(T* field, std::type_identity_t<T> value) {
    const T was = std::exchange(*field, value);
    const bool accepted = Check() == nullptr;
    *field = was;
    EXPECT_EQ(Check(), nullptr);
    return accepted;
  }

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> file_{static_cast<char*>(std::aligned_alloc(kPage, kBytes))};
};

TEST_F(ForkFile, IsTakenAsTheToolWritesIt) { EXPECT_EQ(Check(), nullptr); }

TEST_F(ForkFile, IsNotTakenFromAnother) {
  EXPECT_STREQ(Check(sizeof(ForkHeader) - 1), "the fork file is not one made by this cuaudit");
  EXPECT_STREQ(Check(kBytes - kPage), "the fork file is not one made by this cuaudit");
  EXPECT_FALSE(Accepts(&header().magic[7], 'C'));
  EXPECT_FALSE(Accepts(&header().table_digest, header().table_digest + 1));
}

TEST_F(ForkFile, HasItsPartsInsideAndAligned) {
  for (std::uint64_t* const offset : {&header().nodes_offset, &header().slots_offset, &header().journals_offset}) {
    for (const std::uint64_t value : {std::uint64_t{0}, sizeof(ForkHeader) - 1, *offset + 4, std::uint64_t{kBytes},
                                      std::uint64_t{kBytes} + kPage, ~std::uint64_t{0} - 15}) {
      EXPECT_FALSE(Accepts(offset, value)) << (offset - &header().nodes_offset) << ": " << value;
    }
  }
  EXPECT_FALSE(Accepts(&header().nodes, 0)) << "not even the root";
  EXPECT_FALSE(Accepts(&header().nodes, static_cast<std::uint32_t>((kBytes - kPage) / sizeof(ForkNode) + 1)));
  EXPECT_FALSE(Accepts(&header().nodes, ~0U));
  EXPECT_FALSE(Accepts(&header().slots, kSlots + 1));
  EXPECT_FALSE(Accepts(&header().slots, ~0U));
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{kSlotBytes} + 8, std::uint64_t{kSlotBytes} + 16, ~std::uint64_t{0} - 15}) {
    EXPECT_FALSE(Accepts(&header().journal_bytes, value)) << value;
  }
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{kJournal} + 8, std::uint64_t{kSlotBytes}, ~std::uint64_t{0} - 15}) {
    EXPECT_FALSE(Accepts(&header().records_offset, value)) << value;
  }
  EXPECT_FALSE(Accepts(&header().record_capacity, static_cast<std::uint32_t>(kPage / sizeof(Record) + 1)));
}

TEST_F(ForkFile, HasNoChildrenBeyondItsNodesAndNoneBeforeTheirParent) {
  EXPECT_FALSE(Accepts(&node(0).first_child, 0)) << "its own child";
  EXPECT_FALSE(Accepts(&node(2).first_child, 1)) << "a child that comes before it";
  EXPECT_FALSE(Accepts(&node(2).first_child, kNodes));
  EXPECT_FALSE(Accepts(&node(2).first_child, ~0U));
  EXPECT_FALSE(Accepts(&node(2).children, 2));
  EXPECT_FALSE(Accepts(&node(2).children, ~0U));
  EXPECT_TRUE(Accepts(&node(3).first_child, ~0U)) << "of no children";
}

TEST_F(ForkFile, HasOnlyFaultsThatMeanSomething) {
  EXPECT_FALSE(Accepts(&node(2).fault.occurrence, 0));
  EXPECT_STREQ((node(3).fault.how = How::HostOom, Check()), "the fork file has a fault that means nothing");
  node(3).fault.how = How::Refuse;
  EXPECT_FALSE(Accepts(&node(1).control, false)) << "a place is no fault";
  EXPECT_FALSE(Accepts(reinterpret_cast<unsigned char*>(&node(1).control), 2)) << "neither a control nor none";
}

}  // namespace
}  // namespace cuaudit::faults::fork_file_test
