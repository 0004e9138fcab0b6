// SPDX-License-Identifier: MIT
// Host kernels on a simulated driver of the test's own: arguments, order, bounds and what is counted.
#include <cstdint>
#include <cstring>
#include <vector>

#include "include/cuaudit/kernel.h"
#include "suites/support/sim_world.h"

namespace cuaudit::sim::host_kernel_test {
namespace {

constexpr const char* kText =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n ret;\n}\n"
    ".visible .entry scale(.param .u64 data, .param .f32 by, .param .u32 n)\n{\n ret;\n}\n";

void Add(Launch launch, Device<const float> a, Device<const float> b, Device<float> c, std::uint32_t n) {
  const float* const left = a.Read(launch, n);
  const float* const right = b.Read(launch, n);
  float* const sum = c.Write(launch, n);
  if (left == nullptr || right == nullptr || sum == nullptr) return;
  launch.ForEachThread([&](std::uint32_t block, std::uint32_t thread) {
    const std::uint32_t i = block * launch.block()[0] + thread;
    if (i < n) sum[i] = left[i] + right[i];
  });
}

void Scale(Launch launch, Device<float> data, float by, std::uint32_t n) {
  float* const values = data.Write(launch, n);
  for (std::uint32_t i = 0; values != nullptr && i < n; ++i) values[i] *= by;
}

// In a world of its own, where nobody answers the weak registration.
class Kernels : public Simulated {
 public:
  Kernels() : add("add"), scale("scale") {
    EXPECT_OK(d.ModuleLoadData(&module, kText));
    EXPECT_FALSE(add.registered);
  }
  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_OK(d.ModuleGetFunction(&function, module, name));
    return function;
  }
  CUdeviceptr Floats(const std::vector<float>& values) {
    CUdeviceptr address = 0;
    EXPECT_OK(d.MemAlloc(&address, values.size() * sizeof(float)));
    EXPECT_OK(d.MemcpyHtoD(address, values.data(), values.size() * sizeof(float)));
    return address;
  }
  std::vector<float> Read(CUdeviceptr address, std::size_t count) {
    std::vector<float> values(count);
    EXPECT_OK(d.MemcpyDtoH(values.data(), address, count * sizeof(float)));
    return values;
  }
  CUresult Start(const char* name, void** parameters, CUstream stream = nullptr) {
    return d.LaunchKernel(Function(name), 2, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
  }
  std::uint64_t Count(KernelCount what) const { return CountKernels(world, what); }

  HostKernel<Add> add;
  HostKernel<Scale> scale;
  CUmodule module = nullptr;
};

TEST(HostKernel, AddsVectorsWithTheArgumentsOfTheLaunch) {
  Kernels k;
  ASSERT_TRUE(RegisterKernel(k.world, &k.add.kernel));
  std::uint32_t n = 40;
  CUdeviceptr a = k.Floats(std::vector<float>(n, 1.5F));
  CUdeviceptr b = k.Floats(std::vector<float>(n, 2.F));
  CUdeviceptr c = k.Floats(std::vector<float>(n, 0.F));
  const CUdeviceptr sum = c;
  void* parameters[] = {&a, &b, &c, &n};
  EXPECT_OK(k.Start("add", parameters));
  a = b = c = 0;  // the launch has its own copies
  n = 0;
  EXPECT_EQ(k.Read(sum, 40), std::vector<float>(40, 3.5F));
  EXPECT_EQ(k.Count(KernelCount::Hosted), 1U);
  EXPECT_EQ(k.Count(KernelCount::Idle), 0U);
}

TEST(HostKernel, TakesPackedArguments) {
  Kernels k;
  ASSERT_TRUE(RegisterKernel(k.world, &k.scale.kernel));
  struct {
    CUdeviceptr data;
    float by;
    std::uint32_t n;
  } packed{k.Floats({1, 2, 3}), 10, 3};
  std::size_t bytes = sizeof(packed);
  const CUdeviceptr data = packed.data;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  EXPECT_OK(k.d.LaunchKernel(k.Function("scale"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  packed = {};
  EXPECT_EQ(k.Read(data, 3), (std::vector<float>{10, 20, 30}));
}

TEST(HostKernel, RunsInStreamOrderAndInGraphs) {
  Kernels k;
  ASSERT_TRUE(RegisterKernel(k.world, &k.scale.kernel));
  CUstream stream = nullptr;
  EXPECT_OK(k.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr data = k.Floats({1});
  float by = 3;
  std::uint32_t n = 1;
  void* parameters[] = {&data, &by, &n};
  EXPECT_OK(k.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(k.Start("scale", parameters, stream));
  by = 5;
  EXPECT_OK(k.Start("scale", parameters, stream));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  EXPECT_OK(k.d.StreamEndCapture(stream, &graph));
  EXPECT_OK(k.d.GraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_OK(k.d.GraphDestroy(graph));
  by = 0;
  EXPECT_OK(k.d.GraphLaunch(executable, stream));
  EXPECT_OK(k.d.GraphLaunch(executable, stream));
  EXPECT_OK(k.d.GraphExecDestroy(executable));
  EXPECT_OK(k.d.StreamSynchronize(stream));
  EXPECT_EQ(k.Read(data, 1), (std::vector<float>{225}));
}

TEST(HostKernel, AbsentOnesDoNothingAndAreCounted) {
  Kernels k;
  CUdeviceptr data = k.Floats({1, 2});
  float by = 3;
  std::uint32_t n = 2;
  void* parameters[] = {&data, &by, &n};
  EXPECT_OK(k.Start("scale", parameters));
  EXPECT_EQ(k.Read(data, 2), (std::vector<float>{1, 2}));
  EXPECT_EQ(k.Count(KernelCount::Hosted), 0U);
  EXPECT_EQ(k.Count(KernelCount::Idle), 1U);
  EXPECT_EQ(k.Count(KernelCount::Mismatched), 0U);
}

TEST(HostKernel, OtherParametersThanTheImagesAreNotRun) {
  Kernels k;
  cuaudit_kernel wrong = k.add.kernel;
  wrong.name = "scale";
  ASSERT_TRUE(RegisterKernel(k.world, &wrong));
  CUdeviceptr data = k.Floats({1, 2});
  float by = 3;
  std::uint32_t n = 2;
  void* parameters[] = {&data, &by, &n};
  EXPECT_OK(k.Start("scale", parameters));
  EXPECT_EQ(k.Read(data, 2), (std::vector<float>{1, 2}));
  EXPECT_EQ(k.Count(KernelCount::Mismatched), 1U);
}

TEST(HostKernel, ARangeBeyondLiveMemoryLosesTheContext) {
  Kernels k;
  ASSERT_TRUE(RegisterKernel(k.world, &k.scale.kernel));
  CUdeviceptr data = k.Floats({1, 2});
  float by = 3;
  std::uint32_t n = 2000;
  void* parameters[] = {&data, &by, &n};
  EXPECT_OK(k.Start("scale", parameters));
  EXPECT_EQ(k.d.CtxSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(k.d.MemFree(data), CUDA_ERROR_ILLEGAL_ADDRESS);
}

driver::DriverRef calling;
CUresult answered = CUDA_SUCCESS;
void CallsTheDriver(cuaudit_launch*) { answered = calling.CtxSynchronize(nullptr); }

TEST(HostKernel, HasNoSharedMemoryWhenItWasTold0) {
  Kernels kernels;
  const CUfunction add = kernels.Function("add");
  constexpr auto kDynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  int bytes = 0;
  const std::vector<float> values(64);
  CUdeviceptr a = kernels.Floats(values), b = kernels.Floats(values), c = kernels.Floats(values);
  std::uint32_t n = 64;
  void* parameters[] = {&a, &b, &c, &n};
  const auto launch = [&](unsigned shared) { return kernels.d.LaunchKernel(add, 2, 1, 1, 32, 1, 1, shared, nullptr, parameters, nullptr); };
  EXPECT_OK(launch(16));
  EXPECT_OK(kernels.d.FuncSetAttribute(add, kDynamic, 0));
  EXPECT_OK(kernels.d.FuncGetAttribute(&bytes, kDynamic, add));
  EXPECT_EQ(bytes, 0);
  EXPECT_OK(launch(0));
  EXPECT_EQ(launch(16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(kernels.d.FuncSetAttribute(add, kDynamic, 16));
  EXPECT_OK(launch(16));
}

TEST(HostKernel, MayNotCallTheDriver) {
  Kernels k;
  calling = k.d;
  const cuaudit_kernel kernel{sizeof(kernel), 0, "scale", CallsTheDriver, nullptr, nullptr, nullptr};
  ASSERT_TRUE(RegisterKernel(k.world, &kernel));
  CUdeviceptr data = k.Floats({1});
  float by = 1;
  std::uint32_t n = 1;
  void* parameters[] = {&data, &by, &n};
  EXPECT_OK(k.Start("scale", parameters));
  EXPECT_OK(k.d.CtxSynchronize(nullptr));
  EXPECT_EQ(answered, CUDA_ERROR_NOT_PERMITTED);
}

void CountDown(cuaudit_launch* launch) {
  std::uint64_t handle = 0;
  std::memcpy(&handle, launch->parameters[1], sizeof(handle));
  std::uint32_t* const left = static_cast<std::uint32_t*>(cuaudit_write(launch, cuaudit_address(launch, 0), sizeof(std::uint32_t)));
  if (left != nullptr && *left != 0) --*left;
  EXPECT_EQ(cuaudit_set_conditional(launch, handle, left != nullptr && *left != 0 ? 1 : 0), 1);
  EXPECT_EQ(cuaudit_set_conditional(launch, handle + 1, 1), 0);
}

// A graph that counts down in a loop; `hosted`: with something that counts.
std::uint32_t LeftAfterLoop(bool hosted) {
  Simulated s;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_OK(s.d.ModuleLoadData(&module,
                               ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".visible .entry count(.param .u64 left, .param .u64 handle)\n{\n ret;\n}\n"));
  EXPECT_OK(s.d.ModuleGetFunction(&function, module, "count"));
  const cuaudit_kernel kernel{sizeof(kernel), 0, "count", CountDown, nullptr, nullptr, nullptr};
  if (hosted) {
    EXPECT_TRUE(RegisterKernel(s.world, &kernel));
  }
  CUdeviceptr left = 0;
  const std::uint32_t turns = 7;
  EXPECT_OK(s.d.MemAlloc(&left, sizeof(turns)));
  EXPECT_OK(s.d.MemcpyHtoD(left, &turns, sizeof(turns)));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphNode node = nullptr;
  CUgraphConditionalHandle handle = 0;
  EXPECT_OK(s.d.GraphCreate(&graph, 0));
  EXPECT_OK(s.d.GraphConditionalHandleCreate(&handle, graph, s.context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  parameters.conditional.handle = handle;
  parameters.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  parameters.conditional.size = 1;
  parameters.conditional.ctx = s.context;
  EXPECT_OK(s.d.GraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
  void* arguments[] = {&left, &handle};
  CUDA_KERNEL_NODE_PARAMS launch{};
  launch.func = function;
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = arguments;
  EXPECT_OK(s.d.GraphAddKernelNode(&node, parameters.conditional.phGraph_out[0], nullptr, 0, &launch));
  EXPECT_OK(s.d.GraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_OK(s.d.GraphDestroy(graph));
  EXPECT_OK(s.d.GraphLaunch(executable, nullptr));
  EXPECT_OK(s.d.StreamSynchronize(nullptr));
  EXPECT_OK(s.d.GraphExecDestroy(executable));
  std::uint32_t seen = 0;
  EXPECT_OK(s.d.MemcpyDtoH(&seen, left, sizeof(seen)));
  return seen;
}

TEST(HostKernel, EndsAConditionalLoop) {
  EXPECT_EQ(LeftAfterLoop(true), 0U);
  EXPECT_EQ(LeftAfterLoop(false), 7U);  // nobody counts: one turn, then on
}

}  // namespace
}  // namespace cuaudit::sim::host_kernel_test
