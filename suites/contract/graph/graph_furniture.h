// SPDX-License-Identifier: MIT
// graph_furniture.h: a graph with its executable, and nodes in one line, for questions about graphs.
//
// A Sketch owns its graph and executable; it destroys them and ignores errors. A preparation that fails shows in the answer.
#pragma once

#include "suites/contract/question.h"

namespace cuaudit::contract {

struct Sketch {
  explicit Sketch(Asker& asker) : a(asker) { a.Prepare(a.d.GraphCreate(&g, 0)); }
  ~Sketch() {
    if (x != nullptr) (void)a.d.GraphExecDestroy(x);
    if (g != nullptr) (void)a.d.GraphDestroy(g);
  }
  Sketch(const Sketch&) = delete;
  Sketch& operator=(const Sketch&) = delete;

  CUgraphNode Empty() {
    CUgraphNode n = nullptr;
    a.Prepare(a.d.GraphAddEmptyNode(&n, g, nullptr, 0));
    return n;
  }
  CUgraphNode Host(void (*function)(void*) = Nothing, void* argument = nullptr) {
    CUgraphNode n = nullptr;
    const CUDA_HOST_NODE_PARAMS host{function, argument};
    a.Prepare(a.d.GraphAddHostNode(&n, g, nullptr, 0, &host));
    return n;
  }
  CUgraphNode Fill(CUdeviceptr p, unsigned value, std::size_t width, CUcontext context, std::size_t height = 1) {
    return FillIn(a, g, p, value, width, context, height);
  }
  static CUDA_MEMSET_NODE_PARAMS FillOf(CUdeviceptr p, unsigned value, std::size_t width, std::size_t height = 1) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = p;
    fill.pitch = height > 1 ? width * 2 : 0;
    fill.value = value;
    fill.elementSize = 1;
    fill.width = width;
    fill.height = height;
    return fill;
  }
  static CUgraphNode FillIn(Asker& a, CUgraph g, CUdeviceptr p, unsigned value, std::size_t width, CUcontext context,
                            std::size_t height = 1) {
    CUgraphNode n = nullptr;
    const CUDA_MEMSET_NODE_PARAMS fill = FillOf(p, value, width, height);
    a.Prepare(a.d.GraphAddMemsetNode(&n, g, nullptr, 0, &fill, context));
    return n;
  }
  static CUDA_MEMCPY3D CopyOf(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
  }
  static CUDA_MEM_ALLOC_NODE_PARAMS AllocOf(std::size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    alloc.bytesize = bytes;
    return alloc;
  }
  CUgraphNode Alloc(std::size_t bytes, CUdeviceptr* p) {
    CUgraphNode n = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = AllocOf(bytes);
    a.Prepare(a.d.GraphAddMemAllocNode(&n, g, nullptr, 0, &alloc));
    *p = alloc.dptr;
    return n;
  }
  CUgraphNode Free(CUgraphNode after, CUdeviceptr p) {
    CUgraphNode n = nullptr;
    a.Prepare(a.d.GraphAddMemFreeNode(&n, g, &after, 1, p));
    return n;
  }
  static CUDA_KERNEL_NODE_PARAMS KernelOf(CUfunction f, void** parameters = nullptr) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = f;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = parameters;
    return kernel;
  }
  CUgraphNode Kernel(CUfunction f, void** parameters = nullptr) {
    CUgraphNode n = nullptr;
    const CUDA_KERNEL_NODE_PARAMS kernel = KernelOf(f, parameters);
    a.Prepare(a.d.GraphAddKernelNode(&n, g, nullptr, 0, &kernel));
    return n;
  }
  void Instantiate(unsigned long long flags = 0) { a.Prepare(a.d.GraphInstantiateWithFlags(&x, g, flags)); }

  Asker& a;
  CUgraph g = nullptr;
  CUgraphExec x = nullptr;
};

inline CUdeviceptr Cleared(Asker& a, std::size_t bytes) {
  CUdeviceptr p = 0;
  a.Prepare(a.d.MemAlloc(&p, bytes));
  a.Prepare(a.d.MemsetD8(p, 0, bytes));
  a.Prepare(a.d.CtxSynchronize(nullptr));
  return p;
}

}  // namespace cuaudit::contract
