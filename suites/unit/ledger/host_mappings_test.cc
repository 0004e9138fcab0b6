// SPDX-License-Identifier: MIT
#include "harness/ledger/host_mappings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::host_mappings_test {
namespace {

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
}  // namespace cuaudit::harness::host_mappings_test
