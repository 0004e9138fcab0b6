// SPDX-License-Identifier: MIT
// Graphs: nodes, executables, captures, user objects.
#include "suites/fuzz/machine.h"

namespace cuaudit::fuzz {
namespace {

using driver::DriverRef;

void Nothing(void*) {}

// None or one node that the new one follows.
struct Before {
  explicit Before(Machine& m) : node(m.nodes.At(m.input)), count(m.input.Below(2)) {}
  CUgraphNode node;
  std::size_t count;
};

constexpr Operation kOperations[] = {
    [](Machine& m) { (void)m.d.GraphCreate(&m.graphs.At(m.input), 0); },
    [](Machine& m) { (void)m.d.GraphDestroy(m.graphs.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::GraphClone, {&m.graphs.At(m.input), m.graphs.At(m.input)});
    },
    [](Machine& m) {
      const Before before(m);
      m.Call(&DriverRef::GraphAddEmptyNode, {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count});
    },
    [](Machine& m) {
      const Before before(m);
      CUDA_MEMSET_NODE_PARAMS fill{};
      fill.dst = m.Address();
      fill.elementSize = 1;
      fill.width = m.Size();
      fill.height = 1;
      CUcontext context = nullptr;
      (void)m.d.CtxGetCurrent(&context);
      m.Call(&DriverRef::GraphAddMemsetNode, {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, &fill, context});
    },
    [](Machine& m) {
      const Before before(m);
      CUDA_MEMCPY3D copy{};
      copy.srcMemoryType = CU_MEMORYTYPE_HOST;
      copy.srcHost = m.Host();
      copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      copy.dstDevice = m.Address();
      copy.WidthInBytes = m.Size();
      copy.Height = copy.Depth = 1;
      CUcontext context = nullptr;
      (void)m.d.CtxGetCurrent(&context);
      m.Call(&DriverRef::GraphAddMemcpyNode, {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, &copy, context});
    },
    [](Machine& m) {
      const Before before(m);
      CUDA_HOST_NODE_PARAMS host{&Nothing, nullptr};
      m.Call(&DriverRef::GraphAddHostNode, {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, &host});
    },
    [](Machine& m) {
      const Before before(m);
      std::uint64_t values[8] = {m.Address(), m.Address()};
      void* parameters[8];
      for (int i = 0; i < 8; ++i) parameters[i] = &values[i];
      CUDA_KERNEL_NODE_PARAMS kernel{};
      kernel.func = m.functions.At(m.input);
      kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
      kernel.kernelParams = parameters;
      m.Call(&DriverRef::GraphAddKernelNode, {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, &kernel});
    },
    [](Machine& m) {
      const Before before(m);
      m.Call(&DriverRef::GraphAddChildGraphNode,
             {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, m.graphs.At(m.input)});
    },
    [](Machine& m) {
      const Before before(m);
      m.Call(&DriverRef::GraphAddEventRecordNode,
             {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, m.events.At(m.input)});
    },
    [](Machine& m) {
      const Before before(m);
      m.Call(&DriverRef::GraphAddEventWaitNode,
             {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, m.events.At(m.input)});
    },
    [](Machine& m) {
      const Before before(m);
      CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
      wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
      wanted.bytesize = m.Size();
      m.Call(&DriverRef::GraphAddMemAllocNode, {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, &wanted});
      if (wanted.dptr != 0) m.memory.At(m.input) = wanted.dptr;
    },
    [](Machine& m) {
      const Before before(m);
      m.Call(&DriverRef::GraphAddMemFreeNode,
             {&m.nodes.At(m.input), m.graphs.At(m.input), &before.node, before.count, m.memory.At(m.input)});
    },
    [](Machine& m) { (void)m.d.GraphDestroyNode(m.nodes.At(m.input)); },
    [](Machine& m) {
      const CUgraphNode from = m.nodes.At(m.input);
      const CUgraphNode to = m.nodes.At(m.input);
      (void)m.d.GraphAddDependencies(m.graphs.At(m.input), &from, &to, nullptr, 1);
    },
    [](Machine& m) {
      std::size_t count = 3;
      (void)m.d.GraphGetNodes(m.graphs.At(m.input), m.nodes.place, &count);
    },
    [](Machine& m) {
      m.Call(&DriverRef::GraphChildGraphNodeGetGraph, {m.nodes.At(m.input), &m.graphs.At(m.input)});
    },
    [](Machine& m) {
      static constexpr unsigned long long kFlags[] = {0, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
                                                      CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, 1ULL << 40U};
      m.Call(&DriverRef::GraphInstantiateWithFlags, {&m.executables.At(m.input), m.graphs.At(m.input), kFlags[m.input.Below(4)]});
    },
    [](Machine& m) { (void)m.d.GraphExecDestroy(m.executables.At(m.input)); },
    [](Machine& m) {
      m.Call(&DriverRef::GraphLaunch, {m.executables.At(m.input), m.Stream()});
    },
    [](Machine& m) {
      m.Call(&DriverRef::GraphUpload, {m.executables.At(m.input), m.Stream()});
    },
    [](Machine& m) {
      CUgraphExecUpdateResultInfo info{};
      m.Call(&DriverRef::GraphExecUpdate, {m.executables.At(m.input), m.graphs.At(m.input), &info});
    },
    [](Machine& m) {
      m.Call(&DriverRef::GraphExecChildGraphNodeSetParams, {m.executables.At(m.input), m.nodes.At(m.input), m.graphs.At(m.input)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::GraphNodeSetEnabled, {m.executables.At(m.input), m.nodes.At(m.input), m.input.Below(2)});
    },
    [](Machine& m) { (void)m.d.DeviceGraphMemTrim(0); },
    [](Machine& m) {
      m.Call(&DriverRef::StreamBeginCapture, {m.Stream(), static_cast<CUstreamCaptureMode>(m.input.Below(3))});
    },
    [](Machine& m) {
      m.Call(&DriverRef::StreamBeginCaptureToGraph,
             {m.Stream(), m.graphs.At(m.input), nullptr, nullptr, 0, static_cast<CUstreamCaptureMode>(m.input.Below(3))});
    },
    [](Machine& m) {
      m.Call(&DriverRef::StreamEndCapture, {m.Stream(), &m.graphs.At(m.input)});
    },
    [](Machine& m) {
      CUstreamCaptureStatus status{};
      (void)m.d.StreamIsCapturing(m.Stream(), &status);
    },
    [](Machine& m) {
      auto mode = static_cast<CUstreamCaptureMode>(m.input.Below(3));
      (void)m.d.ThreadExchangeStreamCaptureMode(&mode);
    },
    [](Machine& m) {
      const std::uint32_t references = m.input.Below(3);
      (void)m.d.UserObjectCreate(&m.user_objects.At(m.input), m.Host(), &Nothing, references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    },
    [](Machine& m) {
      m.Call(&DriverRef::UserObjectRetain, {m.user_objects.At(m.input), m.input.Below(3)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::UserObjectRelease, {m.user_objects.At(m.input), m.input.Below(3)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::GraphRetainUserObject, {m.graphs.At(m.input), m.user_objects.At(m.input), m.input.Below(3), m.input.Below(2)});
    },
    [](Machine& m) {
      m.Call(&DriverRef::GraphReleaseUserObject, {m.graphs.At(m.input), m.user_objects.At(m.input), m.input.Below(3)});
    },
};

}  // namespace

std::span<const Operation> GraphOperations() { return kOperations; }

}  // namespace cuaudit::fuzz
