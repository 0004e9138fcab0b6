// SPDX-License-Identifier: MIT
// What a trial left on a driver that the next trial shares is released; what went with its context is not touched again, because a genuine
// driver ends the process for that.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include "harness/lifecycle/trial_world.h"
#include "suites/support/gated_world.h"

namespace cuaudit::harness::give_back_test {
namespace {

using driver::BaseId;
using faults::GatedWorld;

std::size_t EventsDestroyed(const GatedWorld& world) {
  std::size_t count = 0;
  for (const faults::Record& record : world.Records()) {
    if (record.kind != faults::RecordKind::Call) continue;
    count += driver::BaseOf(static_cast<driver::CallId>(record.call)) == BaseId::EventDestroy ? 1 : 0;
  }
  return count;
}

// An event in a context of its own, whose destruction was refused.
CUcontext RefusedEvent(GatedWorld* world) {
  CUcontext context = nullptr;
  CUevent event = nullptr;
  EXPECT_EQ(world->driver().CtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(world->driver().EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(world->driver().EventDestroy(event), CUDA_ERROR_INVALID_CONTEXT);
  return context;
}

struct Shared : GatedWorld {
  Shared() : GatedWorld({"cuEventDestroy#1=INVALID_CONTEXT,refuse"}) {
    Start();
    EXPECT_EQ(driver().CtxGetCurrent(&primary), CUDA_SUCCESS);
  }
  std::uint32_t Clean() { return GiveBack(driver(), primary, Fold(Records())); }
  CUcontext primary = nullptr;
};

TEST(GiveBack, ReleasesWhatARefusedReleaseLeft) {
  Shared world;
  (void)RefusedEvent(&world);
  EXPECT_EQ(world.Clean(), 0U);
  EXPECT_EQ(EventsDestroyed(world), 2U);
  EXPECT_EQ(world.Live(driver::Kind::Event), 0U);
  EXPECT_EQ(world.Live(driver::Kind::Context), 0U);
}

TEST(GiveBack, DoesNotTouchWhatWentWithItsContextAfterARefusedRelease) {
  Shared world;
  EXPECT_EQ(world.driver().CtxDestroy(RefusedEvent(&world)), CUDA_SUCCESS);
  EXPECT_EQ(world.Clean(), 0U);
  EXPECT_EQ(EventsDestroyed(world), 1U);
}

// Peer access ends in the context that has it, which is not the one that is current.
TEST(GiveBack, DisablesPeerAccessInItsContext) {
  faults::StartedWorld world({"cuCtxDisablePeerAccess#1=INVALID_CONTEXT,refuse"}, faults::Scope::Pinned, 2);
  CUcontext primary[2] = {};
  ASSERT_EQ(world.driver().CtxGetCurrent(&primary[0]), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().DevicePrimaryCtxRetain(&primary[1], 1), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().CtxSetCurrent(primary[1]), CUDA_SUCCESS);
  ASSERT_EQ(world.driver().CtxEnablePeerAccess(primary[0], 0), CUDA_SUCCESS);
  EXPECT_EQ(world.driver().CtxDisablePeerAccess(primary[0]), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(world.Live(driver::Kind::PeerAccess), 1U);
  EXPECT_EQ(GiveBack(world.driver(), primary[0], Fold(world.Records())), 0U);
  EXPECT_EQ(world.Live(driver::Kind::PeerAccess), 0U);
}

}  // namespace
}  // namespace cuaudit::harness::give_back_test
