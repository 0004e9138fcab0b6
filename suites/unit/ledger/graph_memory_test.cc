// SPDX-License-Identifier: MIT
// Memory that graphs carry, as literal records: of child graphs, of captures whose free was refused, of many nodes.
#define __CUDA_API_VERSION_INTERNAL
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "suites/support/trace.h"

namespace cuaudit::testing::graph_memory_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kGraph = 0x61;
constexpr std::uint64_t kNode = 0x62;
constexpr std::uint64_t kExecutable = 0x64;
constexpr std::uint64_t kChild = 0x71;
constexpr std::uint64_t kInner = 0x72;
constexpr std::uint64_t kOther = 0x81;

void Begin(Trace& t, std::uint64_t graph) { t.Call(CallId::GraphCreate).Out(0, graph); }

void Allocates(Trace& t, std::uint64_t graph, std::uint64_t node, std::uint64_t address) {
  const Step added = t.Call(CallId::GraphAddMemAllocNode).Out(0, node).In(1, graph);
  t.NodeContent(added, faults::kMemoryNode, address, 0x1000);
}

// A child graph with one allocating node, moved into a node of its parent.
Trace Moved() {
  Trace t;
  Begin(t, kGraph);
  Begin(t, kChild);
  Allocates(t, kChild, kInner, 0x10000);
  t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, kNode).In(1, kGraph), faults::kMovedGraph, kChild, 0);
  return t;
}

void Launch(Trace& t) {
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, kGraph);
  t.Call(CallId::GraphLaunch).In(0, kExecutable);
}

// The stream-ordered memory that is alive, by address.
std::vector<std::uint64_t> Alive(const Trace& t) {
  std::vector<std::uint64_t> addresses;
  for (const harness::Object& object : t.Fold().objects) {
    if (object.kind == driver::Kind::StreamOrderedMemory && object.state == harness::State::Live) addresses.push_back(object.handle);
  }
  return addresses;
}

TEST(GraphMemory, OfALaunchOutlivesTheContextOfTheLaunch) {
  constexpr std::uint64_t kOwn = 0xd0;
  Trace t;
  t.Call(CallId::CtxCreate_v4).Out(0, kOwn);
  Begin(t, kGraph);
  Allocates(t, kGraph, kNode, 0x10000);
  Launch(t);
  EXPECT_THAT(Alive(t), ElementsAre(0x10000));
  t.Call(CallId::CtxDestroy_v2).In(0, kOwn).Context(kOwn);
  EXPECT_THAT(Alive(t), ElementsAre(0x10000));
}

// The graph allocates 0x1000 bytes itself. The memory behind them is the program's, which freed it.
TEST(GraphMemory, OfAGraphEndsWithItsLastByte) {
  for (const std::uint64_t touched : {std::uint64_t{0x10fff}, std::uint64_t{0x11000}}) {
    Trace t;
    t.Alloc(0x11000);
    Begin(t, kGraph);
    Allocates(t, kGraph, kNode, 0x10000);
    t.Arguments(t.Call(CallId::GraphAddMemsetNode).Out(0, kInner).In(1, kGraph), {touched});
    t.Free(0x11000);
    Launch(t);
    if (touched == 0x11000) {
      EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
    } else {
      EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
    }
  }
}

TEST(GraphMemory, OfAChildThatWasMovedIsMadeByTheParentsLaunch) {
  Trace t = Moved();
  Launch(t);
  EXPECT_THAT(Alive(t), ElementsAre(0x10000));
  t.Free(0x10000);
  EXPECT_THAT(Alive(t), IsEmpty());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GraphMemory, OfAMovedChildGoesWithItsNodeAndWithTheNodeThatHoldsIt) {
  for (const std::uint64_t node : {kInner, kNode}) {
    Trace t = Moved();
    t.Call(CallId::GraphDestroyNode).In(0, node);
    Launch(t);
    EXPECT_THAT(Alive(t), IsEmpty()) << node;
  }
}

TEST(GraphMemory, AMovedChildsNodesEndWithTheNodeThatHoldsThemAndWithItsGraph) {
  for (const bool whole : {false, true}) {
    Trace t = Moved();
    t.Call(CallId::GraphAddEmptyNode).Out(0, 0x73).In(1, kChild);  // the handle stays good
    t.Call(whole ? CallId::GraphDestroy : CallId::GraphDestroyNode).In(0, whole ? kGraph : kNode);
    for (const harness::Object& object : t.Fold().objects) {
      if (object.kind != driver::Kind::GraphNode) continue;
      EXPECT_EQ(object.state, harness::State::Released) << object.handle << whole;
    }
  }
}

