// SPDX-License-Identifier: MIT
// graphs.h: what graphs of one process carry: device addresses of their nodes, references of user objects, captures in progress.
//
//   Owns      the bookkeeping per graph and executable graph; borrows the account.
//   Threads   a value; no shared state.
//   Units     device addresses.
//   Errors    a launch that would touch released memory becomes use_after_release; too many references given back become
//             over_released_reference.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, graph management. Clones and executables share what they carry until one of them changes.
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
  Graphs(const Graphs& other, Account* account, const Contexts* contexts) : Graphs(other) {
    account_ = account;
    contexts_ = contexts;
  }
  Graphs& operator=(const Graphs&) = delete;

  void Begin(std::uint64_t graph);  // a new graph, known to be empty
  // The child graph that the call with this begin ticket moves into the node it adds.
  void NameMoved(std::uint64_t call, std::uint64_t child) { moved_[call] = child; }
  // The memory that the node allocates; `bytes` 0: that it frees.
  void NameMemory(std::uint64_t call, std::uint64_t address, std::uint64_t bytes) { named_memory_[call] = {address, bytes}; }
  // What a call has become on a stream under capture; node and graph 0 where nobody knows.
  struct CapturedCall {
    std::uint64_t node = 0;
    std::uint64_t stream = 0;
    std::uint64_t graph = 0;
  };
  void NameCaptured(std::uint64_t call, const CapturedCall& what) { captured_[call] = what; }
  void ForgetCaptured(std::uint64_t call) { captured_.erase(call); }
  // The one that it copies into the node.
  void NameCopied(std::uint64_t call, std::uint64_t child) { copied_[call] = child; }
  // The driver has told the handle of the graph that is in the node: what is added there is the parent's too.
  void NameChild(std::uint64_t node, std::uint64_t child);
  void AddNode(const faults::Record& record, const Addresses& addresses);
  // The program was told that it was not added.
  void DenyNode(const faults::Record& record);
  void SetNode(const faults::Record& record, const Addresses& addresses);
  void DestroyNode(std::uint64_t node, const Site& site);
  void Clone(std::uint64_t copy, std::uint64_t original);
  void Instantiate(std::uint64_t executable, std::uint64_t graph);
  void Update(std::uint64_t executable, std::uint64_t graph);
  void Launch(const faults::Record& record);
  // What a launch has allocated and did not free is the program's to free; what it freed is gone. Not of a launch that was captured.
  void Launched(const faults::Record& record);
  void DestroyGraph(std::uint64_t graph, const Site& site);
  void DestroyExecutable(std::uint64_t executable);

  void RetainUserObject(const faults::Record& record);
  void ReleaseUserObject(const faults::Record& record);

  void BeginCapture(const faults::Record& record);
  // `stream` is gone, or made anew: it is part of no capture, and a capture begun on it is over.
  void ForgetStream(std::uint64_t stream);
  // True when the graph is one that the capture was begun into, so that no new object is made.
  bool EndCapture(const faults::Record& record);
  void ForgetEvent(std::uint64_t event) { capture_of_event_.erase(event); }  // it is made anew
  // Events carry a capture from stream to stream.
  void FollowEvents(const faults::Record& record);
  // The capture that this call is recorded into instead of being executed, -1 for none.
  std::int64_t CaptureOf(const faults::Record& record);
  void Capture(std::int64_t capture, const faults::Record& record, const Addresses& addresses);
  // An allocation of stream-ordered memory, or the release of one (`bytes` 0), becomes a node.
  void CaptureMemory(std::int64_t capture, std::uint64_t address, std::uint64_t bytes);

  // One use_after_release per released allocation that an address lies in.
  void Check(const faults::Record& record, std::span<const std::uint64_t> addresses);

 private:
  Graphs(const Graphs&) = default;  // contents are shared until one of them changes

  // What a node allocates, or frees (bytes 0): one address as long as the graph lives.
  struct Memory {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  struct Content {
    std::map<std::uint64_t, Addresses> nodes;  // node 0: of captured ones that nobody could name
    std::map<std::uint64_t, std::uint64_t> user_objects;
    std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> of_child;  // which of them a child-graph node brought along
    std::map<std::uint64_t, std::vector<std::uint64_t>> inner;                 // of a whole: the nodes of the graph in a node
    std::map<std::uint64_t, std::vector<Memory>> memory;                       // by node, like `nodes`
  };
  struct Graph {
    std::shared_ptr<Content> content = std::make_shared<Content>();
    std::vector<std::int64_t> node_objects;
    std::map<std::uint64_t, std::uint64_t> children;  // by node: the graph in it, which ends with it
    std::uint64_t clean_at = ~std::uint64_t{0};       // AddressSpace::deaths when a launch last found nothing
  };
  struct CaptureState {
    std::uint64_t stream = 0;
    std::uint32_t tid = 0;
    std::uint64_t graph = 0;    // given by cuStreamBeginCaptureToGraph
    std::uint64_t context = 0;  // of a stream that nobody made, which has no handle that dies with it
    std::uint64_t deaths = 0;   // of that context, before
    std::uint64_t shown = 0;    // the graph that is made, where the driver has told it before the end
    Addresses addresses;        // of nodes that nobody could name
    std::vector<Memory> memory;
    bool active = true;
  };

  // With what the graphs have that lie in its nodes: moved there, or copies whose handles the driver has told.
  std::shared_ptr<Content> Whole(std::uint64_t graph) const;
  static void DropOwn(const Content& content, Addresses* addresses);
  static void PutChild(Content* content, std::uint64_t node, const Content& child);
  static void EraseNode(Content* content, std::uint64_t node);
  static Content& Change(Graph& graph);
  void Share(Graph& to, const std::shared_ptr<Content>& from);
  void Drop(Graph& graph);
  void Hold(const Content& content, bool hold);
  void CopyChild(Graph& graph, std::uint64_t node, const Content& child);
  bool Own(std::uint64_t graph, std::uint64_t node, std::uint64_t child);
  void Disown(std::uint64_t child);
  void Deactivate(std::int64_t capture);
  void RecordEvent(std::uint64_t event, std::int64_t capture);  // -1: outside
  std::uint64_t StreamKey(const faults::Record& record, std::uint64_t stream);

  bool IsOver(std::int64_t capture) const;
  std::int64_t CaptureOn(std::uint64_t stream) const;

  Account* account_;
  const Contexts* contexts_;
  std::unordered_map<std::uint64_t, Graph> graphs_;
  std::unordered_map<std::uint64_t, Graph> executables_;
  std::unordered_map<std::uint64_t, std::uint64_t> graph_of_node_;
  std::unordered_map<std::uint64_t, std::uint64_t> owner_;  // of a graph in a node: the graph of that
  std::unordered_map<std::uint64_t, std::uint64_t> moved_;  // by the begin ticket of the call
  std::unordered_map<std::uint64_t, std::uint64_t> copied_;
  std::unordered_map<std::uint64_t, Memory> named_memory_;
  std::unordered_map<std::uint64_t, CapturedCall> captured_;
  std::vector<CaptureState> captures_;
  std::unordered_map<std::uint64_t, std::int64_t> capture_of_stream_;
  std::unordered_map<std::uint64_t, std::int64_t> capture_of_event_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> standard_streams_;  // by thread (0: all) and context, numbered
  std::size_t active_captures_ = 0;
};

}  // namespace cuaudit::harness
