// SPDX-License-Identifier: MIT
// Free pages that serve another arena in place of new ones: which may move, and when.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::moved_pages_test {
namespace {

// A device that is through with everything as soon as it is asked.
class MovedPages : public testing::TestWithParam<Reuse> {
 protected:
  void FreeOn(CUstream stream, std::size_t bytes = kRowBytes) const {
    const CUdeviceptr x = a.Get(bytes, stream);
    a.Write(x, bytes, stream);
    a.Drop(x);
  }
  std::uint64_t Moved() const { return a.Stats().pages_moved; }
  Allocating a{Moving(GetParam()), {.schedule = sim::Schedule::Fifo}};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
};

TEST_P(MovedPages, ServeAnotherStream) {
  FreeOn(s);
  const CUdeviceptr y = a.Get(kRowBytes, t);
  a.Write(y, kRowBytes, t);
  EXPECT_EQ(a.Reserved(), kRowBytes);
  EXPECT_EQ(Moved(), kRowPages);
  EXPECT_EQ(a.Stats().bytes_moved, static_cast<std::uint64_t>(kRowBytes));
  EXPECT_EQ(a.Stats().reserved_bytes[0].peak, kRowBytes);
  EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), kRowPages);
  EXPECT_EQ(a.Live(driver::Kind::Mapping), kRowPages);
  const CUdeviceptr x = a.Get(kRowBytes, s);  // there is nothing to take
  a.Write(x, kRowBytes, s);
  EXPECT_EQ(a.Reserved(), 2 * kRowBytes);
  EXPECT_EQ(Moved(), kRowPages);
  a.Drop(x);
  a.Drop(y);
}

TEST_P(MovedPages, ServeOtherAddressesOfTheSameStream) {
  CUdeviceptr part[4];
  for (CUdeviceptr& one : part) one = a.Get(20 * kMiB, s);
  a.Drop(part[0]);
  a.Drop(part[2]);
  const CUdeviceptr whole = a.Get(36 * kMiB, s);
  a.Write(whole, 36 * kMiB, s);
  EXPECT_EQ(a.Reserved(), 2 * kRowBytes);
  EXPECT_EQ(Moved(), 18U);
  EXPECT_EQ(a.Look().segments.size(), 3U) << "what is left of the hole below, the two that stayed, and what was gathered";
}

TEST_P(MovedPages, OfTheSmallPoolServeLargeRequests) {
  std::vector<CUdeviceptr> small(40);
  for (CUdeviceptr& one : small) one = a.Get(kMiB, s);
  for (const CUdeviceptr one : small) a.Drop(one);
  const std::int64_t before = a.Reserved();
  const CUdeviceptr y = a.Get(30 * kMiB, t);
  a.Write(y, 30 * kMiB, t);
  EXPECT_EQ(a.Reserved(), before);
  EXPECT_EQ(Moved(), 15U);
}

TEST_P(MovedPages, ComeWithNewOnesWhereTheyAreTooFew) {
  FreeOn(s);
  const CUdeviceptr y = a.Get(60 * kMiB, t);
  a.Write(y, 60 * kMiB, t);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(60 * kMiB));
  EXPECT_EQ(Moved(), kRowPages);
}

TEST_P(MovedPages, GoWhereALiveBlockLeavesThemWhole) {
  const CUdeviceptr x = a.Get(39 * kMiB, s);
  const CUdeviceptr stays = a.Get(3 * kMiB, s);  // shares a page with what is freed
  a.Drop(x);
  const CUdeviceptr y = a.Get(kRowBytes, t);
  EXPECT_EQ(Moved(), 19U);
  a.Write(stays, 3 * kMiB, s);
  a.Write(y, kRowBytes, t);
}

// Behind free memory, though there is room at lower addresses: where pages were that another stream has now.
TEST_P(MovedPages, AreSparedWhereFreeMemoryNearlyDoes) {
  const CUdeviceptr first = a.Get(60 * kMiB, s);
  const CUdeviceptr stays = a.Get(kRowBytes, s);
  const CUdeviceptr last = a.Get(kRowBytes, s);
  a.Drop(first);
  const CUdeviceptr y = a.Get(60 * kMiB, t);
  ASSERT_EQ(Moved(), 30U);
  a.Drop(last);
  const CUdeviceptr more = a.Get(kRowBytes + 10 * kMiB, s);
  EXPECT_EQ(more, last);
  EXPECT_EQ(Moved(), 30U);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(60 * kMiB + 2 * kRowBytes + 10 * kMiB));
  a.Write(more, kRowBytes + 10 * kMiB, s);
  for (const CUdeviceptr one : {stays, y, more}) a.Drop(one);
}

