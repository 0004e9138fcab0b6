// SPDX-License-Identifier: MIT
// sim_world.h: a world with a current primary context for one test.
//
//   Owns      the world.
//   Threads   the context is current on the constructing thread only.
//   Faults    Init, DevicePrimaryCtxRetain, CtxSetCurrent.
#pragma once

#include <gtest/gtest.h>

#include "faults/sim/world.h"

namespace cuaudit::sim {

class Simulated {
 public:
  explicit Simulated(WorldOptions options = {.device_bytes = std::uint64_t{256} << 20}) : world(CreateWorld(options)), d(Driver(world)) {
    EXPECT_EQ(d.Init(0), CUDA_SUCCESS);
    EXPECT_EQ(d.DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(d.CtxSetCurrent(context), CUDA_SUCCESS);
  }
  ~Simulated() { DestroyWorld(world); }
  Simulated(const Simulated&) = delete;
  Simulated& operator=(const Simulated&) = delete;
  std::uint64_t Live(driver::Kind kind) const { return LiveCount(world, kind); }

  World* world;
  driver::DriverRef d;
  CUcontext context = nullptr;
};

#define EXPECT_OK(call) EXPECT_EQ((call), CUDA_SUCCESS)

}  // namespace cuaudit::sim
