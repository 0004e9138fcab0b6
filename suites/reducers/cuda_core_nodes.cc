// SPDX-License-Identifier: MIT
// cuda_core_nodes.cc: the owners of a node's buffers: one node, asynchronous release, an update.
#include <algorithm>
#include <iterator>

#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

// A graph that lives on while its nodes come, change and go.
//
// Story   C5: the owner of a node's argument is held by the graph as a whole. The node is deleted, or given another argument, and the
//         owner stays pinned until the graph dies, which in a serving process is never. Repaired: a user object per version of a node,
//         given back with it.
// Source  https://github.com/NVIDIA/cuda-python/pull/2041 and its follow-ups; written anew from the facts. The graph is made beforehand.
namespace cuaudit::reducers::cuda_core_c5_node {
namespace {

struct Standing {
  Drawing drawing;
  CUgraphNode node = nullptr;  // over the drawing's own buffer
};
Standing& TheGraph() {
  static Standing standing;
  return standing;
}
CUresult MakeTheGraph(DriverRef driver) {
  Standing& standing = TheGraph();
  standing = Standing();
  const CUresult code = standing.drawing.Open(driver);
  return code == CUDA_SUCCESS ? standing.drawing.kernel.AddTo(driver, standing.drawing.graph, standing.drawing.buffer, &standing.node)
                              : code;
}

// Whether a node that could not be destroyed is there all the same is asked of the graph: a second try would go by a stale handle.
bool IsInTheGraph(DriverRef driver, CUgraphNode node) {
  CUgraphNode nodes[8] = {};
  std::size_t count = std::size(nodes);
  if (driver.GraphGetNodes(TheGraph().drawing.graph, nodes, &count) != CUDA_SUCCESS) return true;
  return std::find(nodes, nodes + count, node) != nodes + count;
}

// What a version of a node needs: a buffer, and the graph's hold on it.
struct Version {
  CUdeviceptr buffer = 0;
  CUuserObject object = nullptr;
  Drop* drop = nullptr;
  bool launched_clean = true;  // otherwise an executable may hold it too

  CUresult Make(DriverRef driver) {
    CUresult code = driver.MemAlloc(&buffer, kBufferBytes);
    if (code != CUDA_SUCCESS) {
      buffer = 0;
      return code;
    }
    drop = Drop::Next();
    code = Attach(driver, TheGraph().drawing.graph, drop, Holder::Graph, &object);
    if (code == CUDA_SUCCESS) return code;
    object = nullptr;
    (void)driver.MemFree(std::exchange(buffer, 0));
    return code;
  }
  // No node uses it any more.
  CUresult Release(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    if (object != nullptr) {
      code = driver.GraphReleaseUserObject(TheGraph().drawing.graph, std::exchange(object, nullptr), 1);
      if (code == CUDA_SUCCESS && launched_clean && !drop->Await()) return CUDA_ERROR_NOT_READY;
    }
    return buffer == 0 ? code : Earlier(code, driver.MemFree(std::exchange(buffer, 0)));
  }
  // The owner is the graph's; when that lets go of it, the buffer may be freed.
  CUresult Forget(DriverRef driver) {
    const bool dropped = drop != nullptr && drop->Seen();
    return dropped ? driver.MemFree(std::exchange(buffer, 0)) : CUDA_SUCCESS;
  }
};

CUresult LaunchTheGraph(DriverRef driver) {
  Drawing& drawing = TheGraph().drawing;
  CUresult code = drawing.Instantiate(driver);
  if (code != CUDA_SUCCESS) return code;
  code = drawing.Launch(driver);
  return Earlier(code, driver.GraphExecDestroy(std::exchange(drawing.executable, nullptr)));
}

template <bool repaired>
struct Deleted {
  Version version;
  CUgraphNode node = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = version.Make(driver);
    if (code != CUDA_SUCCESS) return code;
    code = TheGraph().drawing.kernel.AddTo(driver, TheGraph().drawing.graph, version.buffer, &node);
    if (code != CUDA_SUCCESS) (void)version.Release(driver);
    return code;
  }
  CUresult Work(DriverRef driver) {
    const CUresult code = LaunchTheGraph(driver);
    version.launched_clean = code == CUDA_SUCCESS;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    if (node != nullptr) {
      code = driver.GraphDestroyNode(node);
      if (code != CUDA_SUCCESS && IsInTheGraph(driver, node)) return code;
      node = nullptr;
    }
    return Earlier(code, repaired ? version.Release(driver) : version.Forget(driver));
  }
};

template <bool repaired>
struct Rewired {
  Version version;
  bool wired = false;

