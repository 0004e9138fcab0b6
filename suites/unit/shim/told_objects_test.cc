// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/told_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "faults/shim/texture_memory.h"
#include "suites/support/gated_world.h"

namespace cuaudit::faults::told_objects_test {
namespace {

using driver::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = std::size_t{2} << 20;
constexpr CUmemAllocationHandleType kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

struct Told : ::testing::Test {
  Told() { gated.Start(); }
  // The words of all Argument records with this flag.
  std::vector<std::uint64_t> Words(std::uint16_t flag, std::size_t count) const {
    std::vector<std::uint64_t> words;
    for (const Record& record : gated.Records()) {
      if (record.kind == RecordKind::Argument && record.flags == flag) words.insert(words.end(), record.argument, record.argument + count);
    }
    return words;
  }
  int Export(CUmemGenericAllocationHandle* physical) {
    CUmemAllocationProp wanted = {};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.requestedHandleTypes = kFd;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    int descriptor = -1;
    EXPECT_EQ(d.MemCreate(physical, kBytes, &wanted, 0), CUDA_SUCCESS);
    EXPECT_EQ(d.MemExportToShareableHandle(&descriptor, *physical, kFd, 0), CUDA_SUCCESS);
    return descriptor;
  }
  GatedWorld gated;
  driver::DriverRef d = gated.driver();
};

std::vector<std::pair<int, bool>>& Watched() {
  static std::vector<std::pair<int, bool>> watched;
  return watched;
}

TEST_F(Told, ADescriptorThatTheDriverMakesAndOneThatItTakesOver) {
  Watched().clear();
  gated.gate().WatchDescriptors([](int descriptor, bool taken) noexcept { Watched().emplace_back(descriptor, taken); });
  CUmemGenericAllocationHandle physical = 0;
  const int descriptor = Export(&physical);
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from = {};
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.size = kBytes;
  from.handle.fd = descriptor;
  CUexternalMemory memory = nullptr;
  ASSERT_EQ(d.ImportExternalMemory(&memory, &from), CUDA_SUCCESS);
  const auto name = static_cast<std::uint64_t>(descriptor) + 1;
  EXPECT_THAT(Words(kDescriptor, 2), ElementsAre(name, 0U, 0U, name));
  EXPECT_THAT(Watched(), ElementsAre(std::pair(descriptor, false), std::pair(descriptor, true)));
}

TEST_F(Told, NoDescriptorOfACallThatFailedOrIsRefused) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from = {};
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.size = kBytes;
  from.handle.fd = -1;
  CUexternalMemory memory = nullptr;
  int descriptor = -1;
  EXPECT_NE(d.ImportExternalMemory(&memory, &from), CUDA_SUCCESS);
  EXPECT_NE(d.ImportExternalMemory(&memory, nullptr), CUDA_SUCCESS);
  EXPECT_NE(d.MemExportToShareableHandle(&descriptor, 0, kFd, 0), CUDA_SUCCESS);
  EXPECT_THAT(Words(kDescriptor, 2), IsEmpty());
}

TEST_F(Told, TheMemoryUnderATextureAndTheWordsOfALaunchOnlyWhileItIsGone) {
  constexpr char kModule[] =
      ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry two(.param .u64 a, .param .u32 b)\n{\n  ret;\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUarray array = nullptr;
  CUtexObject texture = 0;
  ASSERT_EQ(d.ModuleLoadData(&module, kModule), CUDA_SUCCESS);
  ASSERT_EQ(d.ModuleGetFunction(&function, module, "two"), CUDA_SUCCESS);
  const CUDA_ARRAY_DESCRIPTOR shape = {16, 4, CU_AD_FORMAT_FLOAT, 1};
  ASSERT_EQ(d.ArrayCreate(&array, &shape), CUDA_SUCCESS);
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  const CUDA_TEXTURE_DESC how = {};
  ASSERT_EQ(d.TexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(Words(kStandsOn, 2), ElementsAre(static_cast<std::uint64_t>(Kind::Array), reinterpret_cast<std::uintptr_t>(array)));
  unsigned small = 7;
  void* arguments[] = {&texture, &small};
  const auto launch = [&] { EXPECT_EQ(d.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), CUDA_SUCCESS); };
  launch();
  EXPECT_THAT(Words(kLaunchWords, 1), IsEmpty()) << "its array is there";
  ASSERT_EQ(d.ArrayDestroy(array), CUDA_SUCCESS);
  launch();
  EXPECT_THAT(Words(kLaunchWords, 2), ElementsAre(texture, 0U)) << "only words of eight bytes";
  ASSERT_EQ(d.TexObjectDestroy(texture), CUDA_SUCCESS);
  launch();
  EXPECT_THAT(Words(kLaunchWords, 1), ElementsAre(texture)) << "the texture is gone, too";
}

// Launches a kernel with textures and counts the launches whose words the gate recorded.
struct Textured : Told {
  Textured() { Load(); }
  void Load() {
    constexpr char kModule[] = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry one(.param .u64 a)\n{\n  ret;\n}\n";
    CUmodule module = nullptr;
    EXPECT_EQ(d.ModuleLoadData(&module, kModule), CUDA_SUCCESS);
    EXPECT_EQ(d.ModuleGetFunction(&function, module, "one"), CUDA_SUCCESS);
  }
  CUtexObject NewTexture(const CUDA_RESOURCE_DESC& resource) const {
    CUtexObject texture = 0;
    const CUDA_TEXTURE_DESC how = {};
    EXPECT_EQ(d.TexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
    return texture;
  }
  CUtexObject NewTexture(CUarray* array) const {
    const CUDA_ARRAY_DESCRIPTOR shape = {16, 4, CU_AD_FORMAT_FLOAT, 1};
    EXPECT_EQ(d.ArrayCreate(array, &shape), CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = *array;
    return NewTexture(resource);
  }
  std::size_t Recorded(std::uint64_t word) const {
    void* arguments[] = {&word};
    EXPECT_EQ(d.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), CUDA_SUCCESS);
    return Words(kLaunchWords, 1).size();
  }
  CUfunction function = nullptr;
};

TEST_F(Textured, ObjectsThatEndWithTheirContextAreFollowedNoLonger) {
  CUcontext own = nullptr;
  CUarray array = nullptr;
  for (std::size_t i = 0; i < 2 * TextureMemory::kMost; ++i) {
    ASSERT_EQ(d.CtxCreate(&own, nullptr, 0, 0), CUDA_SUCCESS);
    NewTexture(&array);
    ASSERT_EQ(d.ArrayDestroy(array), CUDA_SUCCESS);
    ASSERT_EQ(d.CtxDestroy(own), CUDA_SUCCESS);
  }
  EXPECT_EQ(gated.gate().textures_beyond(), 0U);
  const CUtexObject texture = NewTexture(&array);
  EXPECT_EQ(Recorded(texture), 0U) << "the objects whose arrays are gone went with their contexts";
  ASSERT_EQ(d.ArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(Recorded(texture), 1U);
}

TEST_F(Textured, ObjectsOfAPrimaryContextEndWithTheProgramsLastReference) {
  CUarray array = nullptr;
  const CUtexObject texture = NewTexture(&array);
  ASSERT_EQ(d.ArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(Recorded(texture), 1U);
  ASSERT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  CUcontext own = nullptr;
  ASSERT_EQ(d.CtxCreate(&own, nullptr, 0, 0), CUDA_SUCCESS);
  Load();
  EXPECT_EQ(Recorded(texture), 1U) << "not recorded again";
}

TEST_F(Textured, ObjectsOfAnotherContextAreFollowedOn) {
  CUarray array = nullptr;
  CUcontext own = nullptr;
  const CUtexObject texture = NewTexture(&array);
  ASSERT_EQ(d.CtxCreate(&own, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.CtxDestroy(own), CUDA_SUCCESS);
  ASSERT_EQ(d.ArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(Recorded(texture), 1U);
}

TEST_F(Textured, ObjectsBeyondTheTableAreCounted) {
  CUarray array = nullptr;
  for (std::size_t i = 0; i < TextureMemory::kMost + 3; ++i) NewTexture(&array);
  EXPECT_EQ(gated.gate().textures_beyond(), 3U);
}

TEST_F(Textured, MemoryThatIsNoLongerMappedIsGone) {
  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle physical = 0;
  CUdeviceptr range = 0;
  CUDA_RESOURCE_DESC resource = {};
  CUmemAccessDesc access = {};
  access.location = wanted.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  ASSERT_EQ(d.MemCreate(&physical, kBytes, &wanted, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.MemAddressReserve(&range, kBytes, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.MemMap(range, kBytes, 0, physical, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.MemSetAccess(range, kBytes, &access, 1), CUDA_SUCCESS);
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = range + 512;
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = 4096;
  const CUtexObject texture = NewTexture(resource);
  EXPECT_EQ(Recorded(texture), 0U);
  ASSERT_EQ(d.MemUnmap(range, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(Recorded(texture), 1U);
}

TEST_F(Told, TheFunctionInAKernelNode) {
  constexpr char kModule[] = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry none()\n{\n  ret;\n}\n";
  CUmodule module = nullptr;
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_EQ(d.ModuleLoadData(&module, kModule), CUDA_SUCCESS);
  ASSERT_EQ(d.ModuleGetFunction(&kernel.func, module, "none"), CUDA_SUCCESS);
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  ASSERT_EQ(d.GraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.GraphAddKernelNode(&node, graph, nullptr, 0, &kernel), CUDA_SUCCESS);
  ASSERT_EQ(d.GraphKernelNodeSetParams(node, &kernel), CUDA_SUCCESS);
  const auto module_kind = static_cast<std::uint64_t>(Kind::Module);
  const auto function = reinterpret_cast<std::uintptr_t>(kernel.func);
  EXPECT_THAT(Words(kStandsOn, 2), ElementsAre(module_kind, function, module_kind, function));
}

// A call as the gate sees it.
struct Made : Passage {
  explicit Made(driver::CallId call) : Passage{} { id = call; }
  template <typename T>
  Made& At(std::size_t place, const T* pointer) {
    value[place] = reinterpret_cast<std::uintptr_t>(pointer);
    return *this;
  }
  Made& Is(std::size_t place, std::uint64_t word) {
    value[place] = word;
    return *this;
  }
};

TEST(ToldObjects, AHandleOfAnotherTypeIsNoDescriptor) {
  const int descriptor = 7;
  for (const driver::CallId call : {driver::CallId::MemExportToShareableHandle, driver::CallId::MemPoolExportToShareableHandle}) {
    EXPECT_EQ(DescriptorsOf(Made(call).At(0, &descriptor).Is(2, kFd)).made, 7);
    EXPECT_EQ(DescriptorsOf(Made(call).At(0, &descriptor).Is(2, CU_MEM_HANDLE_TYPE_WIN32)).made, -1);
  }
  const auto range = driver::CallId::MemGetHandleForAddressRange;
  EXPECT_EQ(DescriptorsOf(Made(range).At(0, &descriptor).Is(3, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)).made, 7);
  EXPECT_EQ(DescriptorsOf(Made(range).At(0, &descriptor).Is(3, CU_MEM_RANGE_HANDLE_TYPE_MAX)).made, -1);
}

TEST(ToldObjects, WhichImportsTakeTheDescriptor) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory = {};
  memory.handle.fd = 7;
  const auto taken = [](driver::CallId call, const auto* from) { return DescriptorsOf(Made(call).At(1, from)).taken; };
  memory.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  EXPECT_EQ(taken(driver::CallId::ImportExternalMemory, &memory), 7);
  memory.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF;
  EXPECT_EQ(taken(driver::CallId::ImportExternalMemory, &memory), -1);
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC semaphore = {};
  semaphore.handle.fd = 8;
  for (const auto type : {CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD}) {
    semaphore.type = type;
    EXPECT_EQ(taken(driver::CallId::ImportExternalSemaphore, &semaphore), 8);
  }
  semaphore.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC;
  EXPECT_EQ(taken(driver::CallId::ImportExternalSemaphore, &semaphore), -1);
}

void ExpectFooting(const Passage& passage, Kind kind, std::uint64_t handle) {
  const Footing footing = FootingOf(passage);
  EXPECT_EQ(driver::Name(footing.kind), driver::Name(kind));
  EXPECT_EQ(footing.handle, handle);
}

TEST(ToldObjects, TheMemoryOfEachResource) {
  constexpr std::uint64_t kMemory = 0x7000;
  CUDA_RESOURCE_DESC resource = {};
  resource.res.linear.devPtr = kMemory;  // the first member of each
  const std::pair<CUresourcetype, Kind> grounds[] = {{CU_RESOURCE_TYPE_ARRAY, Kind::Array},
                                                     {CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, Kind::MipmappedArray},
                                                     {CU_RESOURCE_TYPE_LINEAR, Kind::DeviceMemory},
                                                     {CU_RESOURCE_TYPE_PITCH2D, Kind::DeviceMemory}};
  for (const auto& [type, kind] : grounds) {
    resource.resType = type;
    for (const driver::CallId call : {driver::CallId::TexObjectCreate, driver::CallId::SurfObjectCreate})
      ExpectFooting(Made(call).At(1, &resource), kind, kMemory);
  }
}

TEST(ToldObjects, TheFunctionOrTheKernelOfANode) {
  constexpr std::uint64_t kCode = 0x500;
  CUDA_KERNEL_NODE_PARAMS_v2 kernel = {};
  const auto add = Made(driver::CallId::GraphAddKernelNode_v2).At(4, &kernel);
  kernel.func = reinterpret_cast<CUfunction>(kCode);
  ExpectFooting(add, Kind::Module, kCode);
  kernel.func = nullptr;
  kernel.kern = reinterpret_cast<CUkernel>(kCode);
  ExpectFooting(add, Kind::Module, kCode);
#if CUDA_VERSION >= 12020
  CUgraphNodeParams node = {};
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.kernel.func = reinterpret_cast<CUfunction>(kCode);
  const auto typed = Made(driver::CallId::GraphAddNode).At(4, &node);
  ExpectFooting(typed, Kind::Module, kCode);
  ExpectFooting(Made(driver::CallId::GraphExecNodeSetParams).At(2, &node), Kind::Module, kCode);
  node.type = CU_GRAPH_NODE_TYPE_MEMSET;
  ExpectFooting(typed, Kind::None, 0);
#endif
}

// Tells `memory` that a texture was made of an array, and then that the array is gone.
void MakeAndEnd(TextureMemory* memory, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& textures, std::uint64_t ended) {
  Record record = {};
  for (const auto& [texture, array] : textures) {
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = reinterpret_cast<CUarray>(array);
    Made made = Made(driver::CallId::TexObjectCreate).At(0, &texture).At(1, &resource);
    made.record = &record;
    memory->After(made);
  }
  memory->After(Made(driver::CallId::ArrayDestroy).Is(0, ended));
}

constexpr std::uint64_t kTexture = 0x7f0000000001;

// A driver that counts its textures from 1: no word of a launch can be told from a length.
TEST(TextureMemory, ATextureWithASmallNumberIsNotFollowed) {
  TextureMemory small;
  MakeAndEnd(&small, {{1, 0xa0}}, 0xa0);
  EXPECT_FALSE(small.any_gone());
  TextureMemory large;
  MakeAndEnd(&large, {{kTexture, 0xa0}}, 0xa0);
  EXPECT_TRUE(large.any_gone());
}

// Nobody saw the first texture end, and the driver gives its handle to the next.
TEST(TextureMemory, AHandleThatIsGivenAnewHasOneMemory) {
  TextureMemory memory;
  MakeAndEnd(&memory, {{kTexture, 0xa0}, {kTexture, 0xa1}}, 0xa0);
  EXPECT_FALSE(memory.any_gone());
  memory.After(Made(driver::CallId::ArrayDestroy).Is(0, 0xa1));
  EXPECT_TRUE(memory.any_gone());
}

// What no type tells is in the record behind the last parameter.
TEST_F(Told, TheValueOfASettingBehindAPointer) {
  const auto behind = [this](driver::BaseId base, std::size_t at) { return gated.Last(base).argument[at]; };
  using driver::BaseId;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(d.DeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  cuuint64_t threshold = cuuint64_t{1} << 33U;
  ASSERT_EQ(d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
  EXPECT_EQ(behind(BaseId::MemPoolSetAttribute, 3), cuuint64_t{1} << 33U);
  int flags[2] = {0, -1};
  ASSERT_EQ(d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, flags), CUDA_SUCCESS);
  EXPECT_EQ(behind(BaseId::MemPoolSetAttribute, 3), 0U);
  threshold = 1;
  ASSERT_EQ(d.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
  EXPECT_EQ(behind(BaseId::MemPoolGetAttribute, 3), cuuint64_t{1} << 33U);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_EQ(d.ThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(behind(BaseId::ThreadExchangeStreamCaptureMode, 0), static_cast<std::uint64_t>(CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(behind(BaseId::ThreadExchangeStreamCaptureMode, 1), static_cast<std::uint64_t>(CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_NE(d.ThreadExchangeStreamCaptureMode(nullptr), CUDA_SUCCESS);
  EXPECT_NE(d.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(behind(BaseId::MemPoolSetAttribute, 3), 0U) << "nothing was read";
}

TEST_F(Told, TheValueOfAStreamAttribute) {
  CUstream stream = nullptr;
  ASSERT_EQ(d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const auto told = [&](CUstreamAttrID attribute, CUstreamAttrValue value) {
    EXPECT_EQ(d.StreamSetAttribute(stream, attribute, &value), CUDA_SUCCESS);
    EXPECT_EQ(d.StreamGetAttribute(stream, attribute, &value), CUDA_SUCCESS);
    const std::uint64_t given = gated.Last(driver::BaseId::StreamSetAttribute).argument[3];
    EXPECT_EQ(gated.Last(driver::BaseId::StreamGetAttribute).argument[3], given);
    return given;
  };
  CUstreamAttrValue window = {}, priority = {}, domains = {};
  window.accessPolicyWindow.base_ptr = &window;
  window.accessPolicyWindow.num_bytes = 4096;
  EXPECT_EQ(told(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, window), 4096U);
  priority.priority = -1;
  EXPECT_EQ(told(CU_LAUNCH_ATTRIBUTE_PRIORITY, priority), 0xffffffffU);
  domains.memSyncDomainMap = {1, 2};
  EXPECT_EQ(told(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, domains), 0x201U);
}

}  // namespace
}  // namespace cuaudit::faults::told_objects_test
