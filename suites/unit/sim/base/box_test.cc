// SPDX-License-Identifier: MIT
// Boxes of intervals, and the shells of objects that are gone.
#include "faults/sim/base/box.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "faults/sim/base/arena.h"
#include "faults/sim/state/world_state.h"
#include "suites/support/sim_world.h"
#include "suites/unit/sim/witness.h"

namespace cuaudit::sim::box_test {
namespace {

// Boxes against byte by byte; pitched work of two streams, whose rows meet or do not.

using driver::MisuseRule;

std::set<std::uint64_t> BytesOf(const Box& box) {
  std::set<std::uint64_t> bytes;
  for (std::uint64_t slice = 0; slice < box.slices; ++slice) {
    for (std::uint64_t row = 0; row < box.rows; ++row) {
      for (std::uint64_t i = 0; i < box.bytes; ++i) bytes.insert(box.address + slice * box.slice_pitch + row * box.pitch + i);
    }
  }
  return bytes;
}

TEST(Boxes, MeetWhereTheirBytesDo) {
  std::mt19937 random(1);
  const auto pick = [&](std::uint64_t below) { return random() % below; };
  unsigned meet = 0;
  unsigned covered = 0;
  constexpr unsigned kPairs = 4000;
  for (unsigned i = 0; i < kPairs; ++i) {
    Box boxes[2];
    for (Box& box : boxes) {
      box.address = 1000 + pick(200);
      box.bytes = 1 + pick(6);
      box.pitch = box.bytes + pick(40);
      box.rows = 1 + pick(9);
      box.slices = pick(3) == 0 ? 1 + pick(3) : 1;
      box.slice_pitch = box.pitch * box.rows + pick(20);
    }
    if (pick(4) == 0) {
      const std::uint64_t row = pick(boxes[0].rows);
      boxes[1] = {boxes[0].address + row * boxes[0].pitch + pick(2), 1 + pick(boxes[0].bytes), 1 + pick(boxes[0].rows), boxes[0].pitch};
    }
    const std::set<std::uint64_t> one = BytesOf(boxes[0]);
    const std::set<std::uint64_t> two = BytesOf(boxes[1]);
    bool common = false;
    for (const std::uint64_t byte : two) common = common || one.count(byte) != 0;
    const bool inside = std::includes(one.begin(), one.end(), two.begin(), two.end());
    ASSERT_EQ(Overlap(boxes[0], boxes[1]), common) << i;
    ASSERT_EQ(Overlap(boxes[1], boxes[0]), common) << i;
    if (Covers(boxes[0], boxes[1])) {
      ASSERT_TRUE(inside) << i;
      ++covered;
    }
    ASSERT_TRUE(Covers(boxes[0], boxes[0]));
    meet += common ? 1 : 0;
  }
  EXPECT_GT(meet, kPairs / 8);
  EXPECT_LT(meet, kPairs - kPairs / 8);
  EXPECT_GT(covered, 50U);
}

TEST(Boxes, LargeOnesAreCountedNotWalked) {
  constexpr std::uint64_t kRows = std::uint64_t{1} << 40;
  const Box even{0, 8, kRows, 512};
  EXPECT_FALSE(Overlap(even, Box{8, 504, kRows, 512}));
  EXPECT_TRUE(Overlap(even, Box{8, 505, kRows, 512}));
  EXPECT_FALSE(Overlap(even, Box{16, 8, kRows, 1024}));
  EXPECT_TRUE(Overlap(even, Box{16, 8, kRows, 1000}));
}

constexpr std::size_t kPitch = 1024;
constexpr std::size_t kRows = 1000;

class Pitched : public testing::TestWithParam<Schedule> {
 protected:
  void Fill(std::uint64_t origin, std::size_t column, std::size_t width, CUstream stream, std::size_t row = 0, std::size_t rows = kRows) {
    EXPECT_OK(w.At(origin).MemsetD2D8Async(p + row * kPitch + column, kPitch, 1, width, rows, stream));
  }
  Witnessed w{GetParam()};
  CUdeviceptr p = w.Memory(kPitch * kRows);
  CUstream s = w.Stream();
  CUstream t = w.Stream();
};

TEST_P(Pitched, ColumnsBesideEachOtherAreSilent) {
  Fill(1, 0, 512, s);
  Fill(2, 512, 512, t);
  Fill(3, 0, 100, s);
  EXPECT_OK(w.At(4).MemsetD8Async(p + 5 * kPitch + 512, 1, 512, t));
  EXPECT_OK(w.At(5).MemsetD8Async(p + 9 * kPitch, 1, 512, s));
  EXPECT_LT(w.sim.world->spans, 10U);  // no node for each row
  w.ExpectNone();
}

TEST_P(Pitched, ColumnsThatMeetInOneByteAreARace) {
  Fill(1, 0, 513, s);
  Fill(2, 512, 512, t);
  w.ExpectOne(MisuseRule::UnorderedAccess, 2, 1);
}

TEST_P(Pitched, ARunOfBytesThatMeetsOneRow) {
  Fill(1, 0, 512, s);
  EXPECT_OK(w.At(2).MemsetD8Async(p + 7 * kPitch + 512, 1, 512, t));
  w.ExpectNone();
  EXPECT_OK(w.At(3).MemsetD8Async(p + 7 * kPitch + 512, 1, 513, t));
  w.ExpectOne(MisuseRule::UnorderedAccess, 3, 1);
}

TEST_P(Pitched, RowsThatMeetARunOfBytes) {
  EXPECT_OK(w.At(1).MemsetD8Async(p + 7 * kPitch, 1, 100, s));
  Fill(2, 100, 100, t);
  w.ExpectNone();
  Fill(3, 99, 100, t);
  w.ExpectOne(MisuseRule::UnorderedAccess, 3, 1);
}

TEST_P(Pitched, ReadersOfTheSameRowsAreSilentAndTheirWriterIsNot) {
  CUdeviceptr q = w.Memory(kPitch * kRows);
  const auto read = [&](std::uint64_t origin, std::size_t to, CUstream stream) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = p;
    copy.dstDevice = q + to;
    copy.srcPitch = copy.dstPitch = kPitch;
    copy.WidthInBytes = 256;
    copy.Height = kRows;
    EXPECT_OK(w.At(origin).Memcpy2DAsync(&copy, stream));
  };
  read(1, 0, s);
  read(2, 256, t);
  read(3, 512, s);
  w.ExpectNone();
  CUevent e = w.Event();
  EXPECT_OK(w.d.EventRecord(e, s));
  EXPECT_OK(w.d.StreamWaitEvent(t, e, 0));
  Fill(4, 0, 256, t);
  w.ExpectNone();
  Fill(5, 0, 256, s);
  ASSERT_FALSE(w.record.seen.empty());
  for (const driver::Misuse& misuse : w.record.seen) {
    EXPECT_EQ(misuse.origin, 5U);
    EXPECT_TRUE(misuse.other == 2 || misuse.other == 4) << misuse.other;
  }
}

TEST_P(Pitched, FreedUnderRowsThatAreStillWritten) {
  CUdeviceptr m = 0;
  EXPECT_OK(w.d.MemAllocAsync(&m, kPitch * kRows, s));
  EXPECT_OK(w.d.StreamSynchronize(s));
  EXPECT_OK(w.At(1).MemsetD2D8Async(m, kPitch, 1, 512, kRows, t));
  EXPECT_OK(w.At(2).MemFreeAsync(m, s));
  w.ExpectOne(MisuseRule::FreedInUse, 2, 1);
}

// Many tiles in one stream without a wait: none is forgotten that matters to the next, and none tells wrongly.
TEST_P(Pitched, MoreTilesThanAreKept) {
  for (std::size_t i = 0; i < 400; ++i) Fill(1 + i, i % 512 * 2, 2, i % 2 == 0 ? s : t, i % 7, 100);
  w.ExpectNone();
}

TEST_P(Pitched, SlicesWithRowsBetweenThem) {
  const auto fill = [&](std::uint64_t origin, std::size_t row, CUstream stream) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = w.Memory(kPitch * kRows);
    copy.dstDevice = p;
    copy.srcPitch = copy.dstPitch = kPitch;
    copy.srcHeight = copy.dstHeight = 100;
    copy.dstY = row;
    copy.WidthInBytes = 512;
    copy.Height = 40;
    copy.Depth = 10;
    EXPECT_OK(w.At(origin).Memcpy3DAsync(&copy, stream));
  };
  fill(1, 0, s);
  fill(2, 40, t);
  Fill(3, 512, 512, t);
  w.ExpectNone();
  fill(4, 39, t);
  w.ExpectOne(MisuseRule::UnorderedAccess, 4, 1);
}

