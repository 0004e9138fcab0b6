// SPDX-License-Identifier: MIT
// capturing.h: a program that captures streams on the simulated driver, through the gate. The records are the same as on any driver.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "capturing.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <initializer_list>
#include <string_view>

#include "suites/support/cases/case.h"
#include "suites/support/gated_world.h"

namespace cuaudit::testing {

struct Capturing {
  static constexpr std::size_t kBytes = 4096;
  static constexpr char kModule[] =
      ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry ignore_pointer(.param .u64 pointer)\n{\n  ret;\n}\n";

  faults::GatedWorld gated;
  driver::DriverRef d = gated.driver();
  CUstream stream = nullptr;
  CUfunction function = nullptr;
  CUmodule module = nullptr;

  explicit Capturing(std::initializer_list<std::string_view> faults = {}) : gated(faults) {
    gated.Start();
    EXPECT_EQ(d.ModuleLoadData(&module, kModule), CUDA_SUCCESS);
    EXPECT_EQ(d.ModuleGetFunction(&function, module, "ignore_pointer"), CUDA_SUCCESS);
    stream = NewStream();
  }
  CUstream NewStream() const {
    CUstream made = nullptr;
    EXPECT_EQ(d.StreamCreate(&made, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return made;
  }
  CUdeviceptr Memory() const {
    CUdeviceptr memory = 0;
    EXPECT_EQ(d.MemAlloc(&memory, kBytes), CUDA_SUCCESS);
    return memory;
  }
  void Begin(CUstream on) const { EXPECT_EQ(d.StreamBeginCapture(on, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS); }
  CUgraph End(CUstream on) const {
    CUgraph graph = nullptr;
    EXPECT_EQ(d.StreamEndCapture(on, &graph), CUDA_SUCCESS);
    return graph;
  }
  void Kernel(CUdeviceptr memory, CUstream on) const {
    void* arguments[] = {&memory};
    EXPECT_EQ(d.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, arguments, nullptr), CUDA_SUCCESS);
  }
  // For cuLaunchKernelEx, whose stream is a member of a structure.
  void KernelEx(CUdeviceptr memory, CUstream on) const {
    void* arguments[] = {&memory};
    CUlaunchConfig launch = {};
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    launch.hStream = on;
    EXPECT_EQ(d.LaunchKernelEx(&launch, function, arguments, nullptr), CUDA_SUCCESS);
  }
  // Parameters of a kernel node with other arguments.
  CUDA_KERNEL_NODE_PARAMS With(void** arguments) const {
    CUDA_KERNEL_NODE_PARAMS node = {};
    node.func = function;
    node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments;
    return node;
  }
  CUgraphNode OnlyNode(CUgraph graph) const {
    CUgraphNode node = nullptr;
    std::size_t count = 1;
    EXPECT_EQ(d.GraphGetNodes(graph, &node, &count), CUDA_SUCCESS);
    EXPECT_EQ(count, 1U);
    return node;
  }
  CUDA_BATCH_MEM_OP_NODE_PARAMS Batch(CUstreamBatchMemOpParams* write, CUdeviceptr memory) const {
    write->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write->writeValue.address = memory;
    CUDA_BATCH_MEM_OP_NODE_PARAMS node = {};
    EXPECT_EQ(d.CtxGetCurrent(&node.ctx), CUDA_SUCCESS);
    node.count = 1;
    node.paramArray = write;
    return node;
  }
  CUgraphExec Instantiate(CUgraph graph) const {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(d.GraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    return executable;
  }
  void Launch(CUgraphExec executable) const {
    EXPECT_EQ(d.GraphLaunch(executable, stream), CUDA_SUCCESS);
    EXPECT_EQ(d.StreamSynchronize(stream), CUDA_SUCCESS);
  }
  harness::Ledger Fold() const { return harness::Fold(gated.Records()); }
};

}  // namespace cuaudit::testing
