// SPDX-License-Identifier: MIT
#include "faults/driver/proc_address.h"

#include <gtest/gtest.h>

namespace cuaudit::driver::proc_address_test {
namespace {

void ExpectFound(const char* name, int version, std::uint64_t flags, const char* symbol) {
  const ProcAddress found = ResolveProcAddress(name, version, flags);
  ASSERT_EQ(found.status, ProcStatus::Found) << name << " @ " << version;
  EXPECT_EQ(Name(found.id), symbol) << name << " @ " << version << " flags " << flags;
}

TEST(ProcAddress, PicksTheNewestAbiThatTheVersionAllows) {
  ExpectFound("cuMemAlloc", 2000, 0, "cuMemAlloc");
  ExpectFound("cuMemAlloc", 3019, 0, "cuMemAlloc");
  ExpectFound("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
  ExpectFound("cuMemAlloc", 99000, 0, "cuMemAlloc_v2");
}

TEST(ProcAddress, DiffersFromTheHeaderMacrosWhereDriversDo) {
  ExpectFound("cuGraphInstantiate", 12000, 0, "cuGraphInstantiate_v2");
  ExpectFound("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
}

TEST(ProcAddress, PerThreadFlagPicksTheVariantFromItsOwnVersionOn) {
  ExpectFound("cuStreamSynchronize", 12000, 2, "cuStreamSynchronize_ptsz");
  EXPECT_EQ(ResolveProcAddress("cuStreamSynchronize", 2000, 2).status, ProcStatus::VersionNotSufficient);  // no fall-back, seen on 580.159
  ExpectFound("cuStreamCreate", 12000, 2, "cuStreamCreate");
  ExpectFound("cuStreamSynchronize", 12000, 1, "cuStreamSynchronize");
}

TEST(ProcAddress, RefusesWhatDriversRefuse) {
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc_v2", 12000, 0).status, ProcStatus::NotFound);
  EXPECT_EQ(ResolveProcAddress("", 0, 0).status, ProcStatus::NotFound);
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc", 1000, 0).status, ProcStatus::VersionNotSufficient);
  EXPECT_EQ(ResolveProcAddress("cuMemAllocAsync", 11010, 0).status, ProcStatus::VersionNotSufficient);
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc", 12000, 7).status, ProcStatus::BadFlags);
  EXPECT_EQ(ResolveProcAddress("cuMemAlloc", 12000, 3).status, ProcStatus::BadFlags);
}

TEST(ProcAddress, ResolvesEverySymbolAtItsOwnVersion) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const CallRow& row = kCalls[i];
    if (row.version == 0) continue;
    ExpectFound(Name(row.base).data(), row.version, row.per_thread ? 2 : 0, row.symbol.data());
  }
}

}  // namespace
}  // namespace cuaudit::driver::proc_address_test
