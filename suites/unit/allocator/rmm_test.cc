// SPDX-License-Identifier: MIT
// The allocator as RMM's memory resource, against the few declarations of RMM that it uses (rmm_names.hpp).
#define __CUDA_API_VERSION_INTERNAL
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <rmm/mr/device/device_memory_resource.hpp>
#include <stdexcept>
#include <string>

#include "allocator/plugin/rmm_resource.h"
#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc::rmm_resource_test {
namespace {

using driver::CallId;
using rmm::mr::device_memory_resource;

class RmmResources : public Releases {
 protected:
  RmmResources() {
    Make({});
    resource = std::make_unique<RmmResource>(allocator.get(), failing.ref(), 0);
  }
  ~RmmResources() override { EXPECT_OK(allocator->Close()); }
  static CUdeviceptr AddressOf(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
  void* Allocate(std::size_t bytes, CUstream stream) { return Base().allocate(bytes, stream); }
  void Deallocate(void* pointer, std::size_t bytes, CUstream stream) { Base().deallocate(pointer, bytes, stream); }
  std::unique_ptr<RmmResource> resource;

 private:
  device_memory_resource& Base() { return *resource; }
};

TEST_F(RmmResources, GiveOutMemoryOfTheStream) {
  void* const x = Allocate(3 * kMiB, s);
  EXPECT_EQ(AddressOf(x) % 256, 0U);
  a.Write(AddressOf(x), 3 * kMiB, s);
  Deallocate(x, 3 * kMiB, s);
  EXPECT_EQ(Stats().allocated_bytes[0].current, 0);
  EXPECT_EQ(Stats().uses_recorded, 0U) << "the stream is the block's own";
  EXPECT_EQ(Allocate(3 * kMiB, s), x);
  Deallocate(x, 3 * kMiB, s);
}

TEST_F(RmmResources, TakeMemoryBackInTheOrderOfAnotherStream) {
  void* const x = Allocate(3 * kMiB, s);
  a.Order(s, t);
  a.Write(AddressOf(x), 3 * kMiB, t);
  Deallocate(x, 3 * kMiB, t);
  EXPECT_EQ(Stats().uses_recorded, 1U);
  void* const y = Allocate(3 * kMiB, s);
  EXPECT_NE(x, y) << "t is still at work on x";
  a.Write(AddressOf(y), 3 * kMiB, s);
  Deallocate(y, 3 * kMiB, s);
}

TEST_F(RmmResources, AnswerNullForNothingAndTakeItBack) {
  EXPECT_EQ(Allocate(0, s), nullptr);
  Deallocate(nullptr, 0, s);
  EXPECT_EQ(Stats().foreign_pointers, 0U);
}

TEST_F(RmmResources, ThrowWhatRmmExpects) {
  EXPECT_THROW((void)Allocate(std::size_t{1} << 40, s), std::bad_alloc);
  failing.code = CUDA_ERROR_INVALID_CONTEXT;
  failing.Fail(CallId::MemAlloc_v2, Failing::Refused);
  try {
    (void)Allocate(kMiB, s);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), allocator->LastErrorText());
  }
  Deallocate(Allocate(kMiB, s), kMiB, s);
}

TEST_F(RmmResources, WaitForAUseThatCannotBeRecorded) {
  void* const x = Allocate(3 * kMiB, s);
  a.Order(s, t);
  a.Write(AddressOf(x), 3 * kMiB, t);
  failing.Fail(CallId::EventRecord, Failing::Refused);
  Deallocate(x, 3 * kMiB, t);
  EXPECT_EQ(Stats().allocated_bytes[0].current, 0);
  void* const y = Allocate(3 * kMiB, s);
  a.Write(AddressOf(y), 3 * kMiB, s);
  EXPECT_EQ(x, y) << "all work on it is over";
  Deallocate(y, 3 * kMiB, s);
}

TEST_F(RmmResources, KeepABlockWhoseUseCanNeitherBeRecordedNorWaitedFor) {
  void* const x = Allocate(3 * kMiB, s);
  failing.Fail(CallId::EventRecord, Failing::Refused);
  failing.Fail(CallId::StreamSynchronize, Failing::Refused);
  Deallocate(x, 3 * kMiB, t);
  EXPECT_EQ(Stats().allocated_bytes[0].current, static_cast<std::int64_t>(3 * kMiB));
  EXPECT_OK(allocator->Free(AddressOf(x)));
}

TEST_F(RmmResources, AreEqualWithTheSameBackendAndDevice) {
  const RmmResource same(allocator.get(), failing.ref(), 0);
  const RmmResource elsewhere(allocator.get(), failing.ref(), 1);
  const RmmResource other(a.allocator.get(), a.d, 0);
  EXPECT_TRUE(resource->is_equal(same));
  EXPECT_FALSE(resource->is_equal(elsewhere));
  EXPECT_FALSE(resource->is_equal(other));
  struct Foreign final : device_memory_resource {
    void* do_allocate(std::size_t, rmm::cuda_stream_view) override { return nullptr; }
    void do_deallocate(void*, std::size_t, rmm::cuda_stream_view) noexcept override {}
  } foreign;
  EXPECT_FALSE(resource->is_equal(foreign));
}

}  // namespace
}  // namespace cuaudit::alloc::rmm_resource_test
