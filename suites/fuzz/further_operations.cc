// SPDX-License-Identifier: MIT
// Operations that came later, of every family; see RunProgram for why they stand together.
#include "suites/fuzz/machine.h"

namespace cuaudit::fuzz {
namespace {

using driver::DriverRef;

void Nothing(void*) {}

CUcontext Current(const Machine& m) {
  CUcontext context = nullptr;
  (void)m.d.CtxGetCurrent(&context);
  return context;
}

CUDA_MEMSET_NODE_PARAMS Fill(Machine& m) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = m.Address();
  fill.elementSize = 1;
  fill.width = m.Size();
  fill.height = 1;
  return fill;
}

CUDA_MEMCPY3D Copy(Machine& m) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = m.Host();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = m.Address();
  copy.WidthInBytes = m.Size();
  copy.Height = copy.Depth = 1;
  return copy;
}

// What a kernel is given lives as long as this.
struct Values {
  explicit Values(Machine& m) : value{m.Address(), m.Address()} {
    for (int i = 0; i < 8; ++i) parameters[i] = &value[i];
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  std::uint64_t value[8];
  void* parameters[8];
};

template <typename Parameters>
Parameters Kernel(Machine& m, Values* values) {
  Parameters kernel{};
  kernel.func = m.functions.At(m.input);
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = values->parameters;
  return kernel;
}

// What cuGraphAddNode and its two sisters are told.
CUgraphNodeParams Node(Machine& m, Values* values) {
  static constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMSET,
                                               CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                               CU_GRAPH_NODE_TYPE_HOST,  CU_GRAPH_NODE_TYPE_MEM_FREE};
  CUgraphNodeParams node{};
  node.type = kTypes[m.input.Below(8)];
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      node.kernel = Kernel<CUDA_KERNEL_NODE_PARAMS_v3>(m, values);
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = Fill(m);
      node.memset = {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height, Current(m)};
      break;
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      node.graph.graph = m.graphs.At(m.input);
      node.graph.ownership = m.input.Below(2) == 0 ? CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE : CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
      break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      node.eventRecord.event = m.events.At(m.input);
      break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      node.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      node.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
      node.alloc.bytesize = m.Size();
      break;
    case CU_GRAPH_NODE_TYPE_HOST:
      node.host.fn = &Nothing;
      break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      node.free.dptr = m.memory.At(m.input);
      break;
    default:
      break;
  }
  return node;
}

constexpr Operation kOperations[] = {
    [](Machine& m) {
      Values values(m);
      const CUgraphNode before = m.nodes.At(m.input);
      const std::size_t count = m.input.Below(2);
      CUgraphNodeParams node = Node(m, &values);
      m.Call(&DriverRef::GraphAddNode, {&m.nodes.At(m.input), m.graphs.At(m.input), &before, nullptr, count, &node});
      if (node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node.alloc.dptr != 0) m.memory.At(m.input) = node.alloc.dptr;
    },
    [](Machine& m) {
      Values values(m);
      CUgraphNodeParams node = Node(m, &values);
      (void)m.d.GraphNodeSetParams(m.nodes.At(m.input), &node);
    },
    [](Machine& m) {
      Values values(m);
      CUgraphNodeParams node = Node(m, &values);
      m.Call(&DriverRef::GraphExecNodeSetParams, {m.executables.At(m.input), m.nodes.At(m.input), &node});
    },
    [](Machine& m) {
      Values values(m);
      const auto kernel = Kernel<CUDA_KERNEL_NODE_PARAMS>(m, &values);
      (void)m.d.GraphKernelNodeSetParams(m.nodes.At(m.input), &kernel);
    },
    [](Machine& m) {
      Values values(m);
      const auto kernel = Kernel<CUDA_KERNEL_NODE_PARAMS>(m, &values);
      m.Call(&DriverRef::GraphExecKernelNodeSetParams, {m.executables.At(m.input), m.nodes.At(m.input), &kernel});
    },
    [](Machine& m) {
      const CUDA_MEMSET_NODE_PARAMS fill = Fill(m);
      (void)m.d.GraphMemsetNodeSetParams(m.nodes.At(m.input), &fill);
    },
    [](Machine& m) {
      const CUDA_MEMSET_NODE_PARAMS fill = Fill(m);
      m.Call(&DriverRef::GraphExecMemsetNodeSetParams, {m.executables.At(m.input), m.nodes.At(m.input), &fill, Current(m)});
    },
    [](Machine& m) {
      const CUDA_MEMCPY3D copy = Copy(m);
      (void)m.d.GraphMemcpyNodeSetParams(m.nodes.At(m.input), &copy);
    },
    [](Machine& m) {
      const CUDA_MEMCPY3D copy = Copy(m);
      m.Call(&DriverRef::GraphExecMemcpyNodeSetParams, {m.executables.At(m.input), m.nodes.At(m.input), &copy, Current(m)});
    },
    [](Machine& m) {
      const CUDA_HOST_NODE_PARAMS host{&Nothing, nullptr};
      (void)m.d.GraphHostNodeSetParams(m.nodes.At(m.input), &host);
    },
    [](Machine& m) {
      m.Call(&DriverRef::GraphEventRecordNodeSetEvent, {m.nodes.At(m.input), m.events.At(m.input)});
    },
    [](Machine& m) {
      Values values(m);
      CUlaunchConfig launch{};
      launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
      launch.hStream = m.Stream();
      (void)m.d.LaunchKernelEx(&launch, m.functions.At(m.input), values.parameters, nullptr);
    },
    [](Machine& m) {
      m.Call(&DriverRef::EventRecordWithFlags, {m.events.At(m.input), m.Stream(), m.input.Below(2)});
    },
    [](Machine& m) { (void)m.d.CtxAttach(&m.contexts.At(m.input), 0); },
    [](Machine& m) { (void)m.d.CtxDetach(m.contexts.At(m.input)); },
    [](Machine& m) {
      std::size_t bytes = 0;
      m.Call(&DriverRef::LibraryGetGlobal, {&m.memory.At(m.input), &bytes, m.libraries.At(m.input), "g"});
    },
    [](Machine& m) {
      std::size_t bytes = 0;
      m.Call(&DriverRef::LibraryGetManaged, {&m.memory.At(m.input), &bytes, m.libraries.At(m.input), "g"});
    },
    [](Machine& m) {
      m.Call(&DriverRef::MulticastBindAddr, {m.multicast.At(m.input), 0, m.Reserved(), kGranule, 0});
    },
    [](Machine& m) {
      CUDA_GRAPH_INSTANTIATE_PARAMS how{};
      how.hUploadStream = m.Stream();
      how.flags = m.input.Below(2) == 0 ? 0 : CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
      m.Call(&DriverRef::GraphInstantiateWithParams, {&m.executables.At(m.input), m.graphs.At(m.input), &how});
    },
    [](Machine& m) { (void)m.d.TexRefCreate(&m.references.At(m.input)); },
    [](Machine& m) { (void)m.d.TexRefDestroy(m.references.At(m.input)); },
    [](Machine& m) { (void)m.d.CtxEnablePeerAccess(m.contexts.At(m.input), 0); },
    [](Machine& m) { (void)m.d.CtxDisablePeerAccess(m.contexts.At(m.input)); },
};

}  // namespace

std::span<const Operation> FurtherOperations() { return kOperations; }

}  // namespace cuaudit::fuzz
