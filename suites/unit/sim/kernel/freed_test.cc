// SPDX-License-Identifier: MIT
// Kernels that are handed pointers into device memory after it was freed, and pointers that only look so.
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::freed_test {
namespace {

using driver::MisuseRule;

constexpr char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry pair(.param .u64 first, .param .u64 second)\n{\n ret;\n}\n"
    ".visible .entry block(.param .align 8 .b8 both[16])\n{\n ret;\n}\n";

constexpr std::size_t kBytes = 4096;

class Freed : public testing::TestWithParam<Schedule> {
 protected:
  Freed() {
    CUmodule m = nullptr;
    EXPECT_OK(w.d.ModuleLoadData(&m, kPtx));
    EXPECT_OK(w.d.ModuleGetFunction(&pair, m, "pair"));
    EXPECT_OK(w.d.ModuleGetFunction(&block, m, "block"));
  }
  void Launch(std::uint64_t origin, std::uint64_t first, std::uint64_t second = 0) {
    void* arguments[] = {&first, &second};
    EXPECT_OK(w.At(origin).LaunchKernel(pair, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr));
  }
  Witnessed w{GetParam()};
  CUfunction pair = nullptr;
  CUfunction block = nullptr;
  CUstream s = w.Stream();
};

TEST_P(Freed, AKernelHandedIt) {
  CUdeviceptr p = w.Memory(kBytes);
  Launch(1, p);
  EXPECT_OK(w.At(2).MemFree(p));
  w.ExpectNone();
  Launch(3, 0, p);
  w.ExpectOne(MisuseRule::UsedAfterFree, 3, 2);
  EXPECT_EQ(w.record.seen.at(0).object, p);
  EXPECT_EQ(w.record.seen.at(0).bytes, kBytes);
}

TEST_P(Freed, AKernelHandedAPlaceInside) {
  CUdeviceptr p = w.Memory(kBytes);
  EXPECT_OK(w.At(1).MemFree(p));
  Launch(2, p + kBytes - 8);
  w.ExpectOne(MisuseRule::UsedAfterFree, 2, 1);
}

TEST_P(Freed, AVariableOfAnUnloadedModule) {
  constexpr char kTable[] = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .global .align 4 .b8 table[256];\n";
  CUmodule m = nullptr;
  CUdeviceptr table = 0;
  std::size_t bytes = 0;
  EXPECT_OK(w.d.ModuleLoadData(&m, kTable));
  EXPECT_OK(w.d.ModuleGetGlobal(&table, &bytes, m, "table"));
  Launch(1, table);
  EXPECT_OK(w.At(2).ModuleUnload(m));
  w.ExpectNone();
  Launch(3, table + bytes - 1);
  w.ExpectOne(MisuseRule::UsedAfterFree, 3, 2);
}

TEST_P(Freed, StreamOrderedAndKnownToBeDone) {
  CUdeviceptr p = 0;
  EXPECT_OK(w.d.MemAllocAsync(&p, kBytes, s));
  EXPECT_OK(w.At(1).MemFreeAsync(p, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  Launch(2, p);
  w.ExpectOne(MisuseRule::UsedAfterFree, 2, 1);
}

// The free may or may not have run: the words are the same under every schedule.
TEST_P(Freed, StreamOrderedAndNotYetDone) {
  CUdeviceptr p = 0;
  EXPECT_OK(w.d.MemAllocAsync(&p, kBytes, s));
  EXPECT_OK(w.At(1).MemFreeAsync(p, s));
  Launch(2, p);
  w.ExpectOne(MisuseRule::FreedInUse, 2, 1);
}

TEST_P(Freed, AGraphCapturedWithIt) {
  CUdeviceptr p = w.Memory(kBytes);
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  EXPECT_OK(w.At(1).MemFree(p));
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  Launch(2, p);
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  w.ExpectNone();
  EXPECT_OK(w.At(3).GraphLaunch(x, s));
  w.ExpectOne(MisuseRule::UsedAfterFree, 3, 1);
}

TEST_P(Freed, AGraphThatHadItIsToldOfOnce) {
  CUdeviceptr p = w.Memory(kBytes);
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
  EXPECT_OK(w.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  Launch(1, p);
  EXPECT_OK(w.d.StreamEndCapture(s, &g));
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&x, g, 0));
  EXPECT_OK(w.At(2).MemFree(p));
  EXPECT_OK(w.At(3).GraphLaunch(x, s));
  w.ExpectOne(MisuseRule::GraphReadsFreed, 3, 1);
}

TEST_P(Freed, AnAddressGivenOutAgainIsAlive) {
  CUdeviceptr p = w.Memory(kBytes);
  EXPECT_OK(w.d.MemFree(p));
  ASSERT_EQ(w.Memory(kBytes), p);
  Launch(1, p, p + kBytes - 8);
  w.ExpectNone();
}

TEST_P(Freed, TheEndOfALivingNeighbour) {
  CUdeviceptr p = w.Memory(kBytes);
  CUdeviceptr q = w.Memory(kBytes);
  ASSERT_EQ(q, p + kBytes);
  EXPECT_OK(w.At(1).MemFree(q));
  Launch(2, p, p + kBytes);
  w.ExpectNone();
  Launch(3, q);
  w.ExpectOne(MisuseRule::UsedAfterFree, 3, 1);
}

TEST_P(Freed, ThePlaceBeforeALivingNeighbour) {
  CUdeviceptr p = w.Memory(kBytes);
  CUdeviceptr q = w.Memory(kBytes);
  ASSERT_EQ(q, p + kBytes);
  EXPECT_OK(w.d.MemFree(p));
  Launch(1, q - 8);
  w.ExpectNone();
}

TEST_P(Freed, WhatNoPointerIs) {
  CUdeviceptr p = w.Memory(kBytes);
  EXPECT_OK(w.d.MemFree(p));
  CUdeviceptr both[] = {p, p};
  void* arguments[] = {both};
  EXPECT_OK(w.At(1).LaunchKernel(block, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr));
  int here = 0;
  Launch(2, reinterpret_cast<std::uintptr_t>(&here), kBytes);
  void* pinned = nullptr;
  EXPECT_OK(w.d.MemAllocHost(&pinned, kBytes));
  EXPECT_OK(w.d.MemFreeHost(pinned));
  Launch(3, reinterpret_cast<std::uintptr_t>(pinned));
  w.ExpectNone();
}

// An address range that was reserved since is not what was freed there, mapped or not.
TEST_P(Freed, AReservationAtItsAddress) {
  constexpr std::size_t kLarge = std::size_t{32} << 20;
  CUdeviceptr p = w.Memory(kLarge);
  CUdeviceptr q = 0;
  EXPECT_OK(w.d.MemFree(p));
  EXPECT_OK(w.d.MemAddressReserve(&q, kLarge, 0, 0, 0));
  Launch(1, q);
  w.ExpectNone();
}

INSTANTIATE_TEST_SUITE_P(Schedules, Freed, testing::ValuesIn(kSchedules), NameOf);

// Forgetting the oldest: the newest are still known.
TEST(FreedForLong, TheNewestAreKept) {
  Witnessed w;
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  EXPECT_OK(w.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(w.d.ModuleGetFunction(&f, m, "pair"));
  CUdeviceptr kept[2000] = {};
  for (CUdeviceptr& p : kept) p = w.Memory(512);
  for (std::size_t i = 0; i < std::size(kept); ++i) EXPECT_OK(w.At(i).MemFree(kept[i]));
  CUdeviceptr none = 0;
  void* arguments[] = {&kept[1999], &none};
  EXPECT_OK(w.At(5000).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  w.ExpectOne(MisuseRule::UsedAfterFree, 5000, 1999);
  arguments[0] = &kept[10];
  EXPECT_OK(w.At(5001).LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT_EQ(w.record.seen.size(), 1U);
}

}  // namespace
}  // namespace cuaudit::sim::freed_test
