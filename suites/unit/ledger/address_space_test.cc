// SPDX-License-Identifier: MIT
// Ranges of addresses and their owners, on the device and on the host.
#include "harness/ledger/address_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace cuaudit::harness::address_space_test {
namespace {

TEST(AddressSpace, KnowsNothingOfOtherAddresses) {
  AddressSpace space;
  EXPECT_EQ(space.DeadObjectAt(0x1000), -1);
  space.Insert(0x1000, 0x100, 1);
  space.Kill(0x1000, 0x100, 1);
  EXPECT_EQ(space.DeadObjectAt(0xfff), -1);
  EXPECT_EQ(space.DeadObjectAt(0x1000), 1);
  EXPECT_EQ(space.DeadObjectAt(0x10ff), 1);
  EXPECT_EQ(space.DeadObjectAt(0x1100), -1);
}

TEST(AddressSpace, ANewOwnerTakesTheMiddle) {
  AddressSpace space;
  space.Insert(0x1000, 0x300, 1);
  space.Kill(0x1000, 0x300, 1);
  space.Insert(0x1100, 0x100, 2);
  EXPECT_EQ(space.DeadObjectAt(0x1080), 1);
  EXPECT_EQ(space.DeadObjectAt(0x1180), -1);
  EXPECT_EQ(space.DeadObjectAt(0x1280), 1);
  space.Kill(0x1100, 0x100, 2);
  EXPECT_EQ(space.DeadObjectAt(0x1180), 2);
}

TEST(AddressSpace, ForgetsARangeInTheMiddle) {
  AddressSpace space;
  space.Insert(0x1000, 0x300, 1);
  space.Kill(0x1000, 0x300, 1);
  space.Forget(0x1100, 0x100);
  EXPECT_EQ(space.DeadObjectAt(0x10ff), 1);
  EXPECT_EQ(space.DeadObjectAt(0x1100), -1);
  EXPECT_EQ(space.DeadObjectAt(0x1200), 1);
}

TEST(AddressSpace, ForgetsOnlyWhatIsDead) {
  AddressSpace space;
  for (std::int64_t i = 0; i < 3; ++i) space.Insert(0x1000 + static_cast<std::uint64_t>(i) * 0x100, 0x100, i);
  space.Kill(0x1000, 0x100, 0);
  space.Kill(0x1200, 0x100, 2);
  space.ForgetDead(0x1080, 0x200);
  EXPECT_EQ(space.DeadObjectAt(0x1040), 0);
  EXPECT_EQ(space.DeadObjectAt(0x1080), -1);
  EXPECT_EQ(space.DeadObjectAt(0x1240), -1);
  EXPECT_EQ(space.DeadObjectAt(0x1280), 2);
  space.Kill(0x1100, 0x100, 1);
  EXPECT_EQ(space.DeadObjectAt(0x1180), 1);
}

TEST(AddressSpace, ForgetsAnUnknownLengthUpToTheNextGap) {
  AddressSpace space;
  for (const std::uint64_t base : {0x1000U, 0x1100U, 0x1300U}) {
    space.Insert(base, 0x100, static_cast<std::int64_t>(base));
    space.Kill(base, 0x100, static_cast<std::int64_t>(base));
  }
  space.ForgetDead(0x1080, 0);
  EXPECT_EQ(space.DeadObjectAt(0x1040), 0x1000);
  EXPECT_EQ(space.DeadObjectAt(0x1080), -1);
  EXPECT_EQ(space.DeadObjectAt(0x11ff), -1);
  EXPECT_EQ(space.DeadObjectAt(0x1300), 0x1300);
}

TEST(AddressSpace, NeverCallsAliasedMemoryDead) {
  AddressSpace space;
  space.Insert(0x1000, 0x200, 1);
  space.Insert(0x1100, 0x100, 2);
  space.Kill(0x1100, 0x100, 2);
  EXPECT_EQ(space.DeadObjectAt(0x1180), -1);
  space.Kill(0x1000, 0x200, 1);
  EXPECT_EQ(space.DeadObjectAt(0x1080), 1);
}

TEST(AddressSpace, SurvivesTheEndOfTheAddressSpace) {
  AddressSpace space;
  const std::uint64_t base = ~std::uint64_t{0} - 0x10;
  space.Insert(base, 0x1000, 1);
  space.Kill(base, 0x1000, 1);
  EXPECT_EQ(space.DeadObjectAt(base + 8), 1);
  EXPECT_EQ(space.DeadObjectAt(8), -1);
}

TEST(AddressSpace, CountsDeaths) {
  AddressSpace space;
  const std::uint64_t before = space.deaths();
  space.Insert(0x1000, 1, 1);
  EXPECT_EQ(space.deaths(), before);
  space.Kill(0x1000, 1, 1);
  EXPECT_NE(space.deaths(), before);
}

// Against one cell per address: random allocations, releases and forgets of non-overlapping live ranges.
TEST(AddressSpace, AgreesWithACellPerAddress) {
  constexpr std::uint64_t kCells = 256;
  struct Range {
    std::uint64_t base, bytes;
    std::int64_t object;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    AddressSpace space;
    std::vector<std::int64_t> dead(kCells, -1);
    std::vector<bool> live(kCells, false);
    std::vector<Range> ranges;
    std::int64_t next = 0;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t base = random() % kCells;
      const std::uint64_t bytes = 1 + random() % std::min<std::uint64_t>(40, kCells - base);
      bool free = true;
      for (std::uint64_t i = base; i < base + bytes; ++i) free = free && !live[i];
      const unsigned choice = static_cast<unsigned>(random() % 3);
      if (choice == 0 && free) {
        space.Insert(base, bytes, next);
        ranges.push_back({base, bytes, next++});
        for (std::uint64_t i = base; i < base + bytes; ++i) {
          live[i] = true;
          dead[i] = -1;
        }
      } else if (choice == 1 && !ranges.empty()) {
        const std::size_t pick = random() % ranges.size();
        const Range range = ranges[pick];
        ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(pick));
        space.Kill(range.base, range.bytes, range.object);
        for (std::uint64_t i = range.base; i < range.base + range.bytes; ++i) {
          live[i] = false;
          dead[i] = range.object;
        }
      } else if (choice == 2 && free) {
        space.Forget(base, bytes);
        for (std::uint64_t i = base; i < base + bytes; ++i) dead[i] = -1;
      }
      for (std::uint64_t i = 0; i < kCells; ++i) ASSERT_EQ(space.DeadObjectAt(i), dead[i]) << "round " << round << " cell " << i;
    }
  }
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(HostMappings, WholeOnesGoAtOnce) {
  HostMappings mappings;
  EXPECT_THAT(mappings.Map(0x1000, 0x2000, 1), IsEmpty());
  EXPECT_THAT(mappings.Map(0x3000, 0x1000, 2), IsEmpty());
  EXPECT_THAT(mappings.Unmap(0x1000, 0x2000), ElementsAre(1));
  EXPECT_THAT(mappings.Unmap(0x1000, 0x2000), IsEmpty());
  EXPECT_THAT(mappings.Unmap(0x3000, 0x1000), ElementsAre(2));
}

