// SPDX-License-Identifier: MIT
// Memory of graphs and captures: what their nodes allocate, what they touch after it was released, and what a capture that is over no
// longer takes over.
#define __CUDA_API_VERSION_INTERNAL
#include <functional>
#include <thread>

#include "suites/support/cases/capturing.h"
#include "suites/support/cases/case.h"
#include "suites/support/gated_world.h"

namespace cuaudit::testing::graphs_test {
namespace {

// Memory that graph nodes or captured calls allocate, through the gate as a program would do it and as literal records.

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 4096;
constexpr const char* kOne = "stream_ordered_memory 1";

enum class By { Node, GenericNode, Capture };
constexpr By kWays[] = {By::Node, By::GenericNode, By::Capture};

// A program with one graph that allocates memory; it may free it in the same graph.
struct Program {
  faults::GatedWorld gated;
  driver::DriverRef d = gated.driver();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUdeviceptr address = 0;

  Program() {
    gated.Start();
    EXPECT_EQ(d.StreamCreate(&stream, 0), CUDA_SUCCESS);
  }
  CUgraphNodeParams OnDevice() {
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    parameters.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.alloc.bytesize = kBytes;
    return parameters;
  }
  void Capture(bool frees) {
    ASSERT_EQ(d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    ASSERT_EQ(d.MemAllocAsync(&address, kBytes, stream), CUDA_SUCCESS);
    ASSERT_EQ(d.MemsetD8Async(address, 1, kBytes, stream), CUDA_SUCCESS);
    if (frees) {
      ASSERT_EQ(d.MemFreeAsync(address, stream), CUDA_SUCCESS);
    }
    ASSERT_EQ(d.StreamEndCapture(stream, &graph), CUDA_SUCCESS);
  }
  void AddGeneric(CUgraphNode* node, CUgraphNode* after, CUgraphNodeParams* parameters) {
#if CUDA_VERSION >= 13000
    ASSERT_EQ(d.GraphAddNode(node, graph, after, nullptr, after == nullptr ? 0 : 1, parameters), CUDA_SUCCESS);
#else
    ASSERT_EQ(d.GraphAddNode(node, graph, after, after == nullptr ? 0 : 1, parameters), CUDA_SUCCESS);
#endif
  }
  void AddNodes(bool generic, bool frees) {
    CUgraphNode node = nullptr;
    CUgraphNode last = nullptr;
    CUgraphNodeParams parameters = OnDevice();
    ASSERT_EQ(d.GraphCreate(&graph, 0), CUDA_SUCCESS);
    if (generic) {
      AddGeneric(&node, nullptr, &parameters);
    } else {
      CUDA_MEM_ALLOC_NODE_PARAMS memory = {};
      memory.poolProps = parameters.alloc.poolProps;
      memory.bytesize = kBytes;
      ASSERT_EQ(d.GraphAddMemAllocNode(&node, graph, nullptr, 0, &memory), CUDA_SUCCESS);
      parameters.alloc.dptr = memory.dptr;
    }
    address = parameters.alloc.dptr;
    if (frees && generic) {
      CUgraphNodeParams release = {};
      release.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
      release.free.dptr = address;
      AddGeneric(&last, &node, &release);
    } else if (frees) {
      ASSERT_EQ(d.GraphAddMemFreeNode(&last, graph, &node, 1, address), CUDA_SUCCESS);
    }
  }
  void Make(By how, bool frees, unsigned long long flags = 0) {
    if (how == By::Capture) {
      Capture(frees);
    } else {
      AddNodes(how == By::GenericNode, frees);
    }
    ASSERT_EQ(d.GraphInstantiateWithFlags(&executable, graph, flags), CUDA_SUCCESS);
  }
  CUresult Launch() {
    const CUresult result = d.GraphLaunch(executable, stream);
    EXPECT_EQ(d.StreamSynchronize(stream), CUDA_SUCCESS);
    return result;
  }
  // The end of graph and executable ends no memory.
  void Drop() {
    EXPECT_EQ(d.GraphExecDestroy(executable), CUDA_SUCCESS);
    EXPECT_EQ(d.GraphDestroy(graph), CUDA_SUCCESS);
  }
  harness::Ledger Seen() { return harness::Fold(gated.Records()); }
  harness::Ledger End() {
    EXPECT_EQ(d.StreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(d.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    return Seen();
  }
};

CUAUDIT_CASE(Leak, GraphMemoryThatNobodyFrees) {
  for (const By how : kWays) {
    for (const bool frees : {false, true}) {
      Program p;
      p.Make(how, frees);
      ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
      p.Drop();
      const harness::Ledger ledger = p.End();
      EXPECT_THAT(Wrong(ledger), IsEmpty());
      if (frees) {
        EXPECT_THAT(Left(ledger), IsEmpty()) << static_cast<int>(how);
        continue;
      }
      EXPECT_THAT(Left(ledger), ElementsAre(kOne)) << static_cast<int>(how);
      for (const harness::Object& object : ledger.objects) {
        if (object.kind != driver::Kind::StreamOrderedMemory) continue;
        EXPECT_EQ(object.acquired.call, static_cast<std::uint16_t>(CallId::GraphLaunch));
        EXPECT_EQ(object.bytes, kBytes);
      }
    }
  }
}

CUAUDIT_CASE(Leak, GraphMemoryOfEachOfTenGraphs) {
  Program p;
  for (int i = 0; i < 10; ++i) {
    p.Make(By::Node, false);
    ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
    p.Drop();
  }
  std::size_t alive = 0;
  const harness::Ledger ledger = p.Seen();
  for (const harness::Object& object : ledger.objects) {
    alive += object.kind == driver::Kind::StreamOrderedMemory && object.state == harness::State::Live ? 1 : 0;
  }
  EXPECT_EQ(alive, 10U);
  Trace t;  // the rule as a trial shows it
  t.Call(CallId::GraphCreate).Out(0, 0x61);
  t.NodeContent(t.Call(CallId::GraphAddMemAllocNode).Out(0, 0x62).In(1, 0x61), faults::kMemoryNode, 0x10000, 0x1000);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x64).In(1, 0x61);
  t.Call(CallId::GraphLaunch).In(0, 0x64);
  t.Call(CallId::GraphExecDestroy).In(0, 0x64);
  t.Call(CallId::GraphDestroy).In(0, 0x61);
  EXPECT_THAT(Left(t.Fold()), ElementsAre(kOne));
}

CUAUDIT_CASE(DoubleRelease, GraphMemoryFreedTwice) {
  for (const By how : kWays) {
    Program p;
    p.Make(how, false);
    ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
    EXPECT_EQ(p.d.MemFree(p.address), CUDA_SUCCESS);
    EXPECT_NE(p.d.MemFree(p.address), CUDA_SUCCESS);
    p.Drop();
    EXPECT_THAT(Wrong(p.End()), ElementsAre("double_release stream_ordered_memory"));
  }
}

CUAUDIT_CASE(UseAfterRelease, GraphMemoryThatAnotherGraphFilledLater) {
  for (const bool alive : {false, true}) {
    Program p;
    p.Make(By::Node, false);
    ASSERT_EQ(p.Launch(), CUDA_SUCCESS);
    CUcontext context = nullptr;
    EXPECT_EQ(p.d.CtxGetCurrent(&context), CUDA_SUCCESS);
    CUgraph other = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec user = nullptr;
    ASSERT_EQ(p.d.GraphCreate(&other, 0), CUDA_SUCCESS);
    const CUDA_MEMSET_NODE_PARAMS fill = {p.address, 0, 1, 1, kBytes, 1};
    ASSERT_EQ(p.d.GraphAddMemsetNode(&node, other, nullptr, 0, &fill, context), CUDA_SUCCESS);
    ASSERT_EQ(p.d.GraphInstantiateWithFlags(&user, other, 0), CUDA_SUCCESS);
    const auto release = [&] { EXPECT_EQ(p.d.MemFreeAsync(p.address, p.stream), CUDA_SUCCESS); };
    if (!alive) release();
    (void)p.d.GraphLaunch(user, p.stream);
    if (alive) release();
    EXPECT_EQ(p.d.GraphExecDestroy(user), CUDA_SUCCESS);
    EXPECT_EQ(p.d.GraphDestroy(other), CUDA_SUCCESS);
    p.Drop();
    const harness::Ledger ledger = p.End();
    if (alive) {
      EXPECT_THAT(Wrong(ledger), IsEmpty());
    } else {
      EXPECT_THAT(Wrong(ledger), ::testing::Contains("use_after_release stream_ordered_memory"));
    }
  }
}

// Nodes that a stream capture made touch memory that was released: launched, whoever captured them and however their addresses were told.

// Captures what `make` queues, frees the memory, launches.
void ExpectUse(const std::function<void(const Capturing&, CUdeviceptr)>& make) {
  const Capturing p;
  const CUdeviceptr memory = p.Memory();
  p.Begin(p.stream);
  make(p, memory);
  CUgraphExec executable = p.Instantiate(p.End(p.stream));
  EXPECT_EQ(p.d.MemFree(memory), CUDA_SUCCESS);
  (void)p.d.GraphLaunch(executable, p.stream);
  EXPECT_THAT(Wrong(p.Fold()), ElementsAre("use_after_release device_memory"));
}

CUAUDIT_CASE(UseAfterRelease, ACapturedKernelOfEveryWayToLaunch) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) { p.Kernel(memory, p.stream); });
  ExpectUse([](const Capturing& p, CUdeviceptr memory) { p.KernelEx(memory, p.stream); });
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    void* arguments[] = {&memory};
    EXPECT_EQ(p.d.LaunchCooperativeKernel(p.function, 1, 1, 1, 1, 1, 1, 0, p.stream, arguments), CUDA_SUCCESS);
  });
}