TEST_P(MovedPages, StayInPoolsThatGraphsUse) {
  const PoolId pool = a.Pool();
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  FreeOn(s);
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  const CUdeviceptr y = a.Get(kRowBytes, t);
  EXPECT_EQ(Moved(), 0U);
  a.Drop(y);
  ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr z = a.Get(2 * kRowBytes, s);  // nor does a graph's memory come from others
  ASSERT_OK(a->EndAllocateToPool(0, pool));
  EXPECT_EQ(Moved(), 0U);
  a.Drop(z);
  ASSERT_OK(a->ReleasePool(pool));
}

TEST_P(MovedPages, StayWhereACaptureHadThem) {
  FreeOn(t);
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  const StreamRef inside = a.Ref(s);
  CUdeviceptr x = 0;
  ASSERT_OK(a->Allocate(kRowBytes, inside, &x));
  a.Write(x, kRowBytes, s);
  a.Drop(x);
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(s, &graph));
  EXPECT_EQ(Moved(), 0U) << "into the capture";
  const CUdeviceptr y = a.Get(3 * kRowBytes, t);
  EXPECT_EQ(Moved(), 0U) << "out of it";
  a.Drop(y);
  ASSERT_OK(a.d.GraphDestroy(graph));
}

// What was freed before the capture began is told of by no recording, and to record now would be part of the graph.
TEST_P(MovedPages, OfAStreamInACaptureAreAskedForBehindIt) {
  FreeOn(s);
  ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const CUdeviceptr y = a.Get(kRowBytes, t);
  EXPECT_EQ(Moved(), 0U);
  CUgraph graph = nullptr;
  ASSERT_OK(a.d.StreamEndCapture(s, &graph));
  std::size_t nodes = 0;
  ASSERT_OK(a.d.GraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 0U);
  ASSERT_OK(a.d.GraphDestroy(graph));
  const CUdeviceptr z = a.Get(kRowBytes, t);
  EXPECT_EQ(Moved(), kRowPages);
  a.Drop(y);
  a.Drop(z);
}

TEST_P(MovedPages, NeedNoRoomBelowTheLimit) {
  ASSERT_OK(a->SetMemoryFraction(0, 0.25));  // 64 MiB
  FreeOn(s);
  a.Drop(a.Get(kRowBytes, t));
  EXPECT_EQ(Moved(), kRowPages);
  EXPECT_EQ(a.Reserved(), kRowBytes);
}

TEST_P(MovedPages, GoBackToTheDriverWhereTheyCameTo) {
  FreeOn(s);
  a.Drop(a.Get(kRowBytes, t));
  ASSERT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_EQ(a.Live(driver::Kind::PhysicalMemory), 0U);
  FreeOn(s);
  FreeOn(t);
  EXPECT_EQ(a.Reserved(), kRowBytes);
}

INSTANTIATE_TEST_SUITE_P(All, MovedPages, testing::Values(Reuse::Poll, Reuse::Wait),
                         [](const auto& chosen) { return std::string(chosen.param == Reuse::Poll ? "Poll" : "Wait"); });

// A device that does nothing before it is waited for.
class MovedPagesLater : public testing::TestWithParam<Reuse> {
 protected:
  Allocating a{Moving(GetParam())};
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  CUstream u = a.Stream();
};

TEST_P(MovedPagesLater, WhenTheirOwnStreamsWorkIsOver) {
  const CUdeviceptr x = a.Get(kRowBytes, s);
  a.Write(x, kRowBytes, s);
  a.Drop(x);
  const CUdeviceptr y = a.Get(kRowBytes, t);
  EXPECT_EQ(a.Stats().pages_moved, 0U);
  ASSERT_OK(a.d.StreamSynchronize(s));
  const CUdeviceptr z = a.Get(kRowBytes, t);
  EXPECT_EQ(a.Stats().pages_moved, kRowPages);
  a.Write(y, kRowBytes, t);
  a.Write(z, kRowBytes, t);
}

TEST_P(MovedPagesLater, WhenOtherStreamsUsesAreOver) {
  const CUdeviceptr x = a.Get(kRowBytes, s);
  a.Use(x, kRowBytes, s, t);
  a.Drop(x);
  ASSERT_OK(a.d.StreamSynchronize(s));
  const CUdeviceptr y = a.Get(kRowBytes, u);
  EXPECT_EQ(a.Stats().pages_moved, 0U);
  ASSERT_OK(a.d.StreamSynchronize(t));
  const CUdeviceptr between = a.Get(kRowBytes, u);
  EXPECT_EQ(a.Stats().pages_moved, 0U) << "that s has nothing more to do is known by its recording, which has begun now";
  ASSERT_OK(a.d.StreamSynchronize(s));
  const CUdeviceptr z = a.Get(kRowBytes, u);
  EXPECT_EQ(a.Stats().pages_moved, kRowPages);
  for (const CUdeviceptr one : {y, between, z}) a.Write(one, kRowBytes, u);
}

