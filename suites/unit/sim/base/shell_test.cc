// SPDX-License-Identifier: MIT
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "faults/sim/base/arena.h"
#include "suites/support/sim_world.h"

namespace cuaudit::sim::shell_test {
namespace {

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
}  // namespace cuaudit::sim::shell_test
