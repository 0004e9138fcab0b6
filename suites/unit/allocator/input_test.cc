// SPDX-License-Identifier: MIT
// Bad input: one clear error, and nothing has changed.
#include <gmock/gmock.h>

#include <limits>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::input_test {
namespace {

using testing::HasSubstr;

TEST(Input, Sizes) {
  Allocating a;
  CUstream s = a.Stream();
  CUdeviceptr out = 1;
  EXPECT_OK(a->Allocate(0, 0, s, &out));
  EXPECT_EQ(out, 0U);
  EXPECT_OK(a->Free(0));
  for (const std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 511, static_cast<std::size_t>(-1), static_cast<std::size_t>(-4096), (std::size_t{1} << 60) + 1}) {
    out = 1;
    EXPECT_EQ(a->Allocate(0, bytes, s, &out), CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(a.LastText(), HasSubstr("2^60"));
    EXPECT_EQ(out, 0U);
    EXPECT_EQ(a->Allocate(bytes, a.Ref(s), &out), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(a->Allocate(0, std::size_t{1} << 60, s, &out), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(a->Allocate(0, (std::size_t{1} << 32) * 512 + 512, s, &out), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(a.Reserved(), 0);
  const CUdeviceptr one = a.Get(1, s);
  EXPECT_NE(one, 0U);
  a.Drop(one);
}

TEST(Input, ForeignPointers) {
  Allocating a;
  CUstream s = a.Stream();
  const CUdeviceptr x = a.Get(4096, s);
  CUdeviceptr foreign = 0;
  ASSERT_OK(a.d.MemAlloc(&foreign, 4096));
  for (const CUdeviceptr bad : {foreign, x + 512, x + 1, CUdeviceptr{1}, CUdeviceptr{512}, ~CUdeviceptr{0}, CUdeviceptr{1} << 49}) {
    EXPECT_EQ(a->Free(bad), CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(a.LastText(), HasSubstr("no block of this allocator begins there"));
    EXPECT_EQ(a->RecordUse(bad, s), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(a->RecordStream(bad, s), CUDA_ERROR_INVALID_VALUE);
    CUevent none = nullptr;
    EXPECT_EQ(a->KeepAliveUntil(bad, none), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_GE(a.Stats().foreign_pointers, 7U);
  EXPECT_EQ(a.Stats().allocation[0].current, 1);
  EXPECT_OK(a.d.MemFree(foreign));
  a.Drop(x);
}

TEST(Input, DoubleFreeAndUseAfterFree) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  for (const std::size_t bytes : {std::size_t{4096}, 3 * kMiB, 40 * kMiB}) {
    const CUdeviceptr x = a.Get(bytes, s);
    a.Drop(x);
    EXPECT_EQ(a->Free(x), CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(a.LastText(), HasSubstr("freed already"));
    EXPECT_EQ(a->RecordUse(x, t), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(a->RecordStream(x, t), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(a.Get(bytes, s), x);
    EXPECT_NE(a.Get(bytes, s), x);
    a.Drop(x);
  }
  EXPECT_EQ(a.Stats().double_frees, 3U);
  EXPECT_EQ(a.Stats().uses_recorded, 0U);
}

TEST(Input, StreamsThatAreNotTheDevices) {
  Allocating a({}, {.devices = 2});
  CUstream far = a.Stream(1);
  CUdeviceptr out = 1;
  EXPECT_EQ(a->Allocate(0, 4096, far, &out), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(a.LastText(), HasSubstr("another context"));
  EXPECT_EQ(out, 0U);
  CUcontext other = nullptr;
#if CUDA_VERSION >= 13000
  ASSERT_OK(a.d.CtxCreate(&other, nullptr, 0, 0));
#else
  ASSERT_OK(a.d.CtxCreate(&other, 0, 0));
#endif
  CUstream elsewhere = nullptr;
  ASSERT_OK(a.d.StreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING));
  CUcontext popped = nullptr;
  ASSERT_OK(a.d.CtxPopCurrent(&popped));
  EXPECT_EQ(a->Allocate(0, 4096, elsewhere, &out), CUDA_ERROR_INVALID_CONTEXT);
  StreamRef ref;
  ASSERT_OK(a->Identify(0, elsewhere, &ref));
  EXPECT_EQ(ref.device(), -1);
  EXPECT_EQ(a->Allocate(4096, ref, &out), CUDA_ERROR_INVALID_CONTEXT);
  // It may use a block all the same.
  CUstream s = a.Stream();
  const CUdeviceptr x = a.Get(4096, s);
  EXPECT_OK(a->RecordUse(x, elsewhere)) << a.LastText();
  a.Drop(x);
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a->Allocate(5, 4096, s, &out), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a->Allocate(-1, 4096, s, &out), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(a->Allocate(4096, StreamRef(), &out), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(a.d.StreamDestroy(elsewhere));
  ASSERT_OK(a->Close());
  ASSERT_OK(a.d.CtxDestroy(other));
}

TEST(Input, DestroyedStreams) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(4096, s);
  const CUdeviceptr y = a.Get(4096, t);
  a.Destroy(s);
  CUdeviceptr out = 1;
  EXPECT_EQ(a->Allocate(0, 4096, s, &out), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(a->RecordUse(y, s), CUDA_ERROR_INVALID_HANDLE);
  a.Drop(x);
  a.Drop(y);
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(4 * kMiB));
  EXPECT_OK(a->EmptyCache());
  EXPECT_EQ(a.Reserved(), 0);
}

TEST(Input, EventsThatAreNone) {
  for (const Reuse reuse : {Reuse::Poll, Reuse::Wait}) {
    Allocating a({.reuse = reuse});
    CUstream s = a.Stream();
    const CUdeviceptr x = a.Get(4 * kMiB, s);
    CUevent event = nullptr;
    EXPECT_EQ(a->KeepAliveUntil(x, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_THAT(a.LastText(), HasSubstr("cannot be waited for"));
    ASSERT_OK(a.d.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(a->KeepAliveUntil(x, event)) << a.LastText();  // never recorded: it counts as over
    ASSERT_OK(a.d.EventDestroy(event));
    EXPECT_EQ(a->KeepAliveUntil(x, event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(a->RetireStream(0, reinterpret_cast<CUstream>(event)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(a.Stats().allocation[0].current, 1);
    a.Drop(x);
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Reserved(), 0);
  }
}

TEST(Input, LimitsThatAreNone) {
  Allocating a;
  for (const double fraction : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(a->SetMemoryFraction(0, fraction), CUDA_ERROR_INVALID_VALUE) << fraction;
    EXPECT_THAT(a.LastText(), HasSubstr("more than 0, at most 1"));
    Options options = {.memory_fraction = fraction};
    EXPECT_NE(Check(options), nullptr) << fraction;
  }
  for (const double threshold : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    Options options = {.memory_fraction = 0.5, .garbage_collection_threshold = threshold};
    EXPECT_NE(Check(options), nullptr) << threshold;
  }
  a.Drop(a.Get(200 * kMiB, a.Stream()));
  EXPECT_OK(a->Trim(0, static_cast<std::size_t>(-1)));
  EXPECT_EQ(a.Reserved(), static_cast<std::int64_t>(200 * kMiB));
  EXPECT_EQ(a->Trim(-1, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(Input, AStreamOfRecordStreamDestroyedBeforeTheFree) {
  Allocating a;
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  const CUdeviceptr x = a.Get(4 * kMiB, s);
  EXPECT_OK(a->RecordStream(x, t));
  a.Order(s, t);
  a.Write(x, 4 * kMiB, t);
  a.Destroy(t);
  EXPECT_NE(a->Free(x), CUDA_SUCCESS);
  EXPECT_EQ(a->Free(x), CUDA_ERROR_INVALID_VALUE);  // it was consumed
  EXPECT_NE(a.Get(4 * kMiB, s), x);                 // but its use is unknown
  EXPECT_OK(a->EmptyCache());                       // until everything is synchronised
  EXPECT_EQ(a.Stats().blocks_pending, 0U);
}

TEST(Input, OptionsThatMakeNoSense) {
  const auto refuses = [](void (*spoil)(Options*), const char* word) {
    Options options;
    spoil(&options);
    ASSERT_NE(Check(options), nullptr) << word;
    EXPECT_THAT(Check(options), HasSubstr(word));
  };
  EXPECT_EQ(Check(Options()), nullptr);
  refuses([](Options* o) { o->max_split_size = 20 * kMiB; }, "max_split_size");
  refuses([](Options* o) { o->memory_fraction = 0; }, "memory_fraction");
  refuses([](Options* o) { o->memory_fraction = 1.01; }, "memory_fraction");
  refuses([](Options* o) { o->memory_fraction = std::numeric_limits<double>::quiet_NaN(); }, "memory_fraction");
  refuses([](Options* o) { o->garbage_collection_threshold = 1; }, "garbage_collection_threshold");
  refuses([](Options* o) { o->roundup_power2_divisions[3] = 3; }, "roundup_power2_divisions");
  refuses([](Options* o) { o->large_segment_size = 3 * kMiB; }, "large_segment_size");
  refuses([](Options* o) { o->max_non_split_rounding = 0; }, "max_non_split_rounding");
  refuses([](Options* o) { o->deterministic = true; }, "deterministic");
  refuses([](Options* o) { o->cross_stream = CrossStream::Wait; }, "cross_stream");
  refuses([](Options* o) { o->max_stamps_per_stream = 3; }, "max_stamps_per_stream");
  refuses([](Options* o) { o->capture_check_interval = 0; }, "capture_check_interval");
  refuses(
      [](Options* o) {
        o->completion = Completion::StreamWrites;
        o->reuse = Reuse::Wait;
      },
      "completion");
}

TEST(Input, CreateRefusesWhatItCannotServe) {
  sim::World* const world = sim::CreateWorld({.device_bytes = 64 * kMiB});
  const driver::DriverRef d = sim::Driver(world);
  std::unique_ptr<Allocator> allocator;
  const DeviceConfig twice[2] = {{0, nullptr}, {0, nullptr}};
  EXPECT_EQ(Allocator::Create(d, twice, 1, {}, &allocator), CUDA_ERROR_NOT_INITIALIZED);
  ASSERT_OK(d.Init(0));
  EXPECT_EQ(Allocator::Create({}, twice, 1, {}, &allocator), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Allocator::Create(d, nullptr, 1, {}, &allocator), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Allocator::Create(d, twice, 0, {}, &allocator), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Allocator::Create(d, twice, 2, {}, &allocator), CUDA_ERROR_INVALID_VALUE);
  const DeviceConfig missing{7, nullptr};
  EXPECT_EQ(Allocator::Create(d, &missing, 1, {}, &allocator), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(allocator, nullptr);
  EXPECT_EQ(sim::LiveCount(world, driver::Kind::PrimaryContext), 0U);
  sim::DestroyWorld(world);
}

TEST(Input, AfterClose) {
  Allocating a;
  CUstream s = a.Stream();
  const CUdeviceptr x = a.Get(4096, s);
  a.Drop(a.Get(4096, s));
  std::size_t live = 0;
  EXPECT_OK(a->Close(&live));
  EXPECT_EQ(live, 1U);
  CUdeviceptr out = 1;
  EXPECT_EQ(a->Allocate(0, 4096, s, &out), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(a->Free(x), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(a->EmptyCache(), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(a->RecordUse(x, s), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(a.Reserved(), 0);
  EXPECT_OK(a->Close());
}

TEST(Input, DefaultStreams) {
  Allocating a({}, {.devices = 2});
  const CUdeviceptr x = a.Get(4096, nullptr);
  const CUdeviceptr far = a.Get(4096, nullptr, 1);
  CUdeviceptr out = 0;
  EXPECT_EQ(a.Ref(nullptr).id(), a.Ref(CU_STREAM_LEGACY).id());
  EXPECT_NE(a.Ref(nullptr).id(), a.Ref(nullptr, 1).id());
  EXPECT_NE(a.Ref(nullptr).id(), a.Ref(CU_STREAM_PER_THREAD).id());
  EXPECT_OK(a->Allocate(0, 4096, CU_STREAM_PER_THREAD, &out));
  EXPECT_OK(a->RecordUse(x, CU_STREAM_PER_THREAD)) << a.LastText();
  EXPECT_OK(a->RecordUse(out, static_cast<CUstream>(nullptr))) << a.LastText();
  EXPECT_OK(a->RecordStream(out, static_cast<CUstream>(nullptr))) << a.LastText();
  EXPECT_OK(a->RecordStream(x, CU_STREAM_PER_THREAD)) << a.LastText();
  EXPECT_OK(a->RecordUse(far, CU_STREAM_LEGACY)) << a.LastText();
  EXPECT_EQ(a.Stats().uses_own_stream, 1U);
  for (const CUdeviceptr one : {x, far, out}) a.Drop(one);
  CUcontext current = nullptr;
  EXPECT_OK(a.d.CtxGetCurrent(&current));
  EXPECT_EQ(current, a.contexts[0]);
}

TEST(Input, AStreamInACaptureIsNotRetired) {
  Allocating a;
  CUstream s = a.Stream();
  EXPECT_OK(a.d.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(a->RetireStream(0, s), CUDA_ERROR_ILLEGAL_STATE);
  CUgraph graph = nullptr;
  EXPECT_OK(a.d.StreamEndCapture(s, &graph));
  EXPECT_OK(a.d.GraphDestroy(graph));
  a.Drop(a.Get(1000, s));
  EXPECT_OK(a->RetireStream(0, s));
}

}  // namespace
}  // namespace cuaudit::alloc::input_test
