// SPDX-License-Identifier: MIT
// Which addresses of a graph's work reach the journal: every one that a node touches, and nothing else.
#define __CUDA_API_VERSION_INTERNAL
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_addresses_test {
namespace {

// Which addresses of a graph node reach the journal: every one that the node touches, and nothing else.

using driver::BaseId;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// What is written behind the last call of that name.
std::vector<std::uint64_t> AddressesOf(const GatedWorld& world, BaseId base) {
  std::vector<std::uint64_t> addresses;
  const Record call = world.Last(base);
  for (const Record& record : world.Records()) {
    if (record.kind != RecordKind::Argument || record.context != call.begin || record.flags == kStandsOn || record.flags == kLends)
      continue;
    for (const std::uint64_t address : record.argument) {
      if (address != 0) addresses.push_back(address);
    }
  }
  return addresses;
}

struct Graph : GatedWorld {
  driver::DriverRef d = driver();
  CUcontext context = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  Graph() {
    Start();
    EXPECT_EQ(d.CtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(d.GraphCreate(&graph, 0), CUDA_SUCCESS);
  }
};

// The driver makes the graphs in a conditional node, and no argument of a call names them before the program asks for them.
TEST(GateAddresses, TheBodiesOfAConditionalNodeAreLent) {
  Graph world;
  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  node.conditional.type = CU_GRAPH_COND_TYPE_IF;
  node.conditional.ctx = world.context;
  ASSERT_EQ(world.d.GraphConditionalHandleCreate(&node.conditional.handle, world.graph, world.context, 0, 0), CUDA_SUCCESS);
  const auto lent = [&] {
    std::vector<std::uint64_t> words;
    for (const Record& record : world.Records()) {
      if (record.kind == RecordKind::Argument && record.flags == kLends)
        words.insert(words.end(), {record.argument[0], record.argument[1]});
    }
    return words;
  };
  node.conditional.size = 0;
  EXPECT_NE(world.d.GraphAddNode(&world.node, world.graph, nullptr, nullptr, 0, &node), CUDA_SUCCESS);
  EXPECT_THAT(lent(), ::testing::IsEmpty());
  node.conditional.size = 1;
  ASSERT_EQ(world.d.GraphAddNode(&world.node, world.graph, nullptr, nullptr, 0, &node), CUDA_SUCCESS);
  const auto body = reinterpret_cast<std::uintptr_t>(node.conditional.phGraph_out[0]);
  EXPECT_THAT(lent(), ElementsAre(static_cast<std::uint64_t>(driver::Kind::Graph), body));
}

// There are many copies, so only those that the driver declines get records of their addresses.
TEST(GateAddresses, TheEndsOfACopyThatTheDriverDeclines) {
  Graph world;
  CUDA_MEMCPY2D copy{};
  CUdeviceptr memory = 0;
  ASSERT_EQ(world.d.MemAlloc(&memory, 4096), CUDA_SUCCESS);
  char bytes[64] = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = bytes;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.WidthInBytes = 64;
  copy.Height = 1;
  copy.srcPitch = copy.dstPitch = 64;
  ASSERT_EQ(world.d.Memcpy2D(&copy), CUDA_SUCCESS);
  EXPECT_THAT(AddressesOf(world, BaseId::Memcpy2D), ::testing::IsEmpty());
  ASSERT_EQ(world.d.MemFree(memory), CUDA_SUCCESS);
  EXPECT_NE(world.d.Memcpy2D(&copy), CUDA_SUCCESS);
  EXPECT_THAT(AddressesOf(world, BaseId::Memcpy2D), ElementsAre(static_cast<std::uint64_t>(driver::Kind::DeviceMemory), memory));
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  ASSERT_EQ(world.d.Array3DCreate(&array, &shape), CUDA_SUCCESS);
  ASSERT_EQ(world.d.ArrayDestroy(array), CUDA_SUCCESS);
  CUDA_MEMCPY3D volume{};
  volume.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  volume.srcArray = array;
  volume.dstMemoryType = CU_MEMORYTYPE_HOST;
  volume.dstHost = bytes;
  volume.WidthInBytes = volume.Height = volume.Depth = 1;
  EXPECT_NE(world.d.Memcpy3D(&volume), CUDA_SUCCESS);
  EXPECT_THAT(AddressesOf(world, BaseId::Memcpy3D),
              ElementsAre(static_cast<std::uint64_t>(driver::Kind::Array), reinterpret_cast<std::uintptr_t>(array)));
  EXPECT_NE(world.d.Memcpy3D(nullptr), CUDA_SUCCESS);
  EXPECT_THAT(AddressesOf(world, BaseId::Memcpy3D), ::testing::IsEmpty());
}

#if CUDA_VERSION >= 12090
// The gate asks for parameters until there is no further one. The log of refused calls must not have that.
TEST(GateAddresses, AreAskedForWithoutALineInTheLogOfTheProgram) {
  Graph world;
  const char* const image = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(world.d.ModuleLoadData(&module, image), CUDA_SUCCESS);
  ASSERT_EQ(world.d.ModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
  CUlogIterator before = 0, asked = 0, refused = 0;
  EXPECT_EQ(world.d.LogsCurrent(&before, 0), CUDA_SUCCESS);
  std::uint64_t address = 0x10000;
  void* parameters[] = {&address};
  CUDA_KERNEL_NODE_PARAMS_v2 launch{};
  launch.func = function;
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = parameters;
  EXPECT_EQ(world.d.GraphAddKernelNode(&world.node, world.graph, nullptr, 0, &launch), CUDA_SUCCESS);
  EXPECT_THAT(AddressesOf(world, BaseId::GraphAddKernelNode), ElementsAre(address));
  EXPECT_EQ(world.d.LogsCurrent(&asked, 0), CUDA_SUCCESS);
  EXPECT_EQ(asked, before);
  CUdeviceptr p = 0;
  EXPECT_EQ(world.d.MemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.d.LogsCurrent(&refused, 0), CUDA_SUCCESS);
  EXPECT_EQ(refused, before + 1) << "another refused call has its line";
}
#endif

TEST(GateAddresses, OfAKernelAreAllItsWordsOfEightBytesAndNoSmallerOnes) {
  Graph world;
  constexpr std::size_t kAddresses = kRecordArguments + 2;  // more than one record holds
  std::string image = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k(.param .u32 count";
  std::uint32_t count[2] = {0x7777, 0x1};  // what lies behind the parameter is none of it
  std::vector<std::uint64_t> addresses;
  for (std::size_t i = 0; i < kAddresses; ++i) {
    image += ", .param .u64 p" + std::to_string(i);
    addresses.push_back(0x10000 + 0x100 * i);
  }
  image += ") { ret; }\n";
  std::vector<void*> parameters = {count};
  for (std::uint64_t& address : addresses) parameters.push_back(&address);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(world.d.ModuleLoadData(&module, image.c_str()), CUDA_SUCCESS);
  ASSERT_EQ(world.d.ModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  kernel.func = function;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters.data();
  ASSERT_EQ(world.d.GraphAddKernelNode(&world.node, world.graph, nullptr, 0, &kernel), CUDA_SUCCESS);
  EXPECT_THAT(AddressesOf(world, BaseId::GraphAddKernelNode), ElementsAreArray(addresses));
}

TEST(GateAddresses, OfACopyAreWhereItReadsAndWhereItWrites) {
  Graph world;
  CUdeviceptr memory[2] = {};
  for (CUdeviceptr& address : memory) ASSERT_EQ(world.d.MemAlloc(&address, 256), CUDA_SUCCESS);
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory[0];
  copy.dstDevice = memory[1];
  copy.WidthInBytes = 256;
  copy.Height = copy.Depth = 1;
  ASSERT_EQ(world.d.GraphAddMemcpyNode(&world.node, world.graph, nullptr, 0, &copy, world.context), CUDA_SUCCESS);
  EXPECT_THAT(AddressesOf(world, BaseId::GraphAddMemcpyNode), ElementsAre(memory[0], memory[1]));
}

// Which addresses reach the journal of launches and copies that a stream under capture turns into nodes. Of others none do.

using driver::CallId;
using ::testing::IsEmpty;

constexpr char kModule[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k(.param .u64 memory, .param .u32 count, .param .u64 other) { ret; }\n";

// A stream, a kernel, and memory that the kernel is given.
struct Captured : GatedWorld {
  driver::DriverRef d = driver();
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory[2] = {};
  std::uint32_t count = 0x7777;
  void* each[3] = {&memory[0], &count, &memory[1]};

  explicit Captured(std::initializer_list<std::string_view> faults = {}) : GatedWorld(faults) {
    Start();
    EXPECT_EQ(d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(d.ModuleLoadData(&module, kModule), CUDA_SUCCESS);
    EXPECT_EQ(d.ModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
    for (CUdeviceptr& one : memory) EXPECT_EQ(d.MemAlloc(&one, 256), CUDA_SUCCESS);
  }
  void Begin() { ASSERT_EQ(d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS); }
  CUresult End() {
    CUgraph graph = nullptr;
    return d.StreamEndCapture(stream, &graph);
  }
  CUresult Launch(CUstream on) { return d.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, each, nullptr); }

  // What is written behind the last call of that name.
  std::vector<std::uint64_t> Of(BaseId base) const {
    std::vector<std::uint64_t> addresses;
    const Record call = Last(base);
    for (const Record& record : Records()) {
      if (record.kind != RecordKind::Argument || record.context != call.begin || record.flags == kCapturedNode) continue;
      for (const std::uint64_t address : record.argument) {
        if (address != 0) addresses.push_back(address);
      }
    }
    return addresses;
  }
  // The node and the stream that are told of the last call of that name.
  std::pair<CUgraphNode, CUstream> Node(BaseId base) const {
    const Record call = Last(base);
    for (const Record& record : Records()) {
      if (record.kind == RecordKind::Argument && record.context == call.begin && record.flags == kCapturedNode)
        return {reinterpret_cast<CUgraphNode>(record.argument[0]), reinterpret_cast<CUstream>(record.argument[1])};
    }
    return {};
  }
};

TEST(GateCaptured, ACallTellsTheNodeThatItBecomes) {
  Captured world;
  world.Begin();
  ASSERT_EQ(world.Launch(world.stream), CUDA_SUCCESS);
  ASSERT_EQ(world.d.MemsetD8Async(world.memory[0], 0, 16, world.stream), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(world.d.StreamEndCapture(world.stream, &graph), CUDA_SUCCESS);
  CUgraphNode nodes[2] = {};
  std::size_t count = 2;
  ASSERT_EQ(world.d.GraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
  ASSERT_EQ(count, 2U);
  EXPECT_THAT(nodes, ElementsAre(world.Node(BaseId::LaunchKernel).first, world.Node(BaseId::MemsetD8Async).first));
  EXPECT_EQ(world.Node(BaseId::LaunchKernel).second, world.stream);
}

TEST(GateCaptured, ALaunchOnAStreamUnderCaptureTellsItsAddresses) {
  Captured world;
  world.Begin();
  ASSERT_EQ(world.Launch(world.stream), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernel), ElementsAre(world.memory[0], world.memory[1]));
  ASSERT_EQ(world.d.LaunchCooperativeKernel(world.function, 1, 1, 1, 1, 1, 1, 0, world.stream, world.each), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchCooperativeKernel), ElementsAre(world.memory[0], world.memory[1]));
  CUlaunchConfig launch = {};
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  launch.hStream = world.stream;
  ASSERT_EQ(world.d.LaunchKernelEx(&launch, world.function, world.each, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernelEx), ElementsAre(world.memory[0], world.memory[1]));
}

TEST(GateCaptured, PackedArgumentsAreReadNoFurtherThanTheyReach) {
  Captured world;
  world.Begin();
  struct {
    CUdeviceptr memory;
    std::uint32_t count[2];
    CUdeviceptr other;
  } packed = {world.memory[0], {0x7777, 0}, world.memory[1]};
  for (std::size_t bytes : {sizeof(packed), offsetof(decltype(packed), other)}) {
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    (void)world.d.LaunchKernel(world.function, 1, 1, 1, 1, 1, 1, 0, world.stream, nullptr, extra);
    if (bytes == sizeof(packed)) {
      EXPECT_THAT(world.Of(BaseId::LaunchKernel), ElementsAre(world.memory[0], world.memory[1]));
    } else if (world.Last(BaseId::LaunchKernel).result == CUDA_SUCCESS) {
      EXPECT_THAT(world.Of(BaseId::LaunchKernel), ElementsAre(world.memory[0]));
    }
  }
}

TEST(GateCaptured, ACopyToldByAStructureTellsBothEnds) {
  Captured world;
  world.Begin();
  CUDA_MEMCPY2D plane = {};
  plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = world.memory[0];
  plane.dstDevice = world.memory[1];
  plane.srcPitch = plane.dstPitch = plane.WidthInBytes = 16;
  plane.Height = 4;
  ASSERT_EQ(world.d.Memcpy2DAsync(&plane, world.stream), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::Memcpy2DAsync), ElementsAre(world.memory[0], world.memory[1]));
  CUDA_MEMCPY3D box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = world.memory[1];
  box.dstDevice = world.memory[0];
  box.srcPitch = box.dstPitch = box.WidthInBytes = 16;
  box.Height = box.Depth = 1;
  ASSERT_EQ(world.d.Memcpy3DAsync(&box, world.stream), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::Memcpy3DAsync), ElementsAre(world.memory[1], world.memory[0]));
}

TEST(GateCaptured, ALaunchThatIsExecutedTellsNone) {
  Captured world;
  CUstream other = nullptr;
  ASSERT_EQ(world.d.StreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(world.Launch(world.stream), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernel), IsEmpty());
  world.Begin();
  ASSERT_EQ(world.Launch(other), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernel), IsEmpty());
  ASSERT_EQ(world.End(), CUDA_SUCCESS);
  ASSERT_EQ(world.Launch(world.stream), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernel), IsEmpty());
}

TEST(GateCaptured, AnEndThatWasRefusedLeavesTheCaptureOpen) {
  Captured world({"cuStreamEndCapture#1=INVALID_VALUE,refuse"});
  world.Begin();
  ASSERT_EQ(world.End(), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(world.Launch(world.stream), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernel), ElementsAre(world.memory[0], world.memory[1]));
}

TEST(GateCaptured, AnotherCaptureThatHasEndedLeavesThisOneOpen) {
  Captured world;
  CUstream other = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(world.d.StreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  world.Begin();
  ASSERT_EQ(world.d.StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(world.d.StreamEndCapture(other, &graph), CUDA_SUCCESS);
  EXPECT_EQ(world.d.StreamEndCapture(other, &graph), CUDA_ERROR_ILLEGAL_STATE);  // there is none any more
  ASSERT_EQ(world.Launch(world.stream), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernel), ElementsAre(world.memory[0], world.memory[1]));
}

TEST(GateCaptured, TheThreadsOwnStreamIsMeantByNull) {
  Captured world;
  ASSERT_EQ(world.d.StreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  using Launch = driver::CallType<CallId::LaunchKernel_ptsz>::Entry;
  auto* const launch = reinterpret_cast<Launch*>(world.d.table->entry[driver::Index(CallId::LaunchKernel_ptsz)]);
  ASSERT_EQ(launch(world.d.self, world.function, 1, 1, 1, 1, 1, 1, 0, nullptr, world.each, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(world.Of(BaseId::LaunchKernel), ElementsAre(world.memory[0], world.memory[1]));
}

}  // namespace
}  // namespace cuaudit::faults::gate_addresses_test
