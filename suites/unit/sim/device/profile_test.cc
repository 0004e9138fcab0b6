// SPDX-License-Identifier: MIT
#include "faults/sim/device/profile.h"

#include "suites/support/sim_world.h"

namespace cuaudit::sim::profile_test {
namespace {

#if CUDA_VERSION >= 13000
// The names beside the numbers are the header's.
#define CUAUDIT_ATTRIBUTE(number, name, value) static_assert(CU_DEVICE_ATTRIBUTE_##name == (number));
#include "faults/sim/device/profile_h200.def"
#include "faults/sim/device/profile_small.def"
#undef CUAUDIT_ATTRIBUTE
#define CUAUDIT_REQUIRES(base, number, name) static_assert(CU_DEVICE_ATTRIBUTE_##name == (number));
#include "faults/sim/entry/requirements.def"
#undef CUAUDIT_REQUIRES
#endif

constexpr const char* kPtx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry plain()\n{\n ret;\n}\n";

WorldOptions Small() { return {.device_bytes = std::uint64_t{256} << 20, .profile = "small"}; }

TEST(Profile, AnUnknownNameMakesNoWorld) { EXPECT_EQ(CreateWorld({.profile = "voodoo"}), nullptr); }

TEST(Profile, TheDeviceIsTheProfiles) {
  Simulated sim(Small());
  char name[64];
  int value = 0;
  EXPECT_OK(sim.d.DeviceGetName(name, sizeof(name), 0));
  EXPECT_STREQ(name, "cuaudit simulated GTX 1650");
  EXPECT_OK(sim.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(value, 7);
  Simulated large;
  EXPECT_OK(large.d.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(value, 9);
}

TEST(Profile, ADeviceHasNoMoreMemoryThanItsProfile) {
  Simulated sim({.device_bytes = std::uint64_t{64} << 30, .profile = "small"});
  std::size_t bytes = 0;
  EXPECT_OK(sim.d.DeviceTotalMem(&bytes, 0));
  EXPECT_LE(bytes, std::size_t{4} << 30);
}

TEST(Profile, WhatTheDeviceLacksIsRefused) {
  Simulated sim(Small());
  Simulated large;
  CUmemoryPool pool = nullptr;
  CUdeviceptr p = 0;
  EXPECT_EQ(sim.d.DeviceGetDefaultMemPool(&pool, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_OK(large.d.DeviceGetDefaultMemPool(&pool, 0));
  EXPECT_EQ(sim.d.MemAllocAsync(&p, 64, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_OK(large.d.MemAllocAsync(&p, 64, nullptr));
  EXPECT_EQ(sim.d.MemAddressReserve(&p, 2 << 20, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_OK(large.d.MemAddressReserve(&p, 2 << 20, 0, 0, 0));
  EXPECT_OK(large.d.MemAddressFree(p, 2 << 20));
}

TEST(Occupancy, FollowsTheTighterLimit) {
  const Profile& h200 = *FindProfile("h200");
  const Profile& small = *FindProfile("small");
  const KernelNeeds light{16, 0};
  EXPECT_EQ(BlocksPerMultiprocessor(h200, light, 32, 0), 32);  // blocks
  EXPECT_EQ(BlocksPerMultiprocessor(small, light, 32, 0), 16);
  EXPECT_EQ(BlocksPerMultiprocessor(h200, light, 1024, 0), 2);  // warps
  EXPECT_EQ(BlocksPerMultiprocessor(small, light, 1024, 0), 1);
  const KernelNeeds heavy{64, 0};
  EXPECT_EQ(BlocksPerMultiprocessor(h200, heavy, 256, 0), 4);       // registers
  EXPECT_EQ(BlocksPerMultiprocessor(h200, light, 128, 100000), 2);  // shared memory
  EXPECT_EQ(BlocksPerMultiprocessor(small, light, 128, 100000), 0);
  EXPECT_EQ(BlocksPerMultiprocessor(h200, light, 2048, 0), 0);
}

int size_calls = 0;
std::size_t CUDA_CB Growing(int threads) {
  ++size_calls;
  return static_cast<std::size_t>(threads) * 96;
}

TEST(Occupancy, TheProgramsFunctionDecidesSharedMemory) {
  Simulated sim;
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  int grid = 0;
  int block = 0;
  EXPECT_OK(sim.d.ModuleLoadData(&m, kPtx));
  EXPECT_OK(sim.d.ModuleGetFunction(&f, m, "plain"));
  EXPECT_OK(sim.d.OccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  size_calls = 0;
  EXPECT_OK(sim.d.OccupancyMaxPotentialBlockSize(&grid, &block, f, Growing, 0, 0));
  EXPECT_GT(size_calls, 1);
  EXPECT_LT(block, 1024);  // 96 KiB are more than a block may have without asking
}

}  // namespace
}  // namespace cuaudit::sim::profile_test