// A node that touches memory is added to the graph in a node, moved there (its handle stays good) or copied (the driver tells the handle).
TEST(GraphMemory, FreedUnderANodeThatIsAddedToTheGraphInANodeIsUsedByTheParentsLaunch) {
  for (const bool moved : {false, true}) {
    Trace t;
    t.Alloc(0x20000);
    Begin(t, kGraph);
    Begin(t, kChild);
    if (moved) {
      t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, kNode).In(1, kGraph), faults::kMovedGraph, kChild, 0);
    } else {
      t.Call(CallId::GraphAddChildGraphNode).Out(0, kNode).In(1, kGraph).In(4, kChild);
      t.Call(CallId::GraphChildGraphNodeGetGraph).In(0, kNode).Out(1, kOther);
    }
    const Step added = t.Call(CallId::GraphAddMemsetNode).Out(0, 0x82).In(1, moved ? kChild : kOther);
    t.Arguments(added, {0x20000});
    t.Free(0x20000);
    Launch(t);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory")) << moved;
    t.Call(CallId::GraphDestroyNode).In(0, kNode);
    const harness::Ledger ledger = t.Fold();
    const auto node = std::find_if(ledger.objects.begin(), ledger.objects.end(), [](const auto& object) { return object.handle == 0x82; });
    ASSERT_NE(node, ledger.objects.end());
    EXPECT_EQ(node->state, harness::State::Released) << moved;
  }
}

TEST(GraphMemory, OfAGraphThatIsSaidToLieInItselfEndsTheFold) {
  Trace t;
  Begin(t, kGraph);
  Begin(t, kChild);
  t.Call(CallId::GraphAddEmptyNode).Out(0, kNode).In(1, kGraph);
  t.Call(CallId::GraphAddEmptyNode).Out(0, kInner).In(1, kChild);
  t.Call(CallId::GraphChildGraphNodeGetGraph).In(0, kNode).Out(1, kGraph);
  t.Call(CallId::GraphChildGraphNodeGetGraph).In(0, kNode).Out(1, kChild);
  t.Call(CallId::GraphChildGraphNodeGetGraph).In(0, kInner).Out(1, kGraph);
  Launch(t);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

// The node that held it is destroyed; the handle then is another graph's, of a capture, and nobody's.
TEST(GraphMemory, AHandleThatComesBackIsNoChildAnyMore) {
  Trace t;
  t.Alloc(0x20000);
  Begin(t, kGraph);
  Begin(t, kChild);
  t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, kNode).In(1, kGraph), faults::kMovedGraph, kChild, 0);
  t.Call(CallId::GraphDestroyNode).In(0, kNode);
  t.CreateStream(0x5);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
  t.Arguments(t.Call(CallId::LaunchKernel).In(8, 0x5), {0x20000});
  t.Call(CallId::StreamEndCapture).In(0, 0x5).Out(1, kChild);
  t.Free(0x20000);
  Launch(t);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty()) << "the parent is empty";
  t.Call(CallId::GraphDestroy).In(0, kGraph);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, kOther).In(1, kChild);
  t.Call(CallId::GraphLaunch).In(0, kOther);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

TEST(GraphMemory, ANodeThatWasDeniedHoldsTheGraphThatWasMoved) {
  Trace t;
  Begin(t, kGraph);
  Begin(t, kChild);
  t.Call(CallId::GraphAddEmptyNode).Out(0, kInner).In(1, kChild);
  Step add = t.Call(CallId::GraphAddNode_v2).Out(0, kNode).In(1, kGraph).After();
  t.NodeContent(add, faults::kMovedGraph, kChild, 0);
  t.Call(CallId::GraphDestroy).In(0, kGraph);
  for (const harness::Object& object : t.Fold().objects) {
    if (object.kind != driver::Kind::GraphNode) continue;
    EXPECT_EQ(object.state, harness::State::Released);
  }
}

// An executable's node holds a graph that holds a graph: both go when another is set there.
TEST(GraphMemory, OfANestedChildGoesWhenItsNodeIsSetToAnother) {
  Trace t;
  Begin(t, kGraph);
  Begin(t, kChild);
  Begin(t, 0x91);
  t.Alloc(0x20000);
  t.Arguments(t.Call(CallId::GraphAddMemsetNode).Out(0, 0x92).In(1, 0x91), {0x20000});
  t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, kInner).In(1, kChild), faults::kMovedGraph, 0x91, 0);
  t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, kNode).In(1, kGraph), faults::kMovedGraph, kChild, 0);
  Begin(t, kOther);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, kGraph);
  t.Free(0x20000);
  for (const std::uint64_t node : {kInner, kNode}) {
    Trace set = t;
    set.Call(CallId::GraphExecChildGraphNodeSetParams).In(0, kExecutable).In(1, node).In(2, kOther);
    set.Call(CallId::GraphLaunch).In(0, kExecutable);
    EXPECT_THAT(Wrong(set.Fold()), IsEmpty()) << node;
  }
  t.Call(CallId::GraphLaunch).In(0, kExecutable);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release device_memory"));
}

