// SPDX-License-Identifier: MIT
// graphs.h: what the graphs of one process hold: device addresses of nodes, references to user objects, and captures in progress.
//
//   Owns      the bookkeeping of each graph and executable graph. Borrows the account.
//   Units     device addresses.
//   Errors    a launch that would touch released memory becomes use_after_release. Too many references given back become
//             over_released_reference.
//   Source    CUDA Driver API 13.0, graph management.
//
// Clones and executable graphs share their content with the original until one of them changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/ledger/account.h"
#include "harness/ledger/contexts.h"

namespace cuaudit::harness {

class Graphs {
 public:
  using Addresses = std::vector<std::uint64_t>;

  Graphs(Account* account, const Contexts* contexts) : account_(account), contexts_(contexts) {}
  // Of a copy: copies share the contents of graphs until one of them changes.
  void Follow(Account* account, const Contexts* contexts) {
    account_ = account;
    contexts_ = contexts;
  }

  void Begin(std::uint64_t graph);  // a new and empty graph
  // What the node of the call that comes next was given (faults::ArgumentFlag); null: what its arguments say.
  void NodeContent(const faults::Record* content) { content_ = content; }
  // The driver has answered the handle of the graph inside `node`. What is added to that graph belongs to the parent, too.
  void NameChild(std::uint64_t node, std::uint64_t child);
  void AddNode(const faults::Record& record, const Addresses& addresses);
  // The node exists, but the program was told that the call failed.
  void DenyNode(const faults::Record& record);
  void SetNode(const faults::Record& record, const Addresses& addresses);
  void DestroyNode(std::uint64_t node, const Site& site);
  void Clone(std::uint64_t copy, std::uint64_t original);
  void Instantiate(std::uint64_t executable, std::uint64_t graph);
  void Update(std::uint64_t executable, std::uint64_t graph);
  void Launch(const faults::Record& record);
  // Memory that a launch allocated and did not free becomes the program's to free; memory that it freed ends. A captured launch does
  // neither.
  void Launched(const faults::Record& record);
  void DestroyGraph(std::uint64_t graph, const Site& site);
  void DestroyExecutable(std::uint64_t executable);

  void RetainUserObject(const faults::Record& record);
  void ReleaseUserObject(const faults::Record& record);

  void BeginCapture(const faults::Record& record);
  // The stream has ended or its handle is reused. The stream leaves its capture, and a capture that began on the stream ends.
  void ForgetStream(std::uint64_t stream);
  // True when the capture was begun into an existing graph, so that no new graph is made.
  bool EndCapture(const faults::Record& record);
  void ForgetEvent(std::uint64_t event) { capture_of_event_.erase(event); }  // its handle is reused, or it is recorded outside of captures
  // Follows the events that carry a capture from one stream to another.
  void FollowEvents(const faults::Record& record);
  // The capture that records this call instead of executing it; -1 for none.
  std::int64_t CaptureOf(const faults::Record& record);
  void Capture(std::int64_t capture, const Addresses& addresses);
  // A captured allocation of stream-ordered memory, or a captured release (`bytes` 0), becomes a node.
  void CaptureMemory(std::int64_t capture, std::uint64_t address, std::uint64_t bytes);

  // Reports one use_after_release for each released allocation that an address lies in.
  void Check(const faults::Record& record, std::span<const std::uint64_t> addresses);

 private:
  // Memory that a node allocates, or frees (`bytes` 0). The address stays the same as long as the graph lives.
  struct Memory {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  struct Content {
    std::map<std::uint64_t, Addresses> nodes;  // node 0 stands for captured nodes of unknown handle
    std::map<std::uint64_t, std::uint64_t> user_objects;
    std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> of_child;  // the part of them that came with a child graph
    std::map<std::uint64_t, std::vector<std::uint64_t>> inner;                 // of a whole graph: nodes of the graph in a node
    std::map<std::uint64_t, std::vector<Memory>> memory;                       // by node, like `nodes`
  };
  struct Graph {
    std::shared_ptr<Content> content = std::make_shared<Content>();
    std::vector<std::int64_t> node_objects;
    std::map<std::uint64_t, std::uint64_t> children;  // by node: the graph inside the node, which ends with the node
    std::uint64_t clean_at = ~std::uint64_t{0};       // AddressSpace::deaths at the last launch without a finding
  };
  struct CaptureState {
    std::uint64_t stream = 0;
    std::uint32_t tid = 0;
    std::uint64_t graph = 0;    // the graph given to cuStreamBeginCaptureToGraph
    std::uint64_t context = 0;  // for a standard stream, which has no handle that ends with the context
    std::uint64_t deaths = 0;   // of that context when the capture began
    std::uint64_t shown = 0;    // the graph under construction, when the driver named it before the end
    Addresses addresses;        // of nodes of unknown handle
    std::vector<Memory> memory;
    bool active = true;
  };

  // The content that NodeContent has told, when it is of that sort; null otherwise.
  const faults::Record* Given(unsigned sort) const { return content_ != nullptr && (content_->flags & sort) != 0 ? content_ : nullptr; }
  // The content of the graph and of all graphs inside its nodes: those moved there, and copies whose handles the driver has answered.
  std::shared_ptr<Content> Whole(std::uint64_t graph) const;
  static void DropOwn(const Content& content, Addresses* addresses);
  static void PutChild(Content* content, std::uint64_t node, const Content& child);
  static void EraseNode(Content* content, std::uint64_t node);
  static Content& Change(Graph& graph);
  void Share(Graph& to, const std::shared_ptr<Content>& from);
  void Hold(const Content& content, bool hold);
  void CopyChild(Graph& graph, std::uint64_t node, const Content& child);
  bool Own(std::uint64_t graph, std::uint64_t node, std::uint64_t child);
  void Disown(std::uint64_t child);
  void Deactivate(std::int64_t capture);
  std::uint64_t StreamKey(const faults::Record& record, std::uint64_t stream);

  bool IsOver(std::int64_t capture) const;
  std::int64_t CaptureOn(std::uint64_t stream) const;

  Account* account_;
  const Contexts* contexts_;
  std::unordered_map<std::uint64_t, Graph> graphs_;
  std::unordered_map<std::uint64_t, Graph> executables_;
  std::unordered_map<std::uint64_t, std::uint64_t> graph_of_node_;
  std::unordered_map<std::uint64_t, std::uint64_t> owner_;  // by the graph in a node: the graph that the node belongs to
  const faults::Record* content_ = nullptr;
  std::vector<CaptureState> captures_;
  std::unordered_map<std::uint64_t, std::int64_t> capture_of_stream_;
  std::unordered_map<std::uint64_t, std::int64_t> capture_of_event_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> standard_streams_;  // by thread (0: all) and context; numbered
  std::size_t active_captures_ = 0;
};

}  // namespace cuaudit::harness
