// SPDX-License-Identifier: MIT
#include "harness/ledger/graphs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cuaudit::harness {
namespace {

using driver::BaseId;
using driver::Family;
using driver::Kind;

// The calls whose parameters say every address that the node touches: none named means none touched.
bool NamesAddresses(BaseId base) {
  constexpr BaseId kCalls[] = {BaseId::GraphKernelNodeSetParams,     BaseId::GraphMemcpyNodeSetParams,
                               BaseId::GraphMemsetNodeSetParams,     BaseId::GraphNodeSetParams,
                               BaseId::GraphExecKernelNodeSetParams, BaseId::GraphExecMemcpyNodeSetParams,
                               BaseId::GraphExecMemsetNodeSetParams, BaseId::GraphExecNodeSetParams};
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

void Graphs::Drop(Graph& graph) { Hold(*graph.content, false); }

std::shared_ptr<Graphs::Content> Graphs::Whole(std::uint64_t graph) const {
  const auto found = graphs_.find(graph);
  std::shared_ptr<Content> whole = found == graphs_.end() ? std::make_shared<Content>() : found->second.content;
  bool shared = true;
  for (const auto& [child, owner] : owner_) {
    if (owner.first != graph) continue;
    if (std::exchange(shared, false)) whole = std::make_shared<Content>(*whole);
    const std::uint64_t node = owner.second;
    const std::shared_ptr<const Content> inner = Whole(child);
    const auto name = [&](std::uint64_t one) {
      const std::uint64_t known = one == 0 ? node : one;
      whole->moved[node].push_back(known);
      return known;
    };
    for (const auto& [one, list] : inner->nodes) whole->nodes[name(one)] = list;
    for (const auto& [one, list] : inner->memory) whole->memory[name(one)] = list;
    for (const auto& [user, count] : inner->user_objects) whole->user_objects[user] += count;
  }
  return whole;
}

void Graphs::Begin(std::uint64_t graph) {
  const auto found = graphs_.find(graph);
  if (found != graphs_.end()) {
    Drop(found->second);
    graphs_.erase(found);
  }
  owner_.erase(graph);
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

// A child graph is copied into the node, with the user objects it holds.
void Graphs::CopyChild(Graph& graph, std::uint64_t node, const Content& child) {
  Hold(child, true);
  Content& content = Change(graph);
  PutChild(&content, node, child);
  if (!child.user_objects.empty()) content.of_child[node] = child.user_objects;
  for (const auto& [user, count] : child.user_objects) content.user_objects[user] += count;
}

// The child keeps its handle and its nodes theirs: what becomes of them becomes of the parent. (A driver also accepts a graph within
// the child. It would own itself.)
void Graphs::MoveChild(std::uint64_t graph, std::uint64_t node, std::uint64_t child) {
  for (std::uint64_t above = graph; above != child;) {
    const auto owner = owner_.find(above);
    if (owner == owner_.end()) {
      owner_[child] = {graph, node};
      return;
    }
    above = owner->second.first;
  }
}

void Graphs::NameChild(std::uint64_t node, std::uint64_t child) {
  const auto found = graph_of_node_.find(node);
  if (found == graph_of_node_.end() || owner_.contains(child)) return;
  Content& content = Change(graphs_[found->second]);
  Begin(child);
  Content& own = *graphs_[child].content;
  if (const auto all = content.nodes.extract(node); !all.empty()) own.nodes[0] = all.mapped();
  if (const auto all = content.memory.extract(node); !all.empty()) own.memory[0] = all.mapped();
  owner_[child] = {found->second, node};
}

void Graphs::AddNode(const faults::Record& record, const Addresses& addresses) {
  const std::uint64_t node = record.argument[0];
  const std::uint64_t handle = record.argument[1];
  Graph& graph = graphs_[handle];
  Object object;
  object.kind = Kind::GraphNode;
  object.handle = node;
  object.parent = handle;
  graph.node_objects.push_back(account_->Acquire(object, record));
  graph_of_node_[node] = handle;
  const BaseId base = BaseOf(record);
  const auto copied = copied_.find(record.begin);
  if (const auto moved = moved_.find(record.begin); moved != moved_.end()) {
    MoveChild(handle, node, moved->second);
  } else if (base == BaseId::GraphAddChildGraphNode || copied != copied_.end()) {
    CopyChild(graph, node, *Whole(copied != copied_.end() ? copied->second : record.argument[4]));
  }
  if (base == BaseId::GraphAddMemAllocNode || base == BaseId::GraphAddNode) account_->set_graph_memory();
  if (base == BaseId::GraphAddMemFreeNode) NameMemory(record.begin, record.argument[4], 0);
  if (const auto memory = named_memory_.find(record.begin); memory != named_memory_.end()) {
    Change(graph).memory[node].push_back(memory->second);
    named_memory_.erase(memory);
  }
  if (!addresses.empty()) Change(graph).nodes[node] = addresses;
}

// cuGraph*NodeSetParams(node, ...) and cuGraphExec*NodeSetParams(executable, node, ...): the node's addresses are replaced. A call
// that names no address (of a host node, an event node) replaces none.
void Graphs::SetNode(const faults::Record& record, const Addresses& addresses) {
  const auto copied = copied_.find(record.begin);
  if (BaseOf(record) == BaseId::GraphExecChildGraphNodeSetParams || copied != copied_.end()) {
    const std::uint64_t child = copied != copied_.end() ? copied->second : record.argument[2];
    if (ArgumentFamily(CallOf(record), 0) != Family::ExecutableGraph) return;  // no driver changes the child of a graph's node
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
  const auto brought = graph.content->of_child.find(node);
  if (brought != graph.content->of_child.end()) {
    const std::map<std::uint64_t, std::uint64_t> gone = brought->second;
    Content& content = Change(graph);
    content.of_child.erase(node);
    for (const auto& [user, count] : gone) {
      const std::uint64_t given = std::min(content.user_objects[user], count);
      content.user_objects[user] -= given;
      std::uint64_t& held = account_->Entry(Family::UserObject, user).graph_references;
      held -= std::min(held, given);
    }
  }
  graph_of_node_.erase(found);
  const auto own = std::find_if(owner_.begin(), owner_.end(), [=](const auto& one) { return one.second.second == node; });
  if (own != owner_.end()) DestroyGraph(own->first, site);
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
    CaptureState& state = captures_[static_cast<std::size_t>(capture)];
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

// Those in memory that the graph itself allocates: alive again whenever one of its nodes touches it.
void Graphs::DropOwn(const Content& content, Addresses* addresses) {
  if (content.memory.empty()) return;
  std::map<std::uint64_t, std::uint64_t> own;  // bytes by address; what nodes share is one, and others do not overlap
  for (const auto& [node, list] : content.memory) {
    for (const Memory& one : list) own[one.address] = std::max(own[one.address], one.bytes);
  }
  std::erase_if(*addresses, [&](std::uint64_t address) {
    const auto after = own.upper_bound(address);
    return after != own.begin() && address - std::prev(after)->first < std::prev(after)->second;
  });
}

// With what a child graph that was moved there brought along.
void Graphs::EraseNode(Content* content, std::uint64_t node) {
  content->nodes.erase(node);
  content->memory.erase(node);
  const auto moved = content->moved.find(node);
  if (moved == content->moved.end()) return;
  for (const std::uint64_t inner : moved->second) {
    content->nodes.erase(inner);
    content->memory.erase(inner);
  }
  content->moved.erase(moved);
}

void Graphs::Launched(const faults::Record& record) {
  const auto found = executables_.find(record.argument[0]);
  if (found == executables_.end() || found->second.content->memory.empty() || CaptureOf(record) >= 0) return;
  const std::shared_ptr<const Content> content = found->second.content;
  std::map<std::uint64_t, std::pair<std::int64_t, std::uint64_t>> balance;  // by address; nodes that take turns may share one
  for (const auto& [node, list] : content->memory) {
    for (const Memory& one : list) {
      auto& [count, bytes] = balance[one.address];
      count += one.bytes != 0 ? 1 : -1;
      bytes = std::max(bytes, one.bytes);
    }
  }
  for (const auto& [address, what] : balance) {
    const auto& [count, bytes] = what;
    const HandleEntry* const entry = account_->Find(Family::Pointer, address);
    if (count < 0 && entry != nullptr && entry->top >= 0) {
      account_->Release(Kind::StreamOrderedMemory, address, 1, record, OutcomeOf(record));
    } else if (count > 0 && OutcomeOf(record) == Outcome::After) {
      account_->AcquireUnowned(Family::Pointer, address, bytes);
    } else if (count > 0) {
      Object object;
      object.kind = Kind::StreamOrderedMemory;
      object.handle = address;
      object.bytes = bytes;
      account_->Acquire(object, record);  // of a graph that frees before it allocates again, the older one is gone
    }
  }
}

void Graphs::Check(const faults::Record& record, std::span<const std::uint64_t> addresses) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> dead;
  for (const std::uint64_t address : addresses) {
    const std::int64_t object = account_->DeadObjectAt(address);
    if (object >= 0) dead.emplace_back(object, address);
  }
  std::sort(dead.begin(), dead.end());
  std::int64_t previous = -1;
  for (const auto& [object, address] : dead) {
    if (object == previous) continue;
    previous = object;
    account_->books().Violate(Rule::UseAfterRelease, account_->books().object(object).kind, record, address, object);
  }
}

void Graphs::DestroyGraph(std::uint64_t graph, const Site& site) {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  for (const std::int64_t node : found->second.node_objects) {
    if (account_->books().object(node).state != State::Live) continue;
    graph_of_node_.erase(account_->books().object(node).handle);
    account_->Close(node, State::Released, site);
  }
  Drop(found->second);
  graphs_.erase(found);
  owner_.erase(graph);
  const auto owned = [=](const auto& one) { return one.second.first == graph; };
  for (auto own = std::find_if(owner_.begin(), owner_.end(), owned); own != owner_.end();) {
    const std::uint64_t child = own->first;
    owner_.erase(own);
    DestroyGraph(child, site);
    own = std::find_if(owner_.begin(), owner_.end(), owned);
  }
}

void Graphs::DestroyExecutable(std::uint64_t executable) {
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  Drop(found->second);
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
    account_->Release(Kind::UserObject, handle, count, record, Outcome::Succeeded);
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