  CUresult Wire(DriverRef driver, CUdeviceptr buffer) {
    return TheGraph().drawing.kernel.With(
        buffer, [&](const CUDA_KERNEL_NODE_PARAMS& parameters) { return driver.GraphKernelNodeSetParams(TheGraph().node, &parameters); });
  }
  CUresult Init(DriverRef driver) {
    CUresult code = version.Make(driver);
    if (code != CUDA_SUCCESS) return code;
    code = Wire(driver, version.buffer);
    wired = code == CUDA_SUCCESS;
    if (!wired) (void)version.Release(driver);
    return code;
  }
  CUresult Work(DriverRef driver) {
    const CUresult code = LaunchTheGraph(driver);
    version.launched_clean = code == CUDA_SUCCESS;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if (wired) {
      const CUresult code = Wire(driver, TheGraph().drawing.buffer);
      if (code != CUDA_SUCCESS) return code;
      wired = false;
    }
    return repaired ? version.Release(driver) : version.Forget(driver);
  }
};

template <typename State>
Lifecycle InTheGraph(const char* name) {
  return Lifecycle::Of<State>(name).WithCurrentContext().Prepare(MakeTheGraph);
}

TEST(CudaCoreC5, TheOwnerOfADeletedNodeStaysPinned) {
  EXPECT_EQ(Lost(RunCycles(InTheGraph<Deleted<false>>("cuda_core_c5_deleted"), kFourCycles)), "device_memory 3");
}

TEST(CudaCoreC5, TheOwnerOfARewiredNodeStaysPinned) {
  EXPECT_EQ(Lost(RunCycles(InTheGraph<Rewired<false>>("cuda_core_c5_rewired"), kFourCycles)), "device_memory 3");
}

TEST(CudaCoreC5, RepairedIsSilent) {
  ExpectSilent(InTheGraph<Deleted<true>>("cuda_core_c5_deleted_repaired"));
  ExpectSilent(InTheGraph<Rewired<true>>("cuda_core_c5_rewired_repaired"));
}

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c5_node

// A graph and its executable are destroyed while a launch of it is under way.
//
// Story   C6: the driver lets go of the owner when the launch has finished, later than the destruction returns. Who looks at once sees
//         an owner that is still held: to take that for the end of it loses the buffer, to report it would be a false alarm. Repaired:
//         wait for the work, then for the owner, with a bound. No step here sleeps; a simulated driver has let go when the work is done.
// Source  https://github.com/NVIDIA/cuda-python/pull/2041, its tests poll; written anew from the facts.
namespace cuaudit::reducers::cuda_core_c6_asynchronous {
namespace {

template <bool repaired>
struct Asynchronous {
  Drawing drawing;
  Drop* gate = nullptr;  // what the launch waits for, so that it is under way for as long as it must be

  CUresult Init(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  static void CUDA_CB WaitForGate(void* gate) { (void)static_cast<Drop*>(gate)->Await(); }

  CUresult Work(DriverRef driver) {
    gate = Drop::Next();
    CUresult code = driver.LaunchHostFunc(drawing.stream, WaitForGate, gate);
    if (code == CUDA_SUCCESS) code = driver.GraphLaunch(drawing.executable, drawing.stream);
    drawing.under_way = code == CUDA_SUCCESS;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = drawing.DestroyGraphs(driver);
    if (!repaired && !drawing.drop->Seen()) drawing.buffer = 0;  // somebody else must be holding it
    if (gate != nullptr) Drop::Call(gate);
    if (code != CUDA_SUCCESS || !repaired) drawing.drop = nullptr;
    return Earlier(code, drawing.Close(driver));
  }
};

TEST(CudaCoreC6, WhoLooksAtOnceLosesTheBuffer) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Asynchronous<false>>("cuda_core_c6").WithCurrentContext(), kFourCycles)), "device_memory 3");
}

