// SPDX-License-Identifier: MIT
#include "harness/ledger/graphs.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::Family;
using driver::Kind;

// Calls whose parameters name every address that the node touches. If they name none, the node touches none.
bool NamesAddresses(BaseId base) {
  constexpr BaseId kCalls[] = {BaseId::GraphKernelNodeSetParams,     BaseId::GraphMemcpyNodeSetParams,
                               BaseId::GraphMemsetNodeSetParams,     BaseId::GraphNodeSetParams,
                               BaseId::GraphExecKernelNodeSetParams, BaseId::GraphExecMemcpyNodeSetParams,
                               BaseId::GraphExecMemsetNodeSetParams, BaseId::GraphExecNodeSetParams,
                               BaseId::GraphBatchMemOpNodeSetParams, BaseId::GraphExecBatchMemOpNodeSetParams};
  return std::find(std::begin(kCalls), std::end(kCalls), base) != std::end(kCalls);
}

}  // namespace

Graphs::Content& Graphs::Change(Graph& graph) {
  if (graph.content.use_count() > 1) graph.content = std::make_shared<Content>(*graph.content);
  graph.clean_at = ~std::uint64_t{0};
  return *graph.content;
}

void Graphs::Hold(const Content& content, bool hold) {
  for (const auto& [handle, count] : content.user_objects) {
    std::uint64_t& held = account_->Entry(Family::UserObject, handle).graph_references;
    held = hold ? held + count : held - std::min(held, count);
  }
}

void Graphs::Share(Graph& to, const std::shared_ptr<Content>& from) {
  Hold(*from, true);
  Hold(*to.content, false);
  to.content = from;
  to.clean_at = ~std::uint64_t{0};
}

std::shared_ptr<Graphs::Content> Graphs::Whole(std::uint64_t graph) const {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return std::make_shared<Content>();
  if (found->second.children.empty()) return found->second.content;
  const auto whole = std::make_shared<Content>(*found->second.content);
  std::vector<std::pair<std::uint64_t, const Graph*>> left;
  const auto enter = [&](const Graph& at) {
    for (const auto& [node, child] : at.children) {
      if (const auto within = graphs_.find(child); within != graphs_.end()) left.emplace_back(node, &within->second);
    }
  };
  enter(found->second);
  while (!left.empty()) {
    const auto [node, at] = left.back();
    left.pop_back();
    std::vector<std::uint64_t>& names = whole->inner[node];
    const auto name = [&names, holder = node](std::uint64_t one) { return names.emplace_back(one == 0 ? holder : one); };
    for (const auto& [one, list] : at->content->nodes) whole->nodes[name(one)] = list;
    for (const auto& [one, list] : at->content->memory) whole->memory[name(one)] = list;
    for (const auto& [user, count] : at->content->user_objects) whole->user_objects[user] += count;
    for (const auto& [one, child] : at->children) names.push_back(one);
    whole->inner.insert(at->content->inner.begin(), at->content->inner.end());  // set when the graph is a clone
    enter(*at);
  }
  return whole;
}

// A new graph under a reused handle: the old graph with this handle has ended.
void Graphs::Begin(std::uint64_t graph) {
  Disown(graph);
  const auto found = graphs_.find(graph);
  if (found != graphs_.end()) {
    for (const auto& [node, child] : found->second.children) owner_.erase(child);
    Hold(*found->second.content, false);
    graphs_.erase(found);
  }
  graphs_[graph];
}

void Graphs::PutChild(Content* content, std::uint64_t node, const Content& child) {
  Addresses& all = content->nodes[node];
  for (const auto& [inner, list] : child.nodes) all.insert(all.end(), list.begin(), list.end());
  for (const auto& [inner, list] : child.memory) {
    std::vector<Memory>& memory = content->memory[node];
    memory.insert(memory.end(), list.begin(), list.end());
  }
}

// The child graph is copied into the node, together with its references to user objects.
void Graphs::CopyChild(Graph& graph, std::uint64_t node, const Content& child) {
  Hold(child, true);
  Content& content = Change(graph);
  PutChild(&content, node, child);
  if (!child.user_objects.empty()) content.of_child[node] = child.user_objects;
  for (const auto& [user, count] : child.user_objects) content.user_objects[user] += count;
}

