// SPDX-License-Identifier: MIT
// A process that captures all day.
#include <malloc.h>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::many_captures_test {
namespace {

// What is kept of a capture goes when it is over and no block waits for it: a server that captures all day needs no more memory, nor longer
// to find one.
TEST(Captures, ManyOfThemLeaveNothingBehind) {
  Allocating a;
  const CUstream s = a.Stream();
  const CUstream t = a.Stream();
  PoolId pool;
  ASSERT_OK(a->CreatePool({}, &pool));
  const CUdeviceptr x = a.Get(4 * kMiB, t);
  std::size_t early = 0;
  constexpr int kCaptures = 100'000;
  for (int i = 0; i < kCaptures; ++i) {
    ASSERT_OK(a->BeginAllocateToPool(0, pool, {}));
    ASSERT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const CUdeviceptr y = a.Get(64 * kKiB, s);
    ASSERT_OK(a->RecordUse(x, s));
    ASSERT_OK(a->Free(y));
    CUgraph graph = nullptr;
    ASSERT_OK(a.d.StreamEndCapture(s, &graph));
    ASSERT_OK(a->EndAllocateToPool(0, pool));
    ASSERT_OK(a.d.GraphDestroy(graph));
    if (i == kCaptures / 10) early = mallinfo2().uordblks;
  }
  EXPECT_LT(mallinfo2().uordblks, early + early / 10 + kMiB);
  a.Drop(x);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Stats().active_bytes[0].current, 0) << "all of them are over";
}

}  // namespace
}  // namespace cuaudit::alloc::many_captures_test
