// SPDX-License-Identifier: MIT
// Graphs as such, their user objects and their memory nodes; DOT output.
#define __CUDA_API_VERSION_INTERNAL
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/graph.h"
#include "faults/sim/graph/memory_node.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/memory/pool.h"

namespace cuaudit::sim {
namespace {

template <typename F>
CUresult List(CUgraphNode* out, std::size_t* count, const Vector<Node*>& nodes, F wanted) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::size_t found = 0;
  for (const Node* const node : nodes) {
    if (!wanted(node)) continue;
    if (out != nullptr && found < *count) out[found] = ToHandle<CUgraphNode>(node);
    ++found;
  }
  if (out != nullptr) {
    for (std::size_t i = found; i < *count; ++i) out[i] = nullptr;
    if (found > *count) found = *count;
  }
  *count = found;
  return CUDA_SUCCESS;
}

// A graph that a program may change: not one of a node of another graph's clone, not one being captured into.
CUresult FindGraph(World& world, CUgraph handle, Graph** graph) {
  *graph = world.Find<Graph>(handle);
  return *graph == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

CUresult api::GraphCreate(Call& call, CUgraph* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Graph* const graph = MakeGraph(call.world, true);
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUgraph>(graph);
  return CUDA_SUCCESS;
}

CUresult api::GraphDestroy(Call& call, CUgraph handle) {
  Graph* const graph = call.world.Find<Graph>(handle);
  if (graph == nullptr || graph->parent != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (graph->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  for (const Holding& holding : graph->holdings) {
    call.undefined = call.undefined || call.world.handles.NoteOf(holding.object) == HandleTable::kLostNote;
  }
  DestroyGraph(call.world, graph);
  return CUDA_SUCCESS;
}

CUresult api::GraphClone(Call& call, CUgraph* out, CUgraph original) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Graph* graph = nullptr;
  const CUresult result = FindGraph(call.world, original, &graph);
  if (result != CUDA_SUCCESS) return result;
  if (OwnsMemory(graph) || HasConditional(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  const Graph* const clone = CloneGraph(call.world, graph, true);
  if (clone == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUgraph>(clone);
  return CUDA_SUCCESS;
}

CUresult api::GraphNodeFindInClone(Call& call, CUgraphNode* out, CUgraphNode original, CUgraph handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Node* const wanted = call.world.Find<Node>(original);
  const Graph* const clone = call.world.Find<Graph>(handle);
  if (wanted == nullptr || clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const Node* const node : clone->nodes) {
    if (node->origin_handle != wanted->handle) continue;
    *out = ToHandle<CUgraphNode>(node);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult api::GraphGetNodes(Call& call, CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  const Graph* const graph = call.world.Find<Graph>(handle);
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : List(nodes, count, graph->nodes, [](const Node*) { return true; });
}

CUresult api::GraphGetRootNodes(Call& call, CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  const Graph* const graph = call.world.Find<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return List(nodes, count, graph->nodes, [](const Node* node) { return node->dependencies.empty(); });
}

CUresult api::GraphDestroyNode(Call& call, CUgraphNode handle) {
  Node* const node = call.Follow<Node>(handle);
  if (node == nullptr || node->graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  if (OwnsMemory(node->graph) || node->updatable) return CUDA_ERROR_NOT_SUPPORTED;
  DestroyNode(call.world, node);
  return CUDA_SUCCESS;
}

CUresult api::GraphNodeGetType(Call& call, CUgraphNode handle, CUgraphNodeType* type) {
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Node* const node = call.Read<Node>(handle);
  if (node == nullptr) {  // a device still tells the type of one that is gone; the ledger reports it
    const unsigned note = call.world.handles.NoteOf(reinterpret_cast<std::uintptr_t>(handle));
    if (note == 0 || note >= HandleTable::kPoolNote) return CUDA_ERROR_INVALID_VALUE;
    *type = static_cast<CUgraphNodeType>(note - 1);
    return CUDA_SUCCESS;
  }
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult api::UserObjectCreate(Call& call, CUuserObject* out, void* argument, CUhostFn destroy, unsigned int references,
                               unsigned int flags) {
  constexpr unsigned kMost = 0x7fffffffU;
  if (call.thread->inside != Inside::Nothing) return CUDA_ERROR_NOT_PERMITTED;  // what needs no cuInit is not asked on the way in
  if (out == nullptr || destroy == nullptr || references == 0 || references > kMost) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
  UserObject* const object = call.world.Make<UserObject>(nullptr);
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->destroy = destroy;
  object->argument = argument;
  object->references = references;
  object->client_references = references;
  *out = ToHandle<CUuserObject>(object);
  return CUDA_SUCCESS;
}

CUresult api::UserObjectRetain(Call& call, CUuserObject handle, unsigned int count) {
  UserObject* const object = call.world.Find<UserObject>(handle);
  if (object == nullptr || count == 0 || count > 0x7fffffffU) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  object->client_references += count;
  return CUDA_SUCCESS;
}

// Counts are not compared, as on a device: whoever gives back more than there is ends the object, and the ledger tells of it.
CUresult api::UserObjectRelease(Call& call, CUuserObject handle, unsigned int count) {
  UserObject* const object = call.world.Find<UserObject>(handle);
  if (count == 0 || (object == nullptr && !call.world.IsStale(handle))) return CUDA_ERROR_INVALID_VALUE;
  if (object == nullptr) return CUDA_SUCCESS;
  object->client_references -= count < object->client_references ? count : object->client_references;
  const bool taken = object->taken;
  ReleaseReferences(call.world, object, count);
  if (taken && call.world.IsStale(handle)) call.world.handles.LeaveNote(reinterpret_cast<std::uintptr_t>(handle), HandleTable::kLostNote);
  return CUDA_SUCCESS;
}

CUresult api::GraphRetainUserObject(Call& call, CUgraph handle, CUuserObject object_handle, unsigned int count, unsigned int flags) {
  Graph* const graph = call.world.Find<Graph>(handle);
  UserObject* const object = call.world.Find<UserObject>(object_handle);
  if (graph == nullptr || object == nullptr || count == 0 || count > 0x7fffffffU) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool move = (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0;
  if (move && count > object->client_references) return CUDA_ERROR_INVALID_VALUE;
  if (!Hold(call.world, &graph->holdings, object, count)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (move) {
    object->client_references -= count;
    object->references -= count;
  }
  return CUDA_SUCCESS;
}

// No more than the graph holds is taken.
CUresult api::GraphReleaseUserObject(Call& call, CUgraph handle, CUuserObject object_handle, unsigned int count) {
  Graph* const graph = call.world.Find<Graph>(handle);
  UserObject* const object = call.world.Find<UserObject>(object_handle);
  if (graph == nullptr || object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  bool holds = false;
  for (std::size_t i = 0; i < graph->holdings.size() && !holds; ++i) {
    Holding& holding = graph->holdings[i];
    if (holding.object != object->handle) continue;
    holds = true;
    if (count > holding.count) count = static_cast<unsigned>(holding.count);
    holding.count -= count;
    if (holding.count == 0) graph->holdings.Erase(i);
    ReleaseReferences(call.world, object, count);
  }
  // Of references that only other graphs hold, the genuine driver takes one all the same.
  object->taken = object->taken || (!holds && count > object->client_references);
  return CUDA_SUCCESS;
}

CUresult api::GraphConditionalHandleCreate(Call& call, CUgraphConditionalHandle* out, CUgraph handle, CUcontext context, unsigned int value,
                                           unsigned int flags) {
  World& world = call.world;
  Graph* const graph = world.Find<Graph>(handle);
  if (out == nullptr || graph == nullptr || (flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* const owner = world.Find<Context>(context);
  if (owner == nullptr) return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
  Conditional* const conditional = world.Make<Conditional>(nullptr, false);
  if (conditional == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!graph->conditionals.Push(world.arena, conditional)) {
    world.Destroy(conditional);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  conditional->graph = graph;
  conditional->context = owner;
  conditional->value = value;
  conditional->flags = flags;
  *out = conditional->handle;
  return CUDA_SUCCESS;
}

namespace {

bool IsDevice(const World& world, CUdevice device) { return device >= 0 && device < world.device_count; }

}  // namespace

CUresult api::GraphAddMemAllocNode(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count,
                                   CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  if (out == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Dependencies earlier(call.world);
  CUresult result = earlier.Resolve(handle, dependencies, count);
  Node* node = nullptr;
  if (result == CUDA_SUCCESS && earlier.graph()->IsChild()) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) {
    result = AddAllocNode(call.world, earlier.graph(), earlier.nodes().data(), count, parameters, &node);
  }
  if (result == CUDA_SUCCESS) *out = ToHandle<CUgraphNode>(node);
  return result;
}

CUresult api::GraphAddMemFreeNode(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, std::size_t count,
                                  CUdeviceptr address) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Dependencies earlier(call.world);
  CUresult result = earlier.Resolve(handle, dependencies, count);
  Node* node = nullptr;
  if (result == CUDA_SUCCESS && earlier.graph()->IsChild()) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) result = AddFreeNode(call.world, earlier.graph(), earlier.nodes().data(), count, address, &node);
  if (result == CUDA_SUCCESS) *out = ToHandle<CUgraphNode>(node);
  return result;
}

CUresult api::GraphMemAllocNodeGetParams(Call& call, CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &Work::alloc, out);
}

CUresult api::GraphMemFreeNodeGetParams(Call& call, CUgraphNode handle, CUdeviceptr* out) {
  return ReadNode(call, handle, CU_GRAPH_NODE_TYPE_MEM_FREE, &Work::address, out);
}

CUresult api::DeviceGraphMemTrim(Call& call, CUdevice device) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  TrimGraphMemory(call.world, device);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetGraphMemAttribute(Call& call, CUdevice device, CUgraphMem_attribute attribute, void* value) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  const DeviceState& state = call.world.devices[device];
  const std::uint64_t numbers[] = {state.graph_used, state.graph_used_high, state.graph_reserved, state.graph_reserved_high};
  const std::size_t which = static_cast<std::size_t>(attribute);
  if (value == nullptr || which > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(value, &numbers[which], sizeof(numbers[which]));
  return CUDA_SUCCESS;
}

CUresult api::DeviceSetGraphMemAttribute(Call& call, CUdevice device, CUgraphMem_attribute attribute, void* value) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DeviceState& state = call.world.devices[device];
  std::uint64_t number = 0;
  std::memcpy(&number, value, sizeof(number));
  if (number != 0) return CUDA_ERROR_INVALID_VALUE;  // a high watermark can only be reset
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    state.graph_used_high = state.graph_used;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    state.graph_reserved_high = state.graph_reserved;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// A graph as a DOT file: its nodes by kind and their edges. The driver's own file says more; nobody can rely on its text.

namespace {

constexpr const char* kKinds[] = {"KERNEL",       "MEMCPY",       "MEMSET",           "HOST",           "GRAPH",     "EMPTY",
                                  "EVENT_WAIT",   "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE",
                                  "BATCH_MEM_OP", "CONDITIONAL"};

const char* KindOf(CUgraphNodeType type) {
  const std::size_t index = static_cast<std::size_t>(type);
  return index < sizeof(kKinds) / sizeof(kKinds[0]) ? kKinds[index] : "?";
}

class File {
 public:
  explicit File(const char* path) : file_(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  ~File() {
    if (file_ >= 0) close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool good() const { return file_ >= 0 && !failed_; }
  void Write(const char* line, int length) {
    if (length > 0 && write(file_, line, static_cast<std::size_t>(length)) != length) failed_ = true;
  }

 private:
  int file_;
  bool failed_ = false;
};

std::size_t IndexOf(const Graph* graph, const Node* wanted) {
  std::size_t index = 0;
  while (index < graph->nodes.size() && graph->nodes[index] != wanted) ++index;
  return index;
}

}  // namespace

CUresult api::GraphDebugDotPrint(Call& call, CUgraph handle, const char* path, unsigned int) {
  const Graph* const graph = call.world.Find<Graph>(handle);
  if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  File file(path);
  if (!file.good()) return CUDA_ERROR_OPERATING_SYSTEM;
  char line[160];
  file.Write(line, snprintf(line, sizeof(line), "digraph dot {\n"));
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const Node* const node = graph->nodes[i];
    file.Write(line, snprintf(line, sizeof(line), "  n%zu [label=\"%zu %s\"];\n", i, i, KindOf(node->type)));
    for (const Node* const next : node->dependents) {
      file.Write(line, snprintf(line, sizeof(line), "  n%zu -> n%zu;\n", i, IndexOf(graph, next)));
    }
  }
  file.Write(line, snprintf(line, sizeof(line), "}\n"));
  return file.good() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace cuaudit::sim