// A child graph that is moved into a node keeps its handle, and its nodes keep theirs. Later changes of the child are changes of the
// parent. Answers false when `child` is `graph` or an owner of it; a driver accepts such a move.
bool Graphs::Own(std::uint64_t graph, std::uint64_t node, std::uint64_t child) {
  for (std::uint64_t above = graph; above != child;) {
    const auto owner = owner_.find(above);
    if (owner == owner_.end()) {
      Disown(child);
      owner_[child] = graph;
      graphs_[graph].children[node] = child;
      return true;
    }
    above = owner->second;
  }
  return false;
}

void Graphs::Disown(std::uint64_t child) {
  const auto owner = owner_.find(child);
  if (owner == owner_.end()) return;
  std::erase_if(graphs_[owner->second].children, [=](const auto& one) { return one.second == child; });
  owner_.erase(owner);
}

void Graphs::NameChild(std::uint64_t node, std::uint64_t child) {
  const auto found = graph_of_node_.find(node);
  if (found == graph_of_node_.end() || owner_.contains(child)) return;
  const std::uint64_t graph = found->second;
  if (!Own(graph, node, child)) return;
  Content& content = Change(graphs_[graph]);
  Content& own = Change(graphs_[child]);
  if (const auto all = content.nodes.find(node); all != content.nodes.end()) own.nodes[0] = std::exchange(all->second, {});
  if (auto all = content.memory.extract(node); !all.empty()) own.memory[0] = std::move(all.mapped());
  const auto brought = content.of_child.extract(node);
  if (brought.empty()) return;
  for (const auto& [user, count] : brought.mapped()) {
    own.user_objects[user] += count;
    content.user_objects[user] -= std::min(content.user_objects[user], count);
  }
}

void Graphs::AddNode(const faults::Record& record, const Addresses& addresses) {
  const std::uint64_t node = record.argument[0];
  const std::uint64_t handle = record.argument[1];
  Graph& graph = graphs_[handle];
  Object object = {.kind = Kind::GraphNode, .handle = node, .parent = handle};
  graph.node_objects.push_back(account_->Acquire(object, record));
  graph_of_node_[node] = handle;
  if (const auto before = graph.children.find(node); before != graph.children.end()) Disown(before->second);
  const BaseId base = BaseOf(record);
  const faults::Record* const copied = Given(faults::kCopiedGraph);
  if (const faults::Record* const moved = Given(faults::kMovedGraph)) {
    (void)Own(handle, node, moved->argument[0]);
  } else if (base == BaseId::GraphAddChildGraphNode || copied != nullptr) {
    CopyChild(graph, node, *Whole(copied == nullptr ? record.argument[4] : copied->argument[0]));
  }
  if (base == BaseId::GraphAddMemAllocNode || base == BaseId::GraphAddNode) account_->set_graph_memory();
  if (base == BaseId::GraphAddMemFreeNode) {
    Change(graph).memory[node].push_back({record.argument[4], 0});
  } else if (const faults::Record* const memory = Given(faults::kMemoryNode)) {
    Change(graph).memory[node].push_back({memory->argument[0], memory->argument[1]});
  }
  if (!addresses.empty()) Change(graph).nodes[node] = addresses;
}

void Graphs::DenyNode(const faults::Record& record) {
  if (const faults::Record* const moved = Given(faults::kMovedGraph)) (void)Own(record.argument[1], record.argument[0], moved->argument[0]);
}

// cuGraph*NodeSetParams(node, ...) and cuGraphExec*NodeSetParams(executable, node, ...) replace the addresses of the node. A call for a
// node without addresses (host node, event node) replaces none.
void Graphs::SetNode(const faults::Record& record, const Addresses& addresses) {
  const faults::Record* const copied = Given(faults::kCopiedGraph);
  if (BaseOf(record) == BaseId::GraphExecChildGraphNodeSetParams || copied != nullptr) {
    const std::uint64_t child = copied == nullptr ? record.argument[2] : copied->argument[0];
    if (ArgumentFamily(CallOf(record), 0) != Family::ExecutableGraph) return;  // no driver changes the child graph of a node in a graph
    Content& content = Change(executables_[record.argument[0]]);
    const std::uint64_t node = record.argument[1];
    EraseNode(&content, node);
    PutChild(&content, node, *Whole(child));
    return;
  }
  if (addresses.empty() && !NamesAddresses(BaseOf(record))) return;
  if (ArgumentFamily(CallOf(record), 0) == Family::ExecutableGraph) {
    Change(executables_[record.argument[0]]).nodes[record.argument[1]] = addresses;
    return;
  }
  const auto graph = graph_of_node_.find(record.argument[0]);
  if (graph != graph_of_node_.end()) Change(graphs_[graph->second]).nodes[record.argument[0]] = addresses;
}