// Merged with memory that is over, each page is still told apart.
TEST_P(MovedPagesLater, EachForItself) {
  const CUdeviceptr x = a.Get(kRowBytes, s);
  const CUdeviceptr y = a.Get(kRowBytes, s);
  a.Write(x, kRowBytes, s);
  a.Drop(x);
  const CUdeviceptr z = a.Get(kRowBytes, t);  // records on s
  ASSERT_OK(a.d.StreamSynchronize(s));
  a.Write(y, kRowBytes, s);
  a.Drop(y);
  const CUdeviceptr more = a.Get(2 * kRowBytes, t);
  EXPECT_EQ(a.Stats().pages_moved, kRowPages) << "of x alone";
  a.Write(z, kRowBytes, t);
  a.Write(more, 2 * kRowBytes, t);
}

TEST_P(MovedPagesLater, OnBothSidesOfWork) {
  CUdeviceptr part[3];
  for (CUdeviceptr& one : part) one = a.Get(20 * kMiB, s);
  for (const int i : {0, 2}) {
    a.Write(part[i], 20 * kMiB, s);
    a.Drop(part[i]);
  }
  const CUdeviceptr z = a.Get(kRowBytes, t);  // records on s
  ASSERT_OK(a.d.StreamSynchronize(s));
  a.Write(part[1], 20 * kMiB, s);
  a.Drop(part[1]);
  const CUdeviceptr more = a.Get(3 * kRowBytes, t);
  EXPECT_EQ(a.Stats().pages_moved, kRowPages);
  a.Write(z, kRowBytes, t);
  a.Write(more, 3 * kRowBytes, t);
}

INSTANTIATE_TEST_SUITE_P(All, MovedPagesLater, testing::Values(Reuse::Poll, Reuse::Wait),
                         [](const auto& chosen) { return std::string(chosen.param == Reuse::Poll ? "Poll" : "Wait"); });

// What a stream that waits has waited for is over on the device when its own work is, not before: also of what such a block leaves over.
TEST(MovedPagesOfAWaitingStream, MoveBehindItsWait) {
  Allocating a(Moving(Reuse::Wait));
  CUstream const s = a.Stream();
  CUstream const t = a.Stream();
  CUstream const u = a.Stream();
  const CUdeviceptr x = a.Get(kRowBytes, s);
  a.Use(x, kRowBytes, s, t);
  a.Drop(x);
  ASSERT_OK(a.d.StreamSynchronize(s));
  const CUdeviceptr part = a.Get(2 * kMiB, s);  // s waits for t, on the device
  const CUdeviceptr y = a.Get(kRowBytes, u);
  EXPECT_EQ(a.Stats().pages_moved, 0U);
  ASSERT_OK(a.d.StreamSynchronize(s));
  const CUdeviceptr z = a.Get(kRowBytes, u);
  EXPECT_EQ(a.Stats().pages_moved, kRowPages - 1);
  a.Write(part, 2 * kMiB, s);
  a.Write(y, kRowBytes, u);
  a.Write(z, kRowBytes, u);
}

// A stream is touched in calls that name it: then it records, and its pages move the next time.
TEST(MovedPagesOfStreamsThatMayEnd, MoveBehindTheStreamsNextRequest) {
  Options options = Moving();
  options.trust_stream_handles = false;
  Allocating a(options, {.schedule = sim::Schedule::Fifo});
  CUstream const s = a.Stream();
  CUstream const t = a.Stream();
  a.Drop(a.Get(kRowBytes, s));
  const CUdeviceptr y = a.Get(kRowBytes, t);
  EXPECT_EQ(a.Stats().pages_moved, 0U);
  a.Drop(a.Get(3 * kMiB, s));
  const CUdeviceptr z = a.Get(38 * kMiB, t);
  EXPECT_EQ(a.Stats().pages_moved, 18U) << "what was freed behind the recording is asked for by the next one";
  a.Drop(y);
  a.Drop(z);
}

