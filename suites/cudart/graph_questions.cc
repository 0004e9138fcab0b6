// SPDX-License-Identifier: MIT
#include <thread>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::graph_questions {
namespace {

cudaGraphNode_t NewEmpty(Asker& a, cudaGraph_t graph) {
  cudaGraphNode_t node = nullptr;
  a.Prepare(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  return node;
}

void Count(void* where) { ++*static_cast<int*>(where); }

constexpr Question kQuestions[] = {
    {"graph.create",
     [](Asker& a) {
       cudaGraph_t graph = nullptr;
       a(cudaGraphCreate(&graph, 0));
       a(cudaGraphDestroy(graph));
       a(cudaGraphCreate(&graph, 1));
       a(cudaGraphCreate(nullptr, 0));
       a(cudaGraphDestroy(nullptr));
     }},
    {"graph.nodes_and_edges",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       const cudaGraphNode_t one = NewEmpty(a, graph);
       cudaGraphNode_t two = nullptr;
       a(cudaGraphAddEmptyNode(&two, graph, &one, 1));
       std::size_t count = 0;
       a(cudaGraphGetNodes(graph, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaGraphGetRootNodes(graph, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaGraphNodeGetDependencies(two, nullptr, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaGraphNodeGetDependentNodes(one, nullptr, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaGraphGetNodes(graph, nullptr, nullptr));
     }},
    {"graph.dependencies",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       const cudaGraphNode_t one = NewEmpty(a, graph);
       const cudaGraphNode_t two = NewEmpty(a, graph);
       a(cudaGraphAddDependencies(graph, &one, &two, nullptr, 1));
       a(cudaGraphAddDependencies(graph, &one, &two, nullptr, 1));
       a(cudaGraphAddDependencies(graph, &two, &one, nullptr, 1));
       a(cudaGraphAddDependencies(graph, &one, &one, nullptr, 1));
       a(cudaGraphRemoveDependencies(graph, &one, &two, nullptr, 1));
       a(cudaGraphRemoveDependencies(graph, &one, &two, nullptr, 1));
       a(cudaGraphAddDependencies(graph, nullptr, nullptr, nullptr, 0));
     }},
    {"graph.cycle_is_found_when",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       const cudaGraphNode_t one = NewEmpty(a, graph);
       cudaGraphNode_t two = nullptr;
       a(cudaGraphAddEmptyNode(&two, graph, &one, 1));
       a(cudaGraphAddDependencies(graph, &two, &one, nullptr, 1));
       (void)Instantiated(a, graph);
     }},
    {"graph.add_bad",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddEmptyNode(nullptr, graph, nullptr, 0));
       a(cudaGraphAddEmptyNode(&node, nullptr, nullptr, 0));
       a(cudaGraphAddEmptyNode(&node, graph, nullptr, 1));
       const cudaGraphNode_t foreign = NewEmpty(a, NewGraph(a));
       a(cudaGraphAddEmptyNode(&node, graph, &foreign, 1));
     }},
    {"graph.destroy_node",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       const cudaGraphNode_t node = NewEmpty(a, graph);
       a(cudaGraphDestroyNode(node));
       std::size_t count = 7;
       a(cudaGraphGetNodes(graph, nullptr, &count));
       a.Value(static_cast<long long>(count));
       a(cudaGraphDestroyNode(nullptr));
     }},
    {"graph.clone",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       const cudaGraphNode_t node = NewEmpty(a, graph);
       cudaGraph_t clone = nullptr;
       a(cudaGraphClone(&clone, graph));
       cudaGraphNode_t twin = nullptr;
       a(cudaGraphNodeFindInClone(&twin, node, clone));
       a.Value(twin != nullptr && twin != node);
       a(cudaGraphNodeFindInClone(&twin, node, graph));
       a(cudaGraphClone(nullptr, graph));
       a(cudaGraphClone(&clone, nullptr));
     }},
    {"graph.instantiate_flags",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       NewEmpty(a, graph);
       for (const unsigned flags : {0U, 1U, 2U, 8U, 16U}) {
         cudaGraphExec_t exec = nullptr;
         unsigned long long seen = 77;
         if (a(cudaGraphInstantiate(&exec, graph, flags)) != cudaSuccess) continue;
         a(cudaGraphExecGetFlags(exec, &seen));
         a.Value(static_cast<long long>(seen));
         a(cudaGraphExecDestroy(exec));
       }
       a(cudaGraphInstantiate(nullptr, graph, 0));
     }},
    {"graph.capture_ended_into_nothing",
     [](Asker& a) {
       const cudaStream_t stream = NewStream(a);
       a.Prepare(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
       a(cudaStreamEndCapture(stream, nullptr));
       cudaStreamCaptureStatus status{};
       a(cudaStreamIsCapturing(stream, &status));
       a.Value(status);
     }},
    {"graph.captured_into_ended_into_nothing",
     [](Asker& a) {
       char* const block = NewBlock(a);
       const cudaStream_t stream = NewStream(a);
       const cudaGraph_t graph = NewGraph(a);
       a.Prepare(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
       a.Prepare(cudaMemsetAsync(block, 0, 16, stream));
       a(cudaStreamEndCapture(stream, nullptr));
       std::size_t nodes = 77;
       a.Prepare(cudaGraphGetNodes(graph, nullptr, &nodes));
       a.Value(static_cast<long long>(nodes));
       a(cudaStreamEndCapture(stream, nullptr));
       a(cudaGraphDestroy(graph));
     }},
    {"graph.instantiate_null",
     [](Asker& a) {
       cudaGraphExec_t exec = nullptr;
       a(cudaGraphInstantiate(&exec, nullptr, 0));
       a(cudaGraphInstantiateWithFlags(&exec, nullptr, 0));
       a(cudaGraphInstantiateWithParams(&exec, NewGraph(a), nullptr));
     }},
    {"graph.instantiate_with_params",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       NewEmpty(a, graph);
       cudaGraphInstantiateParams parameters{};
       parameters.flags = cudaGraphInstantiateFlagUpload;
       parameters.uploadStream = NewStream(a);
       cudaGraphExec_t exec = nullptr;
       a(cudaGraphInstantiateWithParams(&exec, graph, &parameters));
       a.Value(parameters.result_out);
     }},
    {"graph.launch",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       int calls = 0;
       const cudaHostNodeParams host{Count, &calls};
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddHostNode(&node, graph, nullptr, 0, &host));
       const cudaGraphExec_t exec = Instantiated(a, graph);
       const cudaStream_t stream = NewStream(a);
       a(cudaGraphUpload(exec, stream));
       a(cudaGraphLaunch(exec, stream));
       a(cudaGraphLaunch(exec, stream));
       a(cudaStreamSynchronize(stream));
       a.Value(calls);
       a(cudaGraphDestroy(graph));
       a(cudaGraphLaunch(exec, stream));
       a(cudaStreamSynchronize(stream));
       a.Value(calls);
       a(cudaGraphExecDestroy(exec));
     }},
    {"graph.launch_null",
     [](Asker& a) {
       a(cudaGraphLaunch(nullptr, nullptr));
       a(cudaGraphUpload(nullptr, nullptr));
       a(cudaGraphExecDestroy(nullptr));
     }},
    {"graph.launch_on_default_streams",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       NewEmpty(a, graph);
       cudaGraphExec_t exec = nullptr;
       a.Prepare(cudaGraphInstantiate(&exec, graph, 0));
       a(cudaGraphLaunch(exec, nullptr));
       a(cudaGraphLaunch(exec, cudaStreamLegacy));
       a(cudaGraphLaunch(exec, cudaStreamPerThread));
       a(cudaDeviceSynchronize());
     }},
    {"graph.update",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       NewEmpty(a, graph);
       cudaGraphExec_t exec = nullptr;
       a.Prepare(cudaGraphInstantiate(&exec, graph, 0));
       cudaGraphExecUpdateResultInfo info{};
       a(cudaGraphExecUpdate(exec, graph, &info));
       a.Value(info.result);
       const cudaGraph_t larger = NewGraph(a);
       NewEmpty(a, larger);
       NewEmpty(a, larger);
       a(cudaGraphExecUpdate(exec, larger, &info));
       a.Value(info.result);
       a(cudaGetLastError());
       a(cudaGraphExecUpdate(exec, graph, nullptr));
       a(cudaGraphExecUpdate(nullptr, graph, &info));
     }},
    {"graph.update_other_type",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       NewEmpty(a, graph);
       cudaGraphExec_t exec = nullptr;
       a.Prepare(cudaGraphInstantiate(&exec, graph, 0));
       const cudaGraph_t other = NewGraph(a);
       int calls = 0;
       const cudaHostNodeParams host{Count, &calls};
       cudaGraphNode_t node = nullptr;
       a.Prepare(cudaGraphAddHostNode(&node, other, nullptr, 0, &host));
       cudaGraphExecUpdateResultInfo info{};
       a(cudaGraphExecUpdate(exec, other, &info));
       a.Value(info.result);
       a.Value(info.errorNode == node);
     }},
    {"graph.child",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       const cudaGraph_t child = NewGraph(a);
       NewEmpty(a, child);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
       cudaGraph_t inside = nullptr;
       a(cudaGraphChildGraphNodeGetGraph(node, &inside));
       a.Value(inside != child);
       a(cudaGraphDestroy(child));
       std::size_t count = 0;
       a(cudaGraphGetNodes(inside, nullptr, &count));
       a.Value(static_cast<long long>(count));
     }},
    {"graph.child_destroyed_inside",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, NewGraph(a)));
       cudaGraph_t inside = nullptr;
       a(cudaGraphChildGraphNodeGetGraph(node, &inside));
       a(cudaGraphDestroy(inside));
     }},
    {"graph.child_of_nothing",
     [](Asker& a) {
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddChildGraphNode(&node, NewGraph(a), nullptr, 0, nullptr));
     }},
    {"graph.child_of_itself",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, graph));
     }},
    {"graph.user_object",
     [](Asker& a) {
       int freed = 0;
       cudaUserObject_t object = nullptr;
       a(cudaUserObjectCreate(&object, &freed, Count, 1, cudaUserObjectNoDestructorSync));
       const cudaGraph_t graph = NewGraph(a);
       a(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
       a(cudaGraphDestroy(graph));
       for (int i = 0; i < 100000 && __atomic_load_n(&freed, __ATOMIC_ACQUIRE) == 0; ++i) std::this_thread::yield();
       a.Value(__atomic_load_n(&freed, __ATOMIC_ACQUIRE));
     }},
    {"graph.user_object_counts",
     [](Asker& a) {
       int freed = 0;
       cudaUserObject_t object = nullptr;
       a(cudaUserObjectCreate(&object, &freed, Count, 2, cudaUserObjectNoDestructorSync));
       a(cudaUserObjectRetain(object, 1));
       a(cudaUserObjectRelease(object, 1));
       const cudaGraph_t graph = NewGraph(a);
       a(cudaGraphRetainUserObject(graph, object, 1, 0));
       a(cudaGraphReleaseUserObject(graph, object, 1));
       a(cudaUserObjectRelease(object, 1));
       a(cudaUserObjectRelease(object, 1));
     }},
    {"graph.user_object_bad",
     [](Asker& a) {
       cudaUserObject_t object = nullptr;
       int freed = 0;
       a(cudaUserObjectCreate(&object, &freed, Count, 1, 0));
       a(cudaUserObjectCreate(&object, &freed, Count, 0, cudaUserObjectNoDestructorSync));
       a(cudaUserObjectCreate(&object, &freed, nullptr, 1, cudaUserObjectNoDestructorSync));
       a(cudaUserObjectCreate(nullptr, &freed, Count, 1, cudaUserObjectNoDestructorSync));
       a(cudaUserObjectRetain(nullptr, 1));
       a(cudaUserObjectRelease(nullptr, 1));
       a(cudaGraphRetainUserObject(nullptr, nullptr, 1, 0));
     }},
    {"graph.exec_destroyed_twice",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphExec_t exec = nullptr;
       a.Prepare(cudaGraphInstantiate(&exec, graph, 0));
       a(cudaGraphExecDestroy(exec));
       a(cudaGraphExecDestroy(exec));
     }},
    {"graph.destroyed_twice",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       a(cudaGraphDestroy(graph));
       a(cudaGraphDestroy(graph));
     }},
    {"graph.dot",
     [](Asker& a) {
       a(cudaGraphDebugDotPrint(NewGraph(a), "/dev/null", 0));
       a(cudaGraphDebugDotPrint(nullptr, "/dev/null", 0));
       a(cudaGraphDebugDotPrint(NewGraph(a), nullptr, 0));
     }},
    {"graph.conditional",
     [](Asker& a) {
       const cudaGraph_t graph = NewGraph(a);
       cudaGraphConditionalHandle handle = 0;
       a(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
       cudaGraphNodeParams parameters{};
       parameters.type = cudaGraphNodeTypeConditional;
       parameters.conditional.handle = handle;
       parameters.conditional.type = cudaGraphCondTypeIf;
       parameters.conditional.size = 1;
       cudaGraphNode_t node = nullptr;
       a(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
       a.Value(parameters.conditional.phGraph_out != nullptr);
       cudaGraphNodeType type{};
       a(cudaGraphNodeGetType(node, &type));
       a.Value(type);
       a(cudaGraphConditionalHandleCreate(nullptr, graph, 0, 0));
       a(cudaGraphConditionalHandleCreate(&handle, nullptr, 0, 0));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::graph_questions

namespace cuaudit::cudart {
std::span<const Question> GraphQuestions() { return graph_questions::kQuestions; }
}  // namespace cuaudit::cudart
