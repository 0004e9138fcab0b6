// SPDX-License-Identifier: MIT
#include "harness/lifecycle/host_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::testing::host_change_test {
namespace {

using harness::HostChange;
using harness::HostExcess;
using harness::HostMeter;
using harness::HostMeterSet;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr HostMeterSet kBoth = {HostMeter::Descriptors, HostMeter::Threads};

// A cycle that kept `count` descriptors and as many threads, of which only `read` were read.
HostChange Kept(std::int64_t count, HostMeterSet read = kBoth) {
  HostChange change;
  for (const HostMeter meter : {HostMeter::Descriptors, HostMeter::Threads}) change.value[static_cast<std::size_t>(meter)] = count;
  change.read = read;
  return change;
}

std::vector<std::string> Kinds(const HostChange& trial, const HostChange& good, HostMeterSet asked) {
  std::vector<std::string> kinds;
  for (const harness::MeterFinding& one : HostExcess(trial, good, asked).Findings()) kinds.push_back(one.kind);
  return kinds;
}

TEST(HostExcess, IsWhatATrialKeepsBeyondAGoodCycle) {
  EXPECT_THAT(Kinds(Kept(2), Kept(1), kBoth), ElementsAre("file_descriptor", "thread"));
  EXPECT_THAT(Kinds(Kept(1), Kept(1), kBoth), IsEmpty());
}

TEST(HostExcess, ComparesWhatWasAskedForAndReadBothTimes) {
  constexpr HostMeterSet kOne = {HostMeter::Descriptors};
  EXPECT_THAT(Kinds(Kept(2), Kept(1), kOne), ElementsAre("file_descriptor"));
  EXPECT_THAT(Kinds(Kept(2, kOne), Kept(1), kBoth), ElementsAre("file_descriptor"));
  EXPECT_THAT(Kinds(Kept(2), Kept(1, kOne), kBoth), ElementsAre("file_descriptor"));
}

}  // namespace
}  // namespace cuaudit::testing::host_change_test
