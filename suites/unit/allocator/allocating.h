// SPDX-License-Identifier: MIT
// allocating.h: an allocator on a simulated device; every misuse that the device proves fails the test.
//
// Owns the world, the allocator and the streams that it makes. At its end the allocator closes, and the world must hold nothing but
// those streams. Make and destroy it on one thread; the device's context is current there.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "faults/sim/world.h"
#include "suites/unit/allocator/model/faulty_driver.h"

namespace cuaudit::alloc {

#define EXPECT_OK(call) EXPECT_EQ((call), CUDA_SUCCESS)
#define ASSERT_OK(call) ASSERT_EQ((call), CUDA_SUCCESS)

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = std::size_t{1} << 20;

inline constexpr sim::Schedule kSchedules[] = {sim::Schedule::Lazy, sim::Schedule::Fifo, sim::Schedule::Random, sim::Schedule::Adversarial};

inline std::string NameOf(const testing::TestParamInfo<sim::Schedule>& schedule) {
  constexpr const char* kNames[] = {"Lazy", "Fifo", "Random", "Adversarial"};
  return kNames[static_cast<std::size_t>(schedule.param)];
}

struct Setting {
  sim::Schedule schedule = sim::Schedule::Lazy;
  std::uint64_t device_bytes = 256 * kMiB;  // of each
  int devices = 1;
  const char* profile = "h200";
};

class Allocating {
 public:
  explicit Allocating(const Options& options = {}, const Setting& setting = {}) {
    sim::WorldOptions world_options;
    world_options.device_bytes = setting.device_bytes * static_cast<std::uint64_t>(setting.devices);
    world_options.device_count = setting.devices;
    world_options.schedule = setting.schedule;
    world_options.profile = setting.profile;
    world_options.on_misuse = Tell;
    world_options.observer = &misuse;
    world = sim::CreateWorld(world_options);
    d = sim::Driver(world);
    EXPECT_OK(d.Init(0));
    std::vector<DeviceConfig> configs;
    for (int i = 0; i < setting.devices; ++i) {
      contexts.push_back(nullptr);
      EXPECT_OK(d.DevicePrimaryCtxRetain(&contexts.back(), i));
      configs.push_back(DeviceConfig{i, nullptr});
    }
    EXPECT_OK(d.CtxSetCurrent(contexts[0]));
    EXPECT_OK(Allocator::Create(d, configs.data(), setting.devices, options, &allocator)) << LastText();
  }
  ~Allocating() {
    for (const CUstream stream : streams) EXPECT_OK(d.StreamDestroy(stream));
    if (allocator != nullptr) {
      EXPECT_OK(allocator->Close(nullptr)) << allocator->LastErrorText();
      allocator.reset();
    }
    for (const driver::Kind kind : {driver::Kind::DeviceMemory, driver::Kind::Event, driver::Kind::Stream, driver::Kind::PinnedMemory,
                                    driver::Kind::Mapping, driver::Kind::PhysicalMemory, driver::Kind::AddressReservation})
      EXPECT_EQ(Live(kind), lost[kind]) << driver::Name(kind);
    EXPECT_EQ(Live(driver::Kind::PrimaryContext), contexts.size());
    for (const driver::Misuse& one : misuse) ADD_FAILURE() << driver::Name(one.rule);
    sim::DestroyWorld(world);
  }
  Allocating(const Allocating&) = delete;
  Allocating& operator=(const Allocating&) = delete;

  Allocator* operator->() const { return allocator.get(); }
  std::string LastText() const { return allocator == nullptr ? "no allocator" : allocator->LastErrorText(); }
  std::uint64_t Live(driver::Kind kind) const { return sim::LiveCount(world, kind); }