void Graphs::DestroyNode(std::uint64_t node, const Site& site) {
  const auto found = graph_of_node_.find(node);
  if (found == graph_of_node_.end()) return;
  Graph& graph = graphs_[found->second];
  const Content& before = *graph.content;
  if (before.nodes.contains(node) || before.memory.contains(node)) EraseNode(&Change(graph), node);
  if (graph.content->of_child.contains(node)) {
    Content& content = Change(graph);
    const auto brought = content.of_child.extract(node);
    for (const auto& [user, count] : brought.mapped()) {
      const std::uint64_t given = std::min(content.user_objects[user], count);
      content.user_objects[user] -= given;
      std::uint64_t& held = account_->Entry(Family::UserObject, user).graph_references;
      held -= std::min(held, given);
    }
  }
  graph_of_node_.erase(found);
  if (const auto child = graph.children.find(node); child != graph.children.end()) DestroyGraph(child->second, site);
}

void Graphs::Clone(std::uint64_t copy, std::uint64_t original) {
  Begin(copy);
  Share(graphs_[copy], Whole(original));
}

void Graphs::Instantiate(std::uint64_t executable, std::uint64_t graph) {
  DestroyExecutable(executable);
  Share(executables_[executable], Whole(graph));
}

void Graphs::Update(std::uint64_t executable, std::uint64_t graph) { Share(executables_[executable], Whole(graph)); }

void Graphs::Launch(const faults::Record& record) {
  const auto found = executables_.find(record.argument[0]);
  if (found == executables_.end()) return;
  Graph& executable = found->second;
  if (const std::int64_t capture = CaptureOf(record); capture >= 0) {
    if (!Releases(AnswerOf(record))) return;
    CaptureState& state = captures_[static_cast<std::size_t>(capture)];
    Capture(capture, {});
    for (const auto& [node, addresses] : executable.content->nodes) Capture(capture, addresses);
    for (const auto& [node, memory] : executable.content->memory) state.memory.insert(state.memory.end(), memory.begin(), memory.end());
    return;
  }
  if (executable.clean_at == account_->space().deaths()) return;
  Addresses all;
  for (const auto& [node, addresses] : executable.content->nodes) all.insert(all.end(), addresses.begin(), addresses.end());
  DropOwn(*executable.content, &all);
  const std::size_t before = account_->books().ledger.violations.size();
  Check(record, all);
  if (account_->books().ledger.violations.size() == before) executable.clean_at = account_->space().deaths();
}

// Removes the addresses of memory that the graph itself allocates. Such memory is alive whenever a node of the graph touches it.
void Graphs::DropOwn(const Content& content, Addresses* addresses) {
  if (content.memory.empty()) return;
  std::map<std::uint64_t, std::uint64_t> own;  // bytes by address; nodes may share an address, and ranges do not overlap otherwise
  for (const auto& [node, list] : content.memory) {
    for (const Memory& one : list) own[one.address] = std::max(own[one.address], one.bytes);
  }
  std::erase_if(*addresses, [&](std::uint64_t address) {
    const auto after = own.upper_bound(address);
    return after != own.begin() && address - std::prev(after)->first < std::prev(after)->second;
  });
}

// Erases the node and everything that the graph inside the node brought along.
void Graphs::EraseNode(Content* content, std::uint64_t node) {
  std::vector<std::uint64_t> left = {node};
  while (!left.empty()) {
    const std::uint64_t one = left.back();
    left.pop_back();
    content->nodes.erase(one);
    content->memory.erase(one);
    const auto inner = content->inner.extract(one);
    if (!inner.empty()) left.insert(left.end(), inner.mapped().begin(), inner.mapped().end());
  }
}

