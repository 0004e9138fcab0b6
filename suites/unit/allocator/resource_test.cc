// SPDX-License-Identifier: MIT
// A backend as CCCL's memory resource, and OwnedBlock.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cuda/version>
#include <vector>

#include "allocator/backends/driver_backend.h"
#include "allocator/owned_block.h"
#include "allocator/plugin/memory_resource.h"
#include "suites/support/sim_world.h"

namespace cuaudit::alloc::resource_test {
namespace {

#if CCCL_VERSION < 3001000
static_assert(::cuda::mr::resource<MemoryResource>);
static_assert(::cuda::mr::async_resource<MemoryResource>);
static_assert(::cuda::mr::resource_with<MemoryResource, ::cuda::mr::device_accessible>);
static_assert(::cuda::mr::async_resource_with<MemoryResource, ::cuda::mr::device_accessible>);
#else
static_assert(::cuda::mr::synchronous_resource<MemoryResource>);
static_assert(::cuda::mr::resource<MemoryResource>);
static_assert(::cuda::mr::resource_with<MemoryResource, ::cuda::mr::device_accessible>);
#endif

// The younger generation's demands in our own words, checked whatever the toolkit has.
template <class Resource>
concept Younger = std::equality_comparable<Resource> &&
    requires(Resource& resource, void* pointer, std::size_t size, ::cuda::stream_ref stream) {
  { resource.allocate_sync(size, size) } -> std::same_as<void*>;
  { resource.deallocate_sync(pointer, size, size) }
  noexcept->std::same_as<void>;
  { resource.allocate(stream, size, size) } -> std::same_as<void*>;
  { resource.deallocate(stream, pointer, size, size) }
  noexcept->std::same_as<void>;
};
static_assert(Younger<MemoryResource>);
static_assert(!Younger<std::vector<int>>);

// Passes on, refuses where told, and remembers what was said.
class Spy final : public Backend {
 public:
  explicit Spy(Backend* next) : next_(next) {}
  const char* Name() const noexcept override { return next_->Name(); }
  UsePrecision Precision() const noexcept override { return next_->Precision(); }
  CUresult Allocate(int device, std::size_t bytes, CUstream stream, CUdeviceptr* out) noexcept override {
    *out = 0;
    return refuse_allocate == CUDA_SUCCESS ? next_->Allocate(device, bytes, stream, out) : refuse_allocate;
  }
  CUresult Free(CUdeviceptr address) noexcept override {
    ++frees;
    return next_->Free(address);
  }
  CUresult RecordStream(CUdeviceptr address, CUstream stream) noexcept override { return next_->RecordStream(address, stream); }
  CUresult RecordUse(CUdeviceptr address, CUstream stream) noexcept override {
    uses.push_back(stream);
    return refuse_use == CUDA_SUCCESS ? next_->RecordUse(address, stream) : refuse_use;
  }
  CUresult KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept override { return next_->KeepAliveUntil(address, event); }
  bool FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept override {
    return next_->FindBlock(address, base, size);
  }
  CUresult EmptyCache() noexcept override { return next_->EmptyCache(); }
  CUresult Trim(int device, std::size_t bytes) noexcept override { return next_->Trim(device, bytes); }
  void GetStatistics(int device, Statistics* out) const noexcept override { next_->GetStatistics(device, out); }
  void ResetPeaks(int device) noexcept override { next_->ResetPeaks(device); }
  void ResetAccumulated(int device) noexcept override { next_->ResetAccumulated(device); }
  CUresult TakeSnapshot(Snapshot* out) const noexcept override { return next_->TakeSnapshot(out); }
  const char* LastErrorText() const noexcept override { return "told"; }

  CUresult refuse_allocate = CUDA_SUCCESS;
  CUresult refuse_use = CUDA_SUCCESS;
  std::vector<CUstream> uses;
  int frees = 0;

