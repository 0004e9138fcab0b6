// SPDX-License-Identifier: MIT
// cuda_core_c5_node.cc: a graph that lives on while its nodes come, change and go.
//
// Story   C5: the owner of a node's argument is held by the graph as a whole. The node is deleted, or given another argument, and the
//         owner stays pinned until the graph dies, which in a serving process is never. Repaired: a user object per version of a node,
//         given back with it.
// Source  https://github.com/NVIDIA/cuda-python/pull/2041 and its follow-ups; written anew from the facts. The graph is made beforehand.
#include <algorithm>
#include <iterator>

#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

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
    if (node != nullptr) {
      const CUresult code = driver.GraphDestroyNode(node);
      if (code != CUDA_SUCCESS && IsInTheGraph(driver, node)) return code;
      node = nullptr;
    }
    return repaired ? version.Release(driver) : version.Forget(driver);
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