TEST(HostMappings, AnObjectGoesWithItsLastPart) {
  HostMappings mappings;
  mappings.Map(0x1000, 0x5000, 1);
  EXPECT_THAT(mappings.Unmap(0x3000, 0x1000), IsEmpty()) << "out of the middle";
  EXPECT_THAT(mappings.Unmap(0x1000, 0x1000), IsEmpty()) << "the front";
  EXPECT_THAT(mappings.Unmap(0x5000, 0x1000), IsEmpty()) << "the back";
  EXPECT_THAT(mappings.Unmap(0x2000, 0x1000), IsEmpty());
  EXPECT_THAT(mappings.Unmap(0x0, 0x10000), ElementsAre(1));
}

TEST(HostMappings, OneUnmapTakesSeveral) {
  HostMappings mappings;
  mappings.Map(0x1000, 0x1000, 1);
  mappings.Map(0x2000, 0x1000, 2);
  mappings.Map(0x4000, 0x2000, 3);
  EXPECT_THAT(mappings.Unmap(0x1000, 0x4000), ElementsAre(1, 2));
  EXPECT_THAT(mappings.Unmap(0x5000, 0x1000), ElementsAre(3));
}

TEST(HostMappings, AFixedOneReplacesWhatItCovers) {
  HostMappings mappings;
  mappings.Map(0x1000, 0x3000, 1);
  EXPECT_THAT(mappings.Map(0x2000, 0x1000, 2), IsEmpty());
  EXPECT_THAT(mappings.Map(0x1000, 0x3000, 3), UnorderedElementsAre(1, 2));
  EXPECT_THAT(mappings.Unmap(0x1000, 0x3000), ElementsAre(3));
}

TEST(HostMappings, NothingIsKnownOfWhatNobodyMapped) {
  HostMappings mappings;
  EXPECT_THAT(mappings.Unmap(0x1000, 0x1000), IsEmpty());
  EXPECT_THAT(mappings.Map(0x1000, 0, 1), IsEmpty());
  EXPECT_THAT(mappings.Unmap(0x1000, 0x1000), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::harness::address_space_test