TEST(GraphMemory, AUserObjectOfACopyIsGivenBackThroughTheCopysHandle) {
  Trace t;
  Begin(t, kGraph);
  Begin(t, kChild);
  t.Call(CallId::UserObjectCreate).Out(0, 0x9).In(3, 1);
  t.Call(CallId::GraphRetainUserObject).In(0, kChild).In(1, 0x9).In(2, 1).In(3, CU_GRAPH_USER_OBJECT_MOVE);
  t.Call(CallId::GraphAddChildGraphNode).Out(0, kNode).In(1, kGraph).In(4, kChild);
  t.Call(CallId::GraphChildGraphNodeGetGraph).In(0, kNode).Out(1, kOther);
  t.Call(CallId::GraphReleaseUserObject).In(0, kOther).In(1, 0x9).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  t.Call(CallId::GraphReleaseUserObject).In(0, kGraph).In(1, 0x9).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("over_released_reference user_object")) << "the parent holds none";
}

// A driver accepts it, and what would own itself is left alone.
TEST(GraphMemory, OfAGraphThatIsMovedIntoWhatItHoldsEndsTheFold) {
  Trace t = Moved();
  t.NodeContent(t.Call(CallId::GraphAddNode_v2).Out(0, 0x74).In(1, kChild), faults::kMovedGraph, kGraph, 0);
  Launch(t);
  t.Call(CallId::GraphDestroy).In(0, kGraph);
  EXPECT_THAT(Alive(t), ElementsAre(0x10000));
}

TEST(GraphMemory, OfAnExecutablesChildIsThatOfTheGraphItWasSetTo) {
  for (const bool moved : {false, true}) {
    Trace t;
    if (moved) {
      t = Moved();
    } else {
      Begin(t, kGraph);
      Begin(t, kChild);
      Allocates(t, kChild, kInner, 0x10000);
      t.Call(CallId::GraphAddChildGraphNode).Out(0, kNode).In(1, kGraph).In(4, kChild);
    }
    Begin(t, kOther);
    Allocates(t, kOther, 0x82, 0x20000);
    t.Call(CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, kGraph);
    t.Call(CallId::GraphExecChildGraphNodeSetParams).In(0, kExecutable).In(1, kNode).In(2, kOther);
    t.Call(CallId::GraphLaunch).In(0, kExecutable);
    EXPECT_THAT(Alive(t), ElementsAre(0x20000)) << moved;
  }
}

TEST(GraphMemory, OfACaptureGoesOnWhereItsEndWasDeclinedForAnotherReason) {
  for (const CUresult result : {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED}) {
    Trace t;
    t.CreateStream(0x5);
    t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
    t.Call(CallId::StreamEndCapture).In(0, 0x5).Fails(result);
    t.Call(CallId::MemAllocAsync).Out(0, 0x10000).In(1, 0x1000).In(2, 0x5);
    EXPECT_EQ(Alive(t).empty(), result != CUDA_ERROR_STREAM_CAPTURE_UNJOINED) << result;
  }
}

TEST(GraphMemory, FromBeforeACaptureStaysWhereThePlanRefusedItsFree) {
  for (const bool refused : {false, true}) {
    Trace t;
    t.CreateStream(0x5);
    t.Call(CallId::MemAllocAsync).Out(0, 0x10000).In(1, 0x1000).In(2, 0x5);
    t.Call(CallId::StreamBeginCapture_v2).In(0, 0x5);
    Step free = t.Call(CallId::MemFreeAsync).In(0, 0x10000).In(1, 0x5);
    if (refused) free.Refused();
    t.Call(CallId::StreamEndCapture).In(0, 0x5).Out(1, kGraph);
    Launch(t);
    for (const harness::Object& object : t.Fold().objects) {
      if (object.kind != driver::Kind::StreamOrderedMemory) continue;
      EXPECT_EQ(object.state, refused ? harness::State::ReleaseRefused : harness::State::Released);
    }
    EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
  }
}

TEST(GraphMemory, OfManyNodesIsFollowedNodeByNode) {
  constexpr std::uint64_t kNodes = 4000;
  const auto address = [](std::uint64_t i) { return 0x100000 + i * 0x1000; };
  Trace t;
  Begin(t, kGraph);
  for (std::uint64_t i = 0; i < kNodes; ++i) {
    Allocates(t, kGraph, 0x10000 + i, address(i));
    const Step fill = t.Call(CallId::GraphAddMemsetNode).Out(0, 0x20000 + i).In(1, kGraph);
    t.Arguments(fill, {address(i)});
  }
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, kExecutable).In(1, kGraph);
  for (int launch = 0; launch < 3; ++launch) {
    t.Call(CallId::GraphLaunch).In(0, kExecutable);
    for (std::uint64_t i = 0; i < kNodes; ++i) t.Free(address(i));
  }
  for (std::uint64_t i = 0; i + 1 < kNodes; ++i) {
    t.Call(CallId::GraphDestroyNode).In(0, 0x10000 + i);
    t.Call(CallId::GraphDestroyNode).In(0, 0x20000 + i);
  }
  Launch(t);
  EXPECT_THAT(Alive(t), ElementsAre(address(kNodes - 1)));
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::graph_memory_test