 private:
  Backend* next_;
};

class Resources : public testing::Test {
 protected:
  Resources() {
    const DeviceConfig device = {.device = 0};
    EXPECT_OK(DriverBackend::CreateStreamOrdered(sim_.d, &device, 1, {}, &backend_));
    EXPECT_OK(sim_.d.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim_.d.StreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    spy_ = std::make_unique<Spy>(backend_.get());
  }
  std::int64_t LiveBlocks() const {
    Statistics statistics;
    backend_->GetStatistics(0, &statistics);
    return statistics.allocation[0].current;
  }
  ::cuda::stream_ref Ref(CUstream stream) const { return ::cuda::stream_ref(reinterpret_cast<cudaStream_t>(stream)); }

  sim::Simulated sim_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Spy> spy_;
  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
};

TEST_F(Resources, BothGenerationsAllocateAndGiveBack) {
  MemoryResource resource(spy_.get(), sim_.d, 0);
  void* const blocks[] = {resource.allocate_async(100, 16, Ref(stream_)), resource.allocate_async(100, Ref(stream_)),
                          resource.allocate(Ref(stream_), 100, 256), resource.allocate(100, 8), resource.allocate_sync(100, 8)};
  for (void* const block : blocks) EXPECT_NE(block, nullptr);
  EXPECT_EQ(LiveBlocks(), 5);
  resource.deallocate_async(blocks[0], 100, 16, Ref(stream_));
  resource.deallocate_async(blocks[1], 100, Ref(other_));
  resource.deallocate(Ref(stream_), blocks[2], 100, 256);
  resource.deallocate(blocks[3], 100, 8);
  resource.deallocate_sync(blocks[4], 100, 8);
  EXPECT_EQ(LiveBlocks(), 0);
  EXPECT_THAT(spy_->uses, testing::ElementsAre(stream_, other_, stream_)) << "the forms without a stream leave nothing behind";
}

TEST_F(Resources, ThroughCcclsOwnReference) {
#if CCCL_VERSION < 3001000
  MemoryResource resource(spy_.get(), sim_.d, 0);
  ::cuda::mr::async_resource_ref<::cuda::mr::device_accessible> reference(resource);
  void* const block = reference.allocate_async(4096, 256, Ref(stream_));
  EXPECT_EQ(LiveBlocks(), 1);
  reference.deallocate_async(block, 4096, 256, Ref(stream_));
  EXPECT_EQ(LiveBlocks(), 0);
  MemoryResource same = resource;
  EXPECT_TRUE(reference == ::cuda::mr::async_resource_ref<::cuda::mr::device_accessible>(same));
#else
  GTEST_SKIP() << "CCCL " << CCCL_VERSION << " has another reference type";
#endif
}

TEST_F(Resources, ErrorsAreCcclsExceptions) {
  MemoryResource resource(spy_.get(), sim_.d, 0);
  EXPECT_THROW((void)resource.allocate_async(std::size_t{1} << 45, 256, Ref(stream_)), std::bad_alloc);
  EXPECT_THROW((void)resource.allocate_async(SIZE_MAX, 256, Ref(stream_)), std::runtime_error);
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{512}}) {
    EXPECT_THROW((void)resource.allocate_sync(8, alignment), std::invalid_argument) << alignment;
  }
  spy_->refuse_allocate = CUDA_ERROR_ILLEGAL_ADDRESS;
  try {
    (void)resource.allocate(Ref(stream_), 8);
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "told");
  }
  EXPECT_EQ(LiveBlocks(), 0);
  EXPECT_FALSE(resource == MemoryResource(backend_.get(), sim_.d, 0));
}

TEST_F(Resources, AUseThatCannotBeRecordedIsWaitedForOrTheBlockIsKept) {
  MemoryResource resource(spy_.get(), sim_.d, 0);
  void* const block = resource.allocate_async(4096, Ref(stream_));
  void* const lost = resource.allocate_async(4096, Ref(stream_));
  EXPECT_OK(sim_.d.MemsetD8Async(reinterpret_cast<CUdeviceptr>(block), 1, 4096, other_));
  spy_->refuse_use = CUDA_ERROR_OUT_OF_MEMORY;
  resource.deallocate_async(block, 4096, Ref(other_));
  EXPECT_EQ(sim_.d.StreamQuery(other_), CUDA_SUCCESS) << "it was waited for";
  EXPECT_EQ(spy_->frees, 1);
  CUstream gone = nullptr;
  EXPECT_OK(sim_.d.StreamCreate(&gone, 0));
  EXPECT_OK(sim_.d.StreamDestroy(gone));
  resource.deallocate_async(lost, 4096, Ref(gone));
  EXPECT_EQ(spy_->frees, 1) << "given to nobody";
  EXPECT_EQ(LiveBlocks(), 1);
}

TEST_F(Resources, OwnedBlockGivesBackOnceAndMoves) {
  OwnedBlock block;
  EXPECT_FALSE(block);
  EXPECT_OK(block.Reset());
  EXPECT_OK(block.RecordUse(other_));
  ASSERT_EQ(OwnedBlock::Allocate(spy_.get(), 0, 100, stream_, &block), CUDA_SUCCESS);
  EXPECT_EQ(block.stream(), stream_);
  EXPECT_EQ(block.bytes(), 100U);
  const CUdeviceptr address = block.address();
  OwnedBlock moved(std::move(block));
  EXPECT_FALSE(block);  // NOLINT(bugprone-use-after-move): that it is empty is the point
  EXPECT_EQ(moved.address(), address);
  EXPECT_OK(moved.RecordUse(other_));
  EXPECT_OK(moved.RecordStream(other_));
  ASSERT_EQ(OwnedBlock::Allocate(spy_.get(), 0, 200, stream_, &moved), CUDA_SUCCESS);
  EXPECT_EQ(spy_->frees, 1) << "what it held before";
  spy_->refuse_allocate = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(OwnedBlock::Allocate(spy_.get(), 0, 300, stream_, &moved), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(moved.bytes(), 200U) << "untouched by a failure";
  OwnedBlock& itself = moved;
  moved = std::move(itself);
  EXPECT_EQ(moved.bytes(), 200U);
  const CUdeviceptr kept = moved.Release();
  EXPECT_FALSE(moved);
  EXPECT_EQ(LiveBlocks(), 1);
  EXPECT_OK(backend_->Free(kept));
  {
    spy_->refuse_allocate = CUDA_SUCCESS;
    OwnedBlock inner;
    ASSERT_EQ(OwnedBlock::Allocate(spy_.get(), 0, 100, stream_, &inner), CUDA_SUCCESS);
  }
  EXPECT_EQ(spy_->frees, 2);
  EXPECT_EQ(LiveBlocks(), 0);
}

}  // namespace
}  // namespace cuaudit::alloc::resource_test