CUAUDIT_CASE(UseAfterRelease, ACapturedCopyOfEveryShape) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    CUDA_MEMCPY3D_PEER copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory;
    copy.dstDevice = p.Memory();
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 16;
    copy.Height = copy.Depth = 1;
    EXPECT_EQ(p.d.CtxGetCurrent(&copy.srcContext), CUDA_SUCCESS);
    copy.dstContext = copy.srcContext;
    EXPECT_EQ(p.d.Memcpy3DPeerAsync(&copy, p.stream), CUDA_SUCCESS);
  });
  ExpectUse([](const Capturing& p, CUdeviceptr memory) { EXPECT_EQ(p.d.MemcpyDtoDAsync(p.Memory(), memory, 16, p.stream), CUDA_SUCCESS); });
}

CUAUDIT_CASE(UseAfterRelease, ACapturedBatchOfWrites) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    CUstreamBatchMemOpParams write = {};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = memory;
    EXPECT_EQ(p.d.StreamBatchMemOp(p.stream, 1, &write, 0), CUDA_SUCCESS);
  });
}

CUAUDIT_CASE(UseAfterRelease, AWorkerLaunchesIntoTheCaptureOfAnother) {
  ExpectUse([](const Capturing& p, CUdeviceptr memory) {
    CUcontext context = nullptr;
    EXPECT_EQ(p.d.CtxGetCurrent(&context), CUDA_SUCCESS);
    std::thread([&] {
      EXPECT_EQ(p.d.CtxSetCurrent(context), CUDA_SUCCESS);
      p.KernelEx(memory, p.stream);
    }).join();
  });
}

