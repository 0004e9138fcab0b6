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

// What 32 repeats of a trial show that keeps 608 bytes of heap each time, but in some repeats takes the block from a cache, unseen.
std::vector<std::string> FewBytes(const std::vector<std::size_t>& unseen) {
  constexpr HostMeterSet kHeap = {HostMeter::HeapBytes};
  HostChange good, trial, nothing;
  good.read = trial.read = nothing.read = kHeap;
  trial.value[static_cast<std::size_t>(HostMeter::HeapBytes)] = 608;
  HostExcess excess(trial, good, kHeap);
  std::uint64_t level = 1 << 20;
  std::size_t repeats = 0;
  for (; repeats < excess.repeats_wanted() && !excess.empty(); ++repeats) {
    const bool is_seen = std::find(unseen.begin(), unseen.end(), repeats) == unseen.end();
    excess.Repeat(is_seen ? trial : nothing, level += is_seen ? 608 : 0);
  }
  excess.DropWhatDoesNotAddUp();
  std::vector<std::string> details;
  for (const harness::MeterFinding& one : excess.Findings()) details.push_back(std::to_string(one.bytes) + ", " + one.detail);
  return details;
}

TEST(HostExcess, AFewBytesMayBeUnseenInSomeRepeats) {
  const std::string kept = "608, kept by the faulted cycle, beyond what a good one keeps, and by ";
  EXPECT_THAT(FewBytes({}), ElementsAre(kept + "each of 32 repeats"));
  EXPECT_THAT(FewBytes({0}), ElementsAre(kept + "31 of 32 repeats"));
  EXPECT_THAT(FewBytes({3, 17, 30}), ElementsAre(kept + "29 of 32 repeats"));
}

TEST(HostExcess, AFewBytesThatAreRarelySeenAreNoFinding) {
  EXPECT_THAT(FewBytes({0, 1}), IsEmpty());
  EXPECT_THAT(FewBytes({1, 3, 5, 7, 9, 11, 13, 15}), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::host_change_test
