// SPDX-License-Identifier: MIT
// What pytorch issue 181191 asks of record_use and plans to test, where the other files of this folder do not say it already:
//
//   basic wait, own stream, several events, both kinds on one block, split, merge, cross-device,
//   OOM, many events, immediate reuse and its snapshot                 uses_test.cc
//   third stream                                                       reuse_test.cc, and here from a stream that is gone
//   capture                                                            pools_test.cc
//   threads                                                            threads_test.cc, and here: dropped by a thread that knows no stream
//   timing independence, unmap, a pool's own release, null, the recipe that the proposal replaces      here
#include <thread>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::rfc_test {
namespace {

constexpr std::size_t kShard = 4 * kMiB;

// FSDP2's all-gather: the buffer belongs to the communication stream and is read on the compute stream; it is dropped as soon as the reader
// was enqueued. `queries` tells how often the device is asked for its progress meanwhile.
std::int64_t PeakOfTraining(const Options& options, sim::Schedule schedule, int queries) {
  Allocating a(options, {.schedule = schedule});
  CUstream communication = a.Stream();
  CUstream compute = a.Stream();
  for (int layer = 0; layer < 24; ++layer) {
    const std::size_t bytes = kShard + static_cast<std::size_t>(layer % 3) * kMiB;
    const CUdeviceptr gathered = a.Get(bytes, communication);
    a.Write(gathered, bytes, communication);
    a.Use(gathered, bytes, communication, compute);
    a.Drop(gathered);
    for (int i = 0; i < queries; ++i) (void)a.d.StreamQuery(compute);
  }
  EXPECT_EQ(a.Stats().uses_recorded, 24U);
  return a.Stats().reserved_bytes[0].peak;
}

TEST(Rfc, PeakMemoryDoesNotDependOnTheDeviceOrOnHowOftenItIsAsked) {
  Options options;
  options.reuse = Reuse::Wait;
  options.deterministic = true;
  const std::int64_t expected = PeakOfTraining(options, sim::Schedule::Lazy, 0);
  for (const sim::Schedule schedule : kSchedules) {
    for (const int queries : {0, 1, 50}) EXPECT_EQ(PeakOfTraining(options, schedule, queries), expected);
  }
  EXPECT_EQ(expected, static_cast<std::int64_t>(20 * kMiB));  // one segment: each buffer lies where the last one lay
}

// The problem that the proposal names: with polling the same program's peak follows the device.
TEST(Rfc, WithPollingItDoes) {
  const Options options;
  EXPECT_GT(PeakOfTraining(options, sim::Schedule::Lazy, 0), PeakOfTraining(options, sim::Schedule::Fifo, 0));
  EXPECT_GT(PeakOfTraining(options, sim::Schedule::Lazy, 0), PeakOfTraining(options, sim::Schedule::Lazy, 50));
}

using Case = std::tuple<Reuse, sim::Schedule>;
class RfcUses : public testing::TestWithParam<Case> {
 protected:
  Options Chosen() const { return {.reuse = std::get<0>(GetParam())}; }
  Setting On() const { return {.schedule = std::get<1>(GetParam())}; }
};

// Expandable segments unmap without the synchronisation that cuMemFree has.
TEST_P(RfcUses, UnmappingWaitsForReadersOnOtherStreams) {
  Options options = Chosen();
  options.expandable_segments = true;
  Allocating a(options, On());
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  for (int round = 0; round < 5; ++round) {
    const CUdeviceptr x = a.Get(40 * kMiB, s);
    a.Write(x, 40 * kMiB, s);
    a.Use(x, 40 * kMiB, s, t);
    a.Drop(x);
    EXPECT_OK(a->EmptyCache());
    EXPECT_EQ(a.Live(driver::Kind::Mapping), 0U);
    const CUdeviceptr y = a.Get(20 * kMiB, s);  // the same addresses, mapped anew
    a.Write(y, 20 * kMiB, s);
    a.Drop(y);
  }
}

// Memory that a user lends is given back only when nobody reads it any more.
struct Lender {
  driver::DriverRef d;
  int released = 0;
  static CUresult Acquire(void* self, int, std::size_t bytes, CUstream, CUdeviceptr* out) noexcept {
    return static_cast<Lender*>(self)->d.MemAlloc(out, bytes);
  }
  static CUresult Release(void* self, int, CUdeviceptr address, std::size_t) noexcept {
    auto* const lender = static_cast<Lender*>(self);
    ++lender->released;
    for (const CUevent reader : lender->readers) EXPECT_EQ(lender->d.EventQuery(reader), CUDA_SUCCESS);
    return lender->d.MemFree(address);
  }
  std::vector<CUevent> readers;
};

TEST_P(RfcUses, APoolsOwnReleaseComesAfterTheReaders) {
  Allocating a(Chosen(), On());
  CUstream s = a.Stream();
  CUstream t = a.Stream();
  Lender lender;
  lender.d = a.d;
  PoolOptions pool_options;
  pool_options.acquire = Lender::Acquire;
  pool_options.release = Lender::Release;
  pool_options.user = &lender;
  PoolId pool;
  EXPECT_OK(a->CreatePool(pool_options, &pool));
  EXPECT_OK(a->BeginAllocateToPool(0, pool, {}));
  const CUdeviceptr x = a.Get(12 * kMiB, s);
  a.Write(x, 12 * kMiB, s);
  a.Use(x, 12 * kMiB, s, t);
  CUevent read = nullptr;
  EXPECT_OK(a.d.EventCreate(&read, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(a.d.EventRecord(read, t));
  // The program's own mark comes before the allocator's: what is behind that is behind this.
  EXPECT_OK(a->RecordUse(x, t));
  lender.readers.push_back(read);
  EXPECT_OK(a->EndAllocateToPool(0, pool));
  a.Drop(x);
  EXPECT_EQ(lender.released, 0);
  EXPECT_OK(a->EmptyCache(pool));
  EXPECT_EQ(lender.released, 1);
  EXPECT_OK(a->ReleasePool(pool));
  EXPECT_OK(a.d.EventDestroy(read));
}

// After RecordUse the block may be dropped by anybody: here by a thread without a context, the reader's stream gone.
TEST_P(RfcUses, DroppedOnAThreadThatKnowsNoStream) {
  Allocating a(Chosen(), On());
  CUstream s = a.Stream();
  for (int round = 0; round < 5; ++round) {
    CUstream reader = a.Stream();
    const CUdeviceptr x = a.Get(3 * kMiB, s);
    a.Write(x, 3 * kMiB, s);
    a.Use(x, 3 * kMiB, s, reader);
    a.Destroy(reader);
    std::thread([&] { a.Drop(x); }).join();
    const CUdeviceptr y = a.Get(3 * kMiB, s);
    a.Write(y, 3 * kMiB, s);
    a.Drop(y);
  }
}

// A third stream gets what a stream that is gone left, whose reader may still be at it.
TEST_P(RfcUses, AThirdStreamTakesWhatARetiredOneLeft) {
  Allocating a(Chosen(), On());
  CUstream reader = a.Stream();
  CUstream third = a.Stream();
  for (int round = 0; round < 5; ++round) {
    CUstream brief = a.Stream();
    const CUdeviceptr x = a.Get(6 * kMiB, brief);
    a.Write(x, 6 * kMiB, brief);
    a.Use(x, 6 * kMiB, brief, reader);
    a.Drop(x);
    EXPECT_OK(a->RetireStream(0, brief));
    a.Destroy(brief);
    const CUdeviceptr y = a.Get(6 * kMiB, third);
    a.Write(y, 6 * kMiB, third);
    a.Drop(y);
  }
}

// Streams are told apart by identity: a new stream with an old one's handle is not the allocation's own.
TEST_P(RfcUses, ANewStreamWithAnOldHandleIsAnotherStream) {
  Allocating a(Chosen(), On());
  CUstream first = a.Stream();
  const StreamRef was = a.Ref(first);
  const CUdeviceptr x = a.Get(3 * kMiB, first);
  a.Write(x, 3 * kMiB, first);
  EXPECT_OK(a.d.StreamSynchronize(first));
  a.Destroy(first);
  std::vector<CUstream> more;
  more.reserve(8);
  for (int i = 0; i < 8; ++i) more.push_back(a.Stream());
  for (CUstream stream : more) {
    EXPECT_NE(a.Ref(stream).id(), was.id());
    a.Write(x, 3 * kMiB, stream);
    EXPECT_OK(a->RecordUse(x, stream));
    EXPECT_OK(a.d.StreamSynchronize(stream));
  }
  EXPECT_EQ(a.Stats().uses_own_stream, 0U);
  EXPECT_EQ(a.Stats().uses_recorded, 8U);
  a.Drop(x);
}

TEST_P(RfcUses, NothingIsUsedByNobody) {
  Allocating a(Chosen(), On());
  CUstream s = a.Stream();
  EXPECT_OK(a->RecordUse(0, s));
  EXPECT_OK(a->RecordStream(0, s));
  EXPECT_OK(a->KeepAliveUntil(0, nullptr));
  EXPECT_EQ(a.Stats().uses_recorded, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, RfcUses, testing::Combine(testing::Values(Reuse::Poll, Reuse::Wait), testing::ValuesIn(kSchedules)),
                         [](const testing::TestParamInfo<Case>& chosen) {
                           return std::string(std::get<0>(chosen.param) == Reuse::Poll ? "Poll" : "Wait") +
                                  NameOf(testing::TestParamInfo<sim::Schedule>(std::get<1>(chosen.param), 0));
                         });

}  // namespace
}  // namespace cuaudit::alloc::rfc_test
