// SPDX-License-Identifier: MIT
// What it costs to find the records of a handle: not more the more streams there are.
#define __CUDA_API_VERSION_INTERNAL
#include "allocator/core/core.h"
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::handles_test {
namespace {

// Records looked at by each of `count` streams, on average, once a capture of another one is over.
double VisitedAfterACapture(std::size_t count) {
  Allocating a;
  const DeviceConfig config;
  Core core(a.d, Options());
  EXPECT_OK(core.Open(&config, 1));
  StreamRef ref;
  std::vector<CUstream> streams;
  for (std::size_t i = 0; i < count; ++i) {
    streams.push_back(a.Stream());
    EXPECT_OK(core.identities.Identify(0, streams.back(), &ref));
  }
  EXPECT_EQ(core.streams.records_visited(), 0U) << "before any capture";

  const CUstream captured = a.Stream();
  EXPECT_OK(a.d.StreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(core.identities.Identify(0, captured, &ref));
  const StreamRef inside = ref;
  CUgraph graph = nullptr;
  EXPECT_OK(a.d.StreamEndCapture(captured, &graph));
  EXPECT_OK(a.d.GraphDestroy(graph));
  EXPECT_NE(inside.record()->capture.load(), 0U);
  EXPECT_OK(core.identities.Identify(0, captured, &ref));
  EXPECT_EQ(inside.record()->capture.load(), 0U) << "seen outside";

  const std::uint64_t before = core.streams.records_visited();
  for (const CUstream stream : streams) EXPECT_OK(core.identities.Identify(0, stream, &ref));
  const std::uint64_t visited = core.streams.records_visited() - before;
  EXPECT_GE(visited, count) << "its own record";
  std::size_t live = 0;
  EXPECT_OK(core.Close(&live));
  return static_cast<double>(visited) / static_cast<double>(count);
}

// Of two frees of one pointer the later is told by the block's life: the number must not come back while a call is held up.
TEST(Block, ALifeDoesNotComeBackWithin32Bits) {
  std::uint64_t state = kLive;
  for (int i = 0; i < 256; ++i) state += kOneLife << 24;  // 2^32 lives: under two minutes at full rate
  EXPECT_NE(state, kLive);
  EXPECT_EQ(state & kFlagMask, kLive);
}

TEST(Handles, AfterACaptureAStreamLooksAtItsOwnRecordsOnly) {
  EXPECT_LT(VisitedAfterACapture(8), 2.0);
  EXPECT_LT(VisitedAfterACapture(512), 2.0);
}

}  // namespace
}  // namespace cuaudit::alloc::handles_test