TEST_P(Pitched, NodesOfAGraphThatFillColumns) {
  CUgraph graph = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.elementSize = 1;
  fill.width = 4;
  fill.height = kRows;
  fill.pitch = kPitch;
  EXPECT_OK(w.d.GraphCreate(&graph, 0));
  for (std::uint64_t i = 0; i < kPitch / fill.width; ++i) {
    CUgraphNode node = nullptr;
    fill.dst = p + i * fill.width - (i == 200 ? 1 : 0);  // one of them a byte too early
    EXPECT_OK(w.At(1 + i).GraphAddMemsetNode(&node, graph, nullptr, 0, &fill, w.sim.context));
  }
  CUgraphExec executable = nullptr;
  EXPECT_OK(w.d.GraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_OK(w.At(1000).GraphLaunch(executable, s));
  w.ExpectOne(MisuseRule::UnorderedAccess, 201, 200);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Pitched, testing::ValuesIn(kSchedules), NameOf);

using driver::Kind;

constexpr std::size_t kBytes = std::size_t{3} << 20;

bool IsZero(const char* p, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (p[i] != 0) return false;
  }
  return true;
}

TEST(Shell, ClearsWhatWasUsedWhereverItEnds) {
  static char memory[256 << 10];
  for (const std::size_t used : {std::size_t{0}, std::size_t{1}, std::size_t{65536}, std::size_t{65537}, std::size_t{200000}}) {
    std::memset(memory, 7, sizeof(memory));
    ClearUsed(memory, used);
    EXPECT_TRUE(IsZero(memory, used)) << used;
    // Up to the next page it may clear more, never before the beginning of what follows that page.
    const std::size_t page_end = (reinterpret_cast<std::uintptr_t>(memory) + used + kPage - 1) / kPage * kPage;
    EXPECT_EQ(memory[page_end - reinterpret_cast<std::uintptr_t>(memory)], 7) << used;
  }
}

