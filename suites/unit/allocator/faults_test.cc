// SPDX-License-Identifier: MIT
// Every driver call that the allocator makes fails in turn, and calls on the way back from the first failure too: nothing may leak, no lock
// may stay held, and the allocator must serve afterwards. The calls are the same however fast the device is: else faults that were planned
// on one device would not fire on another.
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/journal/journal_file.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"
#include "suites/support/allocator_steps.h"

namespace cuaudit::alloc::faults_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// What one trial saw.
struct TrialSeen {
  bool created = false;
  std::uint64_t pages_moved = 0;
  std::vector<CUresult> errors;
};

class Trial {
 public:
  Trial(const Options& options, const std::vector<std::string>& faults, bool record) : options_(options) {
    sim::WorldOptions world_options = {.device_bytes = 128 * kMiB};
    // Pages move when work is over.
    if (options.remap_budget > 0.0) world_options.schedule = sim::Schedule::Fifo;
    world_options.on_misuse = Tell;
    world_options.observer = this;
    world_ = sim::CreateWorld(world_options);
    below_ = sim::Driver(world_);
    EXPECT_EQ(below_.Init(0), CUDA_SUCCESS);
    EXPECT_EQ(below_.DevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    EXPECT_EQ(below_.CtxSetCurrent(context_), CUDA_SUCCESS);
    for (CUstream& stream : streams_) EXPECT_EQ(below_.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    faults::Plan plan;
    for (const std::string& text : faults) {
      faults::Fault fault;
      EXPECT_EQ(faults::ParseFault(text, &fault).expected, nullptr) << text;
      EXPECT_TRUE(plan.Add(fault));
      // Not released a second time: the driver keeps what it refused to take.
      static constexpr std::pair<const char*, driver::Kind> kOnce[] = {
          {"cuEventDestroy#", driver::Kind::Event},
          {"cuStreamDestroy#", driver::Kind::Stream},
          {"cuMemAddressFree#", driver::Kind::AddressReservation},
          {"cuDevicePrimaryCtxRelease#", driver::Kind::PrimaryContext},
      };
      for (const auto& [call, kind] : kOnce) kept_[kind] += text.rfind(call, 0) == 0 && text.find(",refuse") != std::string::npos;
      // Of a page that could not be mapped, whose number nothing keeps from becoming another's.
      kept_[driver::Kind::PhysicalMemory] += text.rfind("cuMemRelease#", 0) == 0 && faults[0].rfind("cuMemMap#", 0) == 0;
    }
    const char* const wrong = record ? journal_.Open({.record_capacity = 1 << 10}, false) : nullptr;
    EXPECT_STREQ(wrong, nullptr);
    gate_ = std::make_unique<faults::Gate>();
    gate_->Arm(below_, record ? journal_.journal() : nullptr, nullptr, plan, faults::Scope::Process);
  }
  ~Trial() { sim::DestroyWorld(world_); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  TrialSeen Run() {
    const DeviceConfig config;
    std::unique_ptr<Allocator> allocator;
    Keep(Allocator::Create(faults::Driver(gate_.get()), &config, 1, options_, &allocator));
    outcome_.created = allocator != nullptr;
    if (allocator != nullptr) {
      Work(*allocator);
      // Whatever failed before: now it must serve.
      CUdeviceptr address = 0;
      EXPECT_EQ(Persistently([&] { return allocator->Allocate(0, 4 * kMiB, streams_[0], &address); }), CUDA_SUCCESS);
      EXPECT_EQ(below_.MemsetD8Async(address, 1, 512, streams_[0]), CUDA_SUCCESS);
      EXPECT_EQ(allocator->Free(address), CUDA_SUCCESS);
      Statistics statistics;
      allocator->GetStatistics(0, &statistics);
      outcome_.pages_moved = statistics.pages_moved;
      EXPECT_EQ(Persistently([&] { return allocator->Close(); }), CUDA_SUCCESS);
      allocator.reset();
    }
    CUcontext current = nullptr;
    EXPECT_EQ(below_.CtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, context_);
    EXPECT_EQ(sim::LiveCount(world_, driver::Kind::ContextStackEntry), 1U);
    for (CUstream& stream : streams_) EXPECT_EQ(below_.StreamDestroy(stream), CUDA_SUCCESS);
    for (const driver::Kind kind : {driver::Kind::DeviceMemory, driver::Kind::Event, driver::Kind::Stream, driver::Kind::PinnedMemory,
                                    driver::Kind::Mapping, driver::Kind::PhysicalMemory, driver::Kind::AddressReservation})
      EXPECT_LE(sim::LiveCount(world_, kind), kept_[kind]) << driver::Name(kind);
    EXPECT_EQ(sim::LiveCount(world_, driver::Kind::PrimaryContext), 1U + kept_[driver::Kind::PrimaryContext]);
    EXPECT_EQ(misuses_, 0);
    return outcome_;
  }

  // The calls of the run, as places for faults, each with a code that its documentation knows; with `after_fault`, the next few behind the
  // first one that was refused. `*fired` counts those.
  std::vector<std::string> Places(bool after_fault, std::size_t* fired) const {
    constexpr std::size_t kNext = 2;
    std::vector<std::string> places;
    std::vector<int> count(driver::kCallCount, 0);
    const faults::JournalView journal = journal_.View();
    for (const faults::Record& record : journal.records()) {
      if (record.kind != faults::RecordKind::Call) continue;
      const driver::BaseId base = driver::BaseOf(static_cast<driver::CallId>(record.call));
      const std::string name(driver::Name(base));
      const int n = ++count[driver::Index(base)];
      if (after_fault && (*fired == 0 || places.size() == kNext)) {
        *fired += (record.flags & faults::kInjected) != 0;
        continue;
      }
      *fired += (record.flags & faults::kInjected) != 0;
      places.push_back(name + "#" + std::to_string(n) + "=" + std::string(driver::ShortResultName(driver::DefaultCode(base))) + ",refuse");
    }
    return places;
  }

 private:
  static void Tell(void* self, const driver::Misuse&) { ++static_cast<Trial*>(self)->misuses_; }
  void Keep(CUresult result) {
    if (result != CUDA_SUCCESS) outcome_.errors.push_back(result);
  }
  template <typename Call>
  CUresult Persistently(Call call) {
    CUresult result = call();
    for (int again = 0; again < 4 && result != CUDA_SUCCESS; ++again) {
      Keep(result);
      result = call();
    }
    return result;
  }
  void Order(CUstream before, CUstream after) {
    CUevent event = nullptr;
    EXPECT_EQ(below_.EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    EXPECT_EQ(below_.EventRecord(event, before), CUDA_SUCCESS);
    EXPECT_EQ(below_.StreamWaitEvent(after, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(below_.EventDestroy(event), CUDA_SUCCESS);
  }

  // Mixed work on three streams: small, large, uses of each kind, a pool, running out of memory, giving back.
  void Work(Allocator& allocator) {
    PoolId pool;
    Keep(allocator.CreatePool({}, &pool));
    for (int round = options_.expandable_segments ? 1 : 0; round < 2; ++round) {
      CUdeviceptr block[6] = {};
      const std::size_t bytes[6] = {1000, 600 * 1024, 3 * kMiB, 12 * kMiB, 12 * kMiB, 7 * kMiB};
      for (int i = 0; i < 6; ++i) {
        Keep(allocator.Allocate(0, bytes[i], streams_[i % 2], &block[i]));
        if (block[i] != 0) {
          EXPECT_EQ(below_.MemsetD8Async(block[i], 1, 512, streams_[i % 2]), CUDA_SUCCESS);
        }
      }
      for (int i = 2; i < 5; ++i) {
        if (block[i] == 0) continue;
        Order(streams_[i % 2], streams_[2]);
        EXPECT_EQ(below_.MemsetD8Async(block[i], 2, 512, streams_[2]), CUDA_SUCCESS);
        const CUresult result = allocator.RecordUse(block[i], streams_[2]);
        Keep(result);
        if (result != CUDA_SUCCESS) {  // as a caller would
          EXPECT_EQ(below_.StreamSynchronize(streams_[2]), CUDA_SUCCESS);
        }
      }
      if (block[5] != 0) {
        const CUresult result = allocator.RecordStream(block[5], streams_[2]);
        Keep(result);
        if (result == CUDA_SUCCESS) {
          Order(streams_[1], streams_[2]);
          EXPECT_EQ(below_.MemsetD8Async(block[5], 2, 512, streams_[2]), CUDA_SUCCESS);
        }
      }
      if (block[1] != 0) {
        CUevent event = nullptr;
        EXPECT_EQ(below_.EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        Order(streams_[1], streams_[2]);
        EXPECT_EQ(below_.MemsetD8Async(block[1], 2, 512, streams_[2]), CUDA_SUCCESS);
        EXPECT_EQ(below_.EventRecord(event, streams_[2]), CUDA_SUCCESS);
        const CUresult result = allocator.KeepAliveUntil(block[1], event);
        Keep(result);
        if (result != CUDA_SUCCESS) {
          EXPECT_EQ(below_.EventSynchronize(event), CUDA_SUCCESS);
        }
        EXPECT_EQ(below_.EventDestroy(event), CUDA_SUCCESS);
      }
      for (const CUdeviceptr one : block) Keep(allocator.Free(one));
      for (int i = 2; i < 6; ++i) {
        block[i] = 0;
        Keep(allocator.Allocate(0, bytes[i], streams_[i % 2], &block[i]));
        if (block[i] != 0) {
          EXPECT_EQ(below_.MemsetD8Async(block[i], 3, 512, streams_[i % 2]), CUDA_SUCCESS);
        }
      }
      Keep(allocator.BeginAllocateToPool(0, pool, {}));
      CUdeviceptr inside = 0;
      Keep(allocator.Allocate(0, 2 * kMiB, streams_[0], &inside));
      Keep(allocator.EndAllocateToPool(0, pool));
      Keep(allocator.Free(inside));
      for (int i = 2; i < 6; ++i) Keep(allocator.Free(block[i]));
      CUdeviceptr huge = 0;
      Keep(allocator.Allocate(0, 80 * kMiB, streams_[1], &huge));  // needs what is cached
      Keep(allocator.Free(huge));
      Keep(allocator.Trim(0, 10 * kMiB));
    }
    Keep(allocator.ReleasePool(pool));
    Keep(allocator.EmptyCache());
  }

  Options options_;
  faults::MemoryJournal journal_;
  sim::World* world_ = nullptr;
  driver::DriverRef below_;
  CUcontext context_ = nullptr;
  CUstream streams_[3] = {};
  std::unique_ptr<faults::Gate> gate_;
  int misuses_ = 0;
  std::map<driver::Kind, std::uint64_t> kept_;
  TrialSeen outcome_;
};

class Faults : public testing::TestWithParam<int> {
 protected:
  static Options Chosen() {
    Options options;
    options.reuse = (GetParam() & 1) != 0 ? Reuse::Wait : Reuse::Poll;
    options.expandable_segments = (GetParam() & 6) != 0;
    if ((GetParam() & 4) != 0) {
      options.remap_budget = 1.0;
      options.page_size = 4 * kMiB;
      options.trust_stream_handles = true;
    }
    return options;
  }
};

TEST_P(Faults, EachCallInTurnAndOnesBehindIt) {
  std::vector<std::string> places;
  {
    Trial clean(Chosen(), {}, true);
    const TrialSeen outcome = clean.Run();
    EXPECT_EQ(outcome.pages_moved != 0, (GetParam() & 4) != 0);
    ASSERT_TRUE(outcome.created);
    ASSERT_TRUE(outcome.errors.empty()) << driver::ResultName(outcome.errors.front());
    std::size_t fired = 0;
    places = clean.Places(false, &fired);
    ASSERT_EQ(fired, 0U);
  }
  ASSERT_GT(places.size(), 100U);
  // A run is the same until its first fault, so each place is reached. Second faults behind every eighth first one, other ones each
  // time; all of them are a matter for the sweep engine.
  for (std::size_t i = 0; i < places.size() && !HasFailure(); ++i) {
    SCOPED_TRACE(places[i]);
    const bool deeper = i % 8 == static_cast<std::size_t>(GetParam());
    Trial trial(Chosen(), {places[i]}, deeper);
    (void)trial.Run();
    if (!deeper) continue;
    std::size_t fired = 0;
    const std::vector<std::string> next = trial.Places(true, &fired);
    EXPECT_EQ(fired, 1U);
    for (const std::string& second : next) {
      SCOPED_TRACE(second);
      Trial twice(Chosen(), {places[i], second}, false);
      (void)twice.Run();
    }
  }
}

std::string NameOfChosen(const testing::TestParamInfo<int>& chosen) {
  static constexpr const char* kGrowth[] = {"Segments", "Expandable", "Moving"};
  return std::string((chosen.param & 1) != 0 ? "Wait" : "Poll") + kGrowth[chosen.param >> 1];
}

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::Range(0, 6), NameOfChosen);

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
}  // namespace cuaudit::alloc::faults_test