  CUstream Stream(int device = 0) {
    CUstream stream = nullptr;
    EXPECT_OK(d.CtxPushCurrent(contexts[static_cast<std::size_t>(device)]));
    EXPECT_OK(d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUcontext popped = nullptr;
    EXPECT_OK(d.CtxPopCurrent(&popped));
    streams.push_back(stream);
    return stream;
  }
  void Destroy(CUstream stream) {
    EXPECT_OK(d.StreamDestroy(stream));
    std::erase(streams, stream);
  }
  StreamRef Ref(CUstream stream, int device = 0) const {
    StreamRef ref;
    EXPECT_OK(allocator->Identify(device, stream, &ref)) << LastText();
    return ref;
  }
  PoolId Pool(const PoolOptions& options = {}) const {
    PoolId pool;
    EXPECT_OK(allocator->CreatePool(options, &pool)) << LastText();
    return pool;
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream, int device = 0) const {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(device, bytes, stream, &address)) << LastText();
    return address;
  }
  void Drop(CUdeviceptr address) const { EXPECT_OK(allocator->Free(address)) << LastText(); }
  // Some bytes of each MiB, so that large blocks cost little.
  void Write(CUdeviceptr address, std::size_t bytes, CUstream stream) const {
    if (bytes < kMiB) {
      EXPECT_OK(d.MemsetD8Async(address, 7, bytes, stream));
    } else {
      EXPECT_OK(d.MemsetD2D8Async(address, kMiB, 7, 512, bytes / kMiB, stream));
    }
  }
  // `after`'s work from now on comes behind `before`'s until now.
  void Order(CUstream before, CUstream after) const {
    CUevent event = nullptr;
    EXPECT_OK(d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(d.EventRecord(event, before));
    EXPECT_OK(d.StreamWaitEvent(after, event, 0));
    EXPECT_OK(d.EventDestroy(event));
  }
  // Reads memory on another stream, ordered behind its owner, and tells the allocator.
  void Use(CUdeviceptr address, std::size_t bytes, CUstream owner, CUstream user) const {
    Order(owner, user);
    Write(address, bytes, user);
    EXPECT_OK(allocator->RecordUse(address, user)) << LastText();
  }
  Statistics Stats(int device = 0) const {
    Statistics statistics;
    allocator->GetStatistics(device, &statistics);
    return statistics;
  }
  Snapshot Look() const {
    Snapshot snapshot;
    EXPECT_OK(allocator->TakeSnapshot(&snapshot));
    return snapshot;
  }
  std::int64_t Reserved(int device = 0) const { return Stats(device).reserved_bytes[0].current; }

  std::vector<driver::Misuse> misuse;
  sim::World* world = nullptr;
  driver::DriverRef d;
  std::vector<CUcontext> contexts;
  std::vector<CUstream> streams;
  std::unique_ptr<Allocator> allocator;
  std::map<driver::Kind, std::uint64_t> lost;  // whose release a test has refused

 private:
  static void Tell(void* self, const driver::Misuse& one) { static_cast<std::vector<driver::Misuse>*>(self)->push_back(one); }
};

// Work on a stream that does not end until the test says so, however the device runs. Owns a word of pinned memory, which is freed when the
// held streams are idle.
class Gate {
 public:
  explicit Gate(driver::DriverRef d) : d_(d) {
    EXPECT_OK(d_.MemHostAlloc(&word_, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    EXPECT_OK(d_.MemHostGetDevicePointer(&address_, word_, 0));
    *static_cast<volatile unsigned*>(word_) = 0;
  }
  ~Gate() {
    Open();
    EXPECT_OK(d_.MemFreeHost(word_));
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Work queued on the stream from now on does not run until Open.
  void Hold(CUstream stream) {
    EXPECT_OK(d_.StreamWaitValue32(stream, address_, opened_ + 1, CU_STREAM_WAIT_VALUE_GEQ));
    held_.push_back(stream);
  }
  // And all of it is over.
  void Open() {
    *static_cast<volatile unsigned*>(word_) = ++opened_;
    for (const CUstream stream : held_) EXPECT_OK(d_.StreamSynchronize(stream));
    held_.clear();
  }

 private:
  driver::DriverRef d_;
  void* word_ = nullptr;
  CUdeviceptr address_ = 0;
  unsigned opened_ = 0;
  std::vector<CUstream> held_;
};

// With these options pages move whenever that spares new memory.
inline Options Moving(Reuse reuse = Reuse::Poll) {
  Options options;
  options.expandable_segments = true;
  options.page_size = 2 * kMiB;
  options.remap_budget = 1.0;
  options.trust_stream_handles = true;
  options.reuse = reuse;
  return options;
}

// A block of twenty pages of theirs.
inline constexpr std::int64_t kRowBytes = 40 * std::int64_t{kMiB};
inline constexpr std::uint64_t kRowPages = 20;

// An allocator on a simulated driver whose calls can be made to fail one by one, and two streams.
//
// Owns a reference to the primary context, and the allocator, whose calls fail as `failing` says. A preparation that fails fails the
// test.

class Releases : public testing::Test {
 protected:
  explicit Releases(const Setting& setting = {}) : a({}, setting) {
    EXPECT_OK(a.d.DevicePrimaryCtxRetain(&context, 0));
    s = a.Stream();
    t = a.Stream();
  }
  ~Releases() override { EXPECT_OK(a.d.DevicePrimaryCtxRelease(0)); }
  void Make(const Options& options) {
    const DeviceConfig config;
    ASSERT_OK(Allocator::Create(failing.ref(), &config, 1, options, &allocator));
  }
  CUdeviceptr Get(std::size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_OK(allocator->Allocate(0, bytes, stream, &address)) << allocator->LastErrorText();
    return address;
  }
  Statistics Stats() {
    Statistics statistics;
    allocator->GetStatistics(0, &statistics);
    return statistics;
  }

  Allocating a;
  CUcontext context = nullptr;
  FailingCalls failing{a.d};
  CUstream s = nullptr;
  CUstream t = nullptr;
  std::unique_ptr<Allocator> allocator;
};

}  // namespace cuaudit::alloc