TEST(Shell, TheNextWorldFindsNothingOfTheLast) {
  DropSpareWorlds();
  CUdeviceptr first = 0;
  for (int round = 0; round < 3; ++round) {
    Simulated sim;
    CUdeviceptr p = 0;
    CUdeviceptr large = 0;
    void* h = nullptr;
    EXPECT_OK(sim.d.MemAlloc(&p, 4096));
    EXPECT_OK(sim.d.MemAlloc(&large, kBytes));
    EXPECT_OK(sim.d.MemHostAlloc(&h, 4096, 0));
    if (round == 0) first = p;
    EXPECT_EQ(p, first) << "the same address space again";
    std::vector<char> seen(kBytes, 1);
    EXPECT_OK(sim.d.MemcpyDtoH(seen.data(), p, 4096));
    EXPECT_TRUE(IsZero(seen.data(), 4096));
    EXPECT_OK(sim.d.MemcpyDtoH(seen.data(), large, kBytes));
    EXPECT_TRUE(IsZero(seen.data(), kBytes));
    EXPECT_TRUE(IsZero(static_cast<char*>(h), 4096));
    std::memset(h, 9, 4096);
    EXPECT_OK(sim.d.MemsetD8(p, 9, 4096));
    EXPECT_OK(sim.d.MemsetD8(large, 9, kBytes));
    EXPECT_EQ(sim.Live(Kind::DeviceMemory), 2U);
  }
}

TEST(Shell, HandlesOfTheLastWorldAreUnknown) {
  CUevent old = nullptr;
  {
    Simulated sim;
    EXPECT_OK(sim.d.EventCreate(&old, 0));
  }
  Simulated sim;
  CUevent e = nullptr;
  EXPECT_OK(sim.d.EventCreate(&e, 0));
  EXPECT_NE(e, old);
  EXPECT_EQ(sim.d.EventDestroy(old), CUDA_ERROR_INVALID_HANDLE);
}

TEST(Shell, ALargerWorldDoesNotTakeASmallShell) {
  DropSpareWorlds();
  DestroyWorld(CreateWorld({.device_bytes = std::uint64_t{64} << 20}));
  Simulated sim({.device_bytes = std::uint64_t{512} << 20});
  CUdeviceptr p = 0;
  EXPECT_OK(sim.d.MemAlloc(&p, std::size_t{400} << 20));
  EXPECT_OK(sim.d.MemsetD8(p + (std::size_t{399} << 20), 1, 16));
}

TEST(Shell, ManyThreadsTakeAndLeave) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) {
        Simulated sim;
        CUdeviceptr p = 0;
        unsigned out = 0;
        EXPECT_OK(sim.d.MemAlloc(&p, 64));
        EXPECT_OK(sim.d.MemcpyDtoH(&out, p, sizeof(out)));
        EXPECT_EQ(out, 0U);
        EXPECT_OK(sim.d.MemsetD32(p, 77, 4));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Shell, AForkedChildMakesItsOwnWorldOfASpareOne) {
  DestroyWorld(CreateWorld({.device_bytes = std::uint64_t{256} << 20}));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    World* const world = CreateWorld({.device_bytes = std::uint64_t{256} << 20});
    _exit(world != nullptr && Driver(world).Init(0) == CUDA_SUCCESS ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace cuaudit::sim::box_test
