// SPDX-License-Identifier: MIT
// graph_dot.cc: a graph as a DOT file: its nodes by kind and their edges. The driver's own file says more; nobody can rely on its text.
#define __CUDA_API_VERSION_INTERNAL
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/graph.h"

namespace cuaudit::sim {
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