TEST(CudaCoreC6, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Asynchronous<true>>("cuda_core_c6_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c6_asynchronous

// An executable graph that lives on and is updated with new arguments.
//
// Story   C7: the owners of all arguments that an executable ever had are kept in a list beside it and go with it, which in a serving
//         process is never. Repaired: the graph it is updated from holds the owner; the update takes the references over and gives the
//         former ones back, once no launch uses them.
// Source  https://github.com/NVIDIA/cuda-python/pull/2041 and its follow-ups; CUDA programming guide, user objects. Written anew from
//         the facts. The executable is made beforehand, over a buffer of its own.
namespace cuaudit::reducers::cuda_core_c7_update {
namespace {

Drawing& TheDrawing() {
  static Drawing drawing;
  return drawing;
}
CUresult MakeTheExecutable(DriverRef driver) {
  Drawing& drawing = TheDrawing();
  drawing = Drawing();
  CUgraphNode node = nullptr;
  CUresult code = drawing.Open(driver);
  if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
  return code == CUDA_SUCCESS ? drawing.Instantiate(driver) : code;
}

template <bool repaired>
struct Updated {
  CUdeviceptr buffer = 0;
  CUgraph graph = nullptr;  // what the executable is updated from
  Drop* drop = nullptr;
  bool updated = false;  // the executable may hold what `graph` does

  static CUresult Update(DriverRef driver, CUgraph from) {
    CUgraphExecUpdateResultInfo info = {};
    return driver.GraphExecUpdate(TheDrawing().executable, from, &info);
  }
  // The caller tears down what a failed Init has left, and tries again: as long as the executable cannot be updated, the buffer is in use.
  CUresult Init(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUuserObject object = nullptr;
    CUresult code = driver.MemAlloc(&buffer, kBufferBytes);
    if (code == CUDA_SUCCESS) code = driver.GraphCreate(&graph, 0);
    if (code == CUDA_SUCCESS) code = TheDrawing().kernel.AddTo(driver, graph, buffer, &node);
    if (code == CUDA_SUCCESS && repaired) {
      Drop* const wanted = Drop::Next();
      code = Attach(driver, graph, wanted, Holder::Graph, &object);
      if (code == CUDA_SUCCESS) drop = wanted;
    }
    if (code != CUDA_SUCCESS) return code;
    code = Update(driver, graph);
    // An update that failed may have been done: who waits for the owner to go must have taken it back.
    updated = repaired || code == CUDA_SUCCESS;
    return code;
  }
  CUresult Work(DriverRef driver) { return driver.GraphLaunch(TheDrawing().executable, TheDrawing().stream); }

  // Back to the arguments of before, while the launch may be under way: the owner is held until it is done. An executable that could not be
  // updated still uses the buffer, so all is kept for another try.
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    if (updated) code = Update(driver, TheDrawing().graph);
    if (code != CUDA_SUCCESS) return code;
    if (std::exchange(updated, false) && !repaired) buffer = 0;  // in the executable's list
    code = driver.StreamSynchronize(TheDrawing().stream);
    if (code != CUDA_SUCCESS) return code;
    if (graph != nullptr) code = driver.GraphDestroy(std::exchange(graph, nullptr));
    Drop* const expected = std::exchange(drop, nullptr);
    if (expected != nullptr && code == CUDA_SUCCESS && !expected->Await()) return CUDA_ERROR_NOT_READY;
    return buffer == 0 ? code : Earlier(code, driver.MemFree(std::exchange(buffer, 0)));
  }
};

template <bool repaired>
Lifecycle InTheExecutable(const char* name) {
  return Lifecycle::Of<Updated<repaired>>(name).WithCurrentContext().Prepare(MakeTheExecutable).TeardownAfterFailedInit();
}

TEST(CudaCoreC7, TheOwnersOfFormerArgumentsStay) {
  EXPECT_EQ(Lost(RunCycles(InTheExecutable<false>("cuda_core_c7"), kFourCycles)), "device_memory 3");
}

TEST(CudaCoreC7, RepairedIsSilent) { ExpectSilent(InTheExecutable<true>("cuda_core_c7_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c7_update