CUAUDIT_CASE(UseAfterRelease, AnArgumentThatACapturedNodeWasGivenLater) {
  for (const bool null_at_first : {false, true}) {
    const Capturing p;
    CUdeviceptr after = p.Memory();
    p.Begin(p.stream);
    p.Kernel(null_at_first ? 0 : p.Memory(), p.stream);
    CUgraph graph = p.End(p.stream);
    void* arguments[] = {&after};
    const CUDA_KERNEL_NODE_PARAMS node = p.With(arguments);
    EXPECT_EQ(p.d.GraphKernelNodeSetParams(p.OnlyNode(graph), &node), CUDA_SUCCESS);
    CUgraphExec executable = p.Instantiate(graph);
    EXPECT_EQ(p.d.MemFree(after), CUDA_SUCCESS);
    (void)p.d.GraphLaunch(executable, p.stream);
    EXPECT_THAT(Wrong(p.Fold()), ElementsAre("use_after_release device_memory")) << null_at_first;
  }
}

CUAUDIT_CASE(UseAfterRelease, ABatchOfWritesThatANodeWasGivenLater) {
  const Capturing p;
  const CUdeviceptr after = p.Memory();
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUstreamBatchMemOpParams write = {};
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = p.Batch(&write, p.Memory());
  EXPECT_EQ(p.d.GraphCreate(&graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(p.d.GraphAddBatchMemOpNode(&node, graph, nullptr, 0, &batch), CUDA_SUCCESS);
  CUgraphExec executable = p.Instantiate(graph);
  batch = p.Batch(&write, after);
  EXPECT_EQ(p.d.GraphExecBatchMemOpNodeSetParams(executable, node, &batch), CUDA_SUCCESS);
  EXPECT_EQ(p.d.MemFree(after), CUDA_SUCCESS);
  (void)p.d.GraphLaunch(executable, p.stream);
  EXPECT_THAT(Wrong(p.Fold()), ElementsAre("use_after_release device_memory"));
}

// What a stream capture that is over, or was never there, no longer takes over: memory acquired then is the program's own.

constexpr std::uint64_t kOrigin = 0x5;
constexpr std::uint64_t kFork = 0x99;
constexpr std::uint64_t kEvent = 0xe;
constexpr std::uint64_t kMemory = 0x7000;

void AllocAsync(Trace& t, std::uint64_t stream) { t.Call(CallId::MemAllocAsync).Out(0, kMemory).In(1, 64).In(2, stream); }

CUAUDIT_CASE(Leak, AForkedCaptureEndsWithTheStreamThatItBeganOn) {
  Trace t;
  t.CreateStream(kOrigin);
  t.CreateStream(kFork);
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  t.DestroyStream(kOrigin);
  t.CreateStream(kOrigin);  // its handle comes back, its capture does not
  AllocAsync(t, kFork);
  t.DestroyStream(kFork);
  t.DestroyStream(kOrigin);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AnEventRecordedAnewLeadsIntoNoCapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, 0x77);  // in a stream that is not captured
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

// An external recording is a node; the event leads nowhere.
CUAUDIT_CASE(Leak, AnEventRecordedByANodeLeadsIntoNoCapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecordWithFlags).In(0, kEvent).In(1, kOrigin).In(2, CU_EVENT_RECORD_EXTERNAL);
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AnEventRecordedOfAGreenContextLeadsIntoNoCapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::GreenCtxRecordEvent).In(0, 0x77).In(1, kEvent);  // whose streams are not captured
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AnEventWithTheHandleOfOneThatWasCaptured) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventCreate).Out(0, kEvent).In(1, 0);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::EventDestroy_v2).In(0, kEvent);
  t.Call(CallId::EventCreate).Out(0, kEvent).In(1, 0);
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  t.Call(CallId::EventDestroy_v2).In(0, kEvent);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

// The graph that would free it is never launched.
CUAUDIT_CASE(Leak, AFreeUnderCaptureFreesNothing) {
  Trace t;
  AllocAsync(t, kFork);
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::MemFreeAsync).In(0, kMemory).In(1, kOrigin);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AGraphThatWasCapturedIntoIsTheOneThatWasMade) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x61).Stack(7);
  t.Call(CallId::StreamBeginCaptureToGraph).In(0, kOrigin).In(1, 0x61);
  t.Call(CallId::StreamEndCapture).In(0, kOrigin).Out(1, 0x61).Stack(8);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("graph 1"));
  ASSERT_EQ(ledger.objects.size(), 1U);
  EXPECT_EQ(ledger.objects[0].acquired.stack, 7U);
}

}  // namespace
}  // namespace cuaudit::testing::graphs_test