TEST(MovedPagesOfTheSmallPool, StayWhereOthersAreLarger) {
  Options options = Moving();
  options.page_size = 4 * kMiB;
  Allocating a(options, {.schedule = sim::Schedule::Fifo});
  CUstream const s = a.Stream();
  CUstream const t = a.Stream();
  std::vector<CUdeviceptr> small(40);
  for (CUdeviceptr& one : small) one = a.Get(kMiB, s);
  for (const CUdeviceptr one : small) a.Drop(one);
  const CUdeviceptr y = a.Get(kRowBytes, t);
  a.Write(y, kRowBytes, t);
  EXPECT_EQ(a.Stats().pages_moved, 0U);
  a.Drop(y);
}

TEST(MovedPagesOfARetiredStream, Move) {
  Options options = Moving();
  options.trust_stream_handles = false;
  Allocating a(options, {.schedule = sim::Schedule::Fifo});
  CUstream const s = a.Stream();
  CUstream const t = a.Stream();
  CUdeviceptr part[2] = {a.Get(kRowBytes, s), a.Get(kRowBytes, s)};
  for (const CUdeviceptr one : part) a.Drop(one);
  ASSERT_OK(a->RetireStream(0, s));
  a.Destroy(s);
  const CUdeviceptr small = a.Get(kMiB, t);  // as `kRowBytes` would be a part of the retired stream's memory
  const CUdeviceptr y = a.Get(3 * kRowBytes, t);
  EXPECT_EQ(a.Stats().pages_moved, 2 * kRowPages);
  a.Drop(small);
  a.Drop(y);
}

TEST(RemapBudget, IsOffByDefault) {
  Options options = Moving();
  options.remap_budget = Options().remap_budget;
  Allocating a(options, {.schedule = sim::Schedule::Fifo});
  CUstream const s = a.Stream();
  CUstream const t = a.Stream();
  a.Drop(a.Get(kRowBytes, s));
  a.Drop(a.Get(kRowBytes, t));
  EXPECT_EQ(a.Reserved(), 2 * kRowBytes);
  EXPECT_EQ(a.Stats().pages_moved, 0U);
}

// A tenth of a second earns less than a nanosecond, or ten of them: no move, or one.
TEST(RemapBudget, IsPaidInTime) {
  for (const auto& [budget, moves] : {std::pair<double, std::uint64_t>{1e-9, 0}, {1e-7, 1}}) {
    Options options = Moving();
    options.remap_budget = budget;
    Allocating a(options, {.schedule = sim::Schedule::Fifo});
    CUstream const s = a.Stream();
    CUstream const t = a.Stream();
    a.Drop(a.Get(kRowBytes, s));
    a.Drop(a.Get(kRowBytes, t));
    EXPECT_EQ(a.Stats().pages_moved, moves * kRowPages) << budget;
    for (int turn = 0; turn < 3; ++turn) {
      a.Drop(a.Get(kRowBytes, s));
      a.Drop(a.Get(kRowBytes, t));
    }
    EXPECT_EQ(a.Stats().pages_moved, moves * kRowPages) << budget;
  }
}

// While there is little more than was ever allocated, fragments are left to find a use.
TEST(RemapBudget, IsNotSpentOnAnEleventh) {
  Allocating a(Moving(), {.schedule = sim::Schedule::Fifo});
  CUstream const s = a.Stream();
  CUstream const t = a.Stream();
  a.Drop(a.Get(66 * kMiB, s));
  const CUdeviceptr x = a.Get(6 * kMiB, t);
  EXPECT_EQ(a.Stats().pages_moved, 0U);
  const CUdeviceptr y = a.Get(2 * kMiB, t);
  EXPECT_EQ(a.Stats().pages_moved, 1U);
  a.Drop(x);
  a.Drop(y);
}

TEST(RemapBudget, NeedsPagesAndLooksAtTheDevice) {
  Options options = Moving();
  EXPECT_EQ(Check(options), nullptr);
  options.expandable_segments = false;
  EXPECT_STREQ(Check(options), "remap_budget: needs expandable_segments");
  options = Moving(Reuse::Wait);
  options.deterministic = true;
  EXPECT_STREQ(Check(options), "deterministic: remap_budget is 0, since moving pages looks at GPU progress");
  for (const double wrong : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    options = Moving();
    options.remap_budget = wrong;
    EXPECT_STREQ(Check(options), "remap_budget: 0 for off, or a fraction up to 1");
  }
  options = Moving();
  options.page_size = 3 * kMiB;
  EXPECT_STREQ(Check(options), "page_size: a multiple of 2 MiB, or 0 for large_segment_size");
}

}  // namespace
}  // namespace cuaudit::alloc::moved_pages_test