void Graphs::Launched(const faults::Record& record) {
  const auto found = executables_.find(record.argument[0]);
  if (found == executables_.end() || found->second.content->memory.empty() || CaptureOf(record) >= 0) return;
  const std::shared_ptr<const Content> content = found->second.content;
  std::map<std::uint64_t, std::pair<std::int64_t, std::uint64_t>> balance;  // by address; nodes that allocate in turn may share one
  for (const auto& [node, list] : content->memory) {
    for (const Memory& one : list) {
      auto& [count, bytes] = balance[one.address];
      count += one.bytes != 0 ? 1 : -1;
      bytes = std::max(bytes, one.bytes);
    }
  }
  for (const auto& [address, what] : balance) {
    const auto& [count, bytes] = what;
    if (count < 0 && account_->Held(Family::Pointer, address) >= 0) {
      account_->Release(Kind::StreamOrderedMemory, address, 1, record, AnswerOf(record));
    } else if (count > 0 && AnswerOf(record) == Answer::After) {
      account_->AcquireUnowned(Family::Pointer, address, bytes, record);
    } else if (count > 0) {
      Object object = {.kind = Kind::StreamOrderedMemory, .handle = address, .bytes = bytes};
      account_->Acquire(object, record);  // a graph may free and allocate again, which ends the older object
    }
  }
}

void Graphs::Check(const faults::Record& record, std::span<const std::uint64_t> addresses) {
  std::map<std::int64_t, std::uint64_t> dead;  // the lowest address in each
  std::set<std::int64_t> gone;
  for (const std::uint64_t address : addresses) {
    if ((address & kNeededObject) != 0) {
      const auto needed = static_cast<std::int64_t>(address & ~kNeededObject);
      if (account_->IsGone(needed)) gone.insert(needed);
      continue;
    }
    if (const std::int64_t object = account_->DeadObjectAt(address); object >= 0) {
      std::uint64_t& lowest = dead.try_emplace(object, address).first->second;
      lowest = std::min(lowest, address);
    }
  }
  for (const std::int64_t object : gone) account_->ViolateFoundation(record, account_->books().object(object).handle, object);
  for (const auto& [object, address] : dead) {
    account_->books().Violate(Rule::UseAfterRelease, account_->books().object(object).kind, record, address, object);
  }
}

void Graphs::DestroyGraph(std::uint64_t graph, const Site& site) {
  Disown(graph);
  std::vector<std::uint64_t> left = {graph};
  while (!left.empty()) {
    const auto found = graphs_.find(left.back());
    left.pop_back();
    if (found == graphs_.end()) continue;
    for (const std::int64_t node : found->second.node_objects) {
      if (account_->books().object(node).state != State::Live) continue;
      graph_of_node_.erase(account_->books().object(node).handle);
      account_->Close(node, State::Released, site);
    }
    for (const auto& [node, addresses] : found->second.content->nodes) {  // captured nodes have no objects
      const auto of = graph_of_node_.find(node);
      if (of != graph_of_node_.end() && of->second == found->first) graph_of_node_.erase(of);
    }
    for (const auto& [node, child] : found->second.children) {
      owner_.erase(child);
      left.push_back(child);
    }
    Hold(*found->second.content, false);
    graphs_.erase(found);
  }
}

void Graphs::DestroyExecutable(std::uint64_t executable) {
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  Hold(*found->second.content, false);
  executables_.erase(found);
}

void Graphs::RetainUserObject(const faults::Record& record) {
  const std::uint64_t handle = record.argument[1];
  const std::uint64_t count = record.argument[2];
  HandleEntry& entry = account_->Entry(Family::UserObject, handle);
  if (entry.top < 0 && entry.graph_references == 0 && entry.last >= 0) {
    if (account_->books().object(entry.last).told_alive) return;
    account_->books().Violate(Rule::UseAfterRelease, Kind::UserObject, record, handle, entry.last);
    return;
  }
  Change(graphs_[record.argument[0]]).user_objects[handle] += count;
  entry.graph_references += count;
  if ((record.argument[3] & CU_GRAPH_USER_OBJECT_MOVE) != 0) {
    account_->Release(Kind::UserObject, handle, count, record, Answer::Succeeded);
  }
}

void Graphs::ReleaseUserObject(const faults::Record& record) {
  const std::uint64_t handle = record.argument[1];
  const std::uint64_t count = record.argument[2];
  HandleEntry& entry = account_->Entry(Family::UserObject, handle);
  Graph& graph = graphs_[record.argument[0]];
  const auto found = graph.content->user_objects.find(handle);
  const std::uint64_t held = found == graph.content->user_objects.end() ? 0 : found->second;
  const std::uint64_t given = std::min(held, count);
  if (given > 0) Change(graph).user_objects[handle] -= given;
  entry.graph_references -= std::min(entry.graph_references, given);
  if (given < count) account_->books().Violate(Rule::OverReleasedReference, Kind::UserObject, record, handle, entry.last);
}

}  // namespace cuaudit::harness
