// SPDX-License-Identifier: MIT
// The allocator's own lifecycle makes the same calls however fast the device is, with each call failing in turn, too: else faults that
// were planned on one device would not fire on another.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"
#include "suites/support/allocator_steps.h"

namespace cuaudit::alloc::schedules_test {
namespace {

using Calls = std::vector<driver::BaseId>;

struct Device {
  const char* name;
  sim::Schedule schedule;
  std::uint64_t seed;
};
constexpr Device kDevices[] = {
    {"Fifo", sim::Schedule::Fifo, 1},
    {"Random, seed 1", sim::Schedule::Random, 1},
    {"Random, seed 2", sim::Schedule::Random, 2},
    {"Random, seed 3", sim::Schedule::Random, 3},
    {"Adversarial", sim::Schedule::Adversarial, 1},
};

void Note(void* self, driver::BaseId base) noexcept { static_cast<Calls*>(self)->push_back(base); }

Calls CallsOf(const Options& options, int rounds, const std::string& fault_text, const Device& device) {
  Calls calls;
  sim::WorldOptions world_options;
  world_options.device_bytes = std::uint64_t{256} << 20;
  world_options.schedule = device.schedule;
  world_options.seed = device.seed;
  sim::World* const world = sim::CreateWorld(world_options);
  faults::Plan plan;
  if (!fault_text.empty()) {
    faults::Fault fault;
    EXPECT_EQ(faults::ParseFault(fault_text, &fault).expected, nullptr) << fault_text;
    EXPECT_TRUE(plan.Add(fault));
  }
  {
    faults::Gate gate;
    gate.Arm(sim::Driver(world), nullptr, nullptr, plan, faults::Scope::Process);
    gate.Watch({Note, &calls});
    const driver::DriverRef d = faults::Driver(&gate);
    AllocatorSteps steps(options, rounds, 4);
    CUresult result = steps.Init(d);
    if (result == CUDA_SUCCESS) result = steps.Work(d);
    (void)steps.Teardown(d);
  }
  sim::DestroyWorld(world);
  return calls;
}

std::string FirstDifference(const Calls& a, const Calls& b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  const auto name = [i](const Calls& calls) { return i < calls.size() ? std::string(driver::Name(calls[i])) : "nothing"; };
  return "call " + std::to_string(i + 1) + ": " + name(a) + " and " + name(b);
}

class Schedules : public testing::TestWithParam<int> {};

TEST_P(Schedules, DoNotDecideWhichCallsAreMade) {
  Options options;
  options.reuse = (GetParam() & 1) != 0 ? Reuse::Wait : Reuse::Poll;
  options.expandable_segments = (GetParam() & 2) != 0;
  const Device lazy{"Lazy", sim::Schedule::Lazy, 1};
  const Calls clean = CallsOf(options, 1, "", lazy);
  ASSERT_GT(clean.size(), 100U);
  std::vector<std::string> faults = {""};
  std::vector<int> count(driver::kCallCount, 0);
  for (const driver::BaseId base : clean) {
    const int n = ++count[driver::Index(base)];
    faults.push_back(std::string(driver::Name(base)) + "#" + std::to_string(n) + "=" +
                     std::string(driver::ShortResultName(driver::DefaultCode(base))) + ",refuse");
  }
  for (const std::string& fault : faults) {
    const Calls expected = CallsOf(options, 1, fault, lazy);
    for (const Device& device : kDevices) {
      const Calls calls = CallsOf(options, 1, fault, device);
      ASSERT_TRUE(calls == expected) << "fault '" << fault << "', Lazy and " << device.name << ": " << FirstDifference(expected, calls);
    }
  }
  // In a second round it does: there it is asked which uses are over. So that is no lifecycle to plan faults for by count.
  EXPECT_FALSE(CallsOf(options, 2, "", lazy) == CallsOf(options, 2, "", kDevices[0]));
}

INSTANTIATE_TEST_SUITE_P(All, Schedules, testing::Range(0, 4), [](const testing::TestParamInfo<int>& chosen) {
  return std::string((chosen.param & 1) != 0 ? "Wait" : "Poll") + ((chosen.param & 2) != 0 ? "Expandable" : "Segments");
});

}  // namespace
}  // namespace cuaudit::alloc::schedules_test
