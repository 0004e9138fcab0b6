// SPDX-License-Identifier: MIT
// Which addresses of a graph node reach the journal: every one that the node touches, and nothing else.
#define __CUDA_API_VERSION_INTERNAL
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "suites/support/gated_world.h"

namespace cuaudit::faults::gate_addresses_test {
namespace {

using driver::BaseId;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// What is written behind the last call of that name.
std::vector<std::uint64_t> AddressesOf(const GatedWorld& world, BaseId base) {
  std::vector<std::uint64_t> addresses;
  const Record call = world.Last(base);
  for (const Record& record : world.Records()) {
    if (record.kind != RecordKind::Argument || record.context != call.begin || record.flags == kStandsOn) continue;
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

}  // namespace
}  // namespace cuaudit::faults::gate_addresses_test
