// SPDX-License-Identifier: MIT
// Who is behind whom, and the calls that make it so.
#include <algorithm>

#include "suites/unit/allocator/model/execution.h"

namespace cuaudit::alloc {
namespace {

void Join(std::vector<std::uint32_t>* clock, const std::vector<std::uint32_t>& other) {
  for (std::size_t i = 0; i < clock->size(); ++i) (*clock)[i] = std::max((*clock)[i], other[i]);
}

}  // namespace

// Whether the waits that the use needs may be made: none crosses the border of a capture.
bool Execution::CanOrder(const Stream& user, const Block& block, bool writes) const {
  if (user.capture != block.capture) return false;
  const auto possible = [&](const Ticks& ticks) {
    return std::all_of(ticks.begin(), ticks.end(), [&](const auto& use) {
      const auto number = static_cast<std::size_t>(use.first);
      return use.second <= std::max(user.clock[number], host_[number]) || streams_[number]->capture == user.capture;
    });
  };
  return possible(block.writes) && (!writes || possible(block.reads));
}

void Execution::Use(Block* block, Stream* user, bool writes) {
  const auto order = [&](const Ticks& ticks) {
    for (const auto& [number, tick] : ticks) {
      const auto i = static_cast<std::size_t>(number);
      if (tick > std::max(user->clock[i], host_[i])) Order(streams_[i].get(), user);
    }
  };
  order(block->writes);
  if (writes) order(block->reads);
  Say("%s(x%d, s%d);", writes ? "Write" : "Read", block->slot, user->number);
  Launch(user, block->address, block->bytes, writes);
  (writes ? block->writes : block->reads)[user->number] = user->clock[static_cast<std::size_t>(user->number)];
  if (user->number != block->owner) block->untold.insert(user->number);
  outcome_.far_uses += user->device != block->device;
  if (user->capturing) graphs_[user->capture].ranges.emplace_back(block->address, block->bytes);
}

void Execution::Launch(Stream* stream, CUdeviceptr address, std::size_t bytes, bool writes) {
  std::uint64_t count = bytes;
  void* parameters[] = {&address, &count};
  On(stream->device, [&] {
    const CUfunction kernel = writes ? writer_[stream->device] : reader_[stream->device];
    (void)Ok(d_.LaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream->handle, parameters, nullptr), "LaunchKernel");
  });
  Join(&stream->clock, host_);
  ++stream->clock[static_cast<std::size_t>(stream->number)];
}

CUevent Execution::Mark(const Stream& stream) {
  CUevent event = nullptr;
  On(stream.device, [&] {
    (void)(Ok(d_.EventCreate(&event, CU_EVENT_DISABLE_TIMING), "EventCreate") && Ok(d_.EventRecord(event, stream.handle), "EventRecord"));
  });
  return event;
}

void Execution::Order(Stream* before, Stream* after) {
  if (before == after) return;
  Say("Wait(s%d, s%d);", before->number, after->number);
  const CUevent event = before->tail != nullptr ? before->tail : Mark(*before);
  (void)Ok(d_.StreamWaitEvent(after->handle, event, 0), "StreamWaitEvent");
  if (before->tail == nullptr) (void)Ok(d_.EventDestroy(event), "EventDestroy");
  if (before->capturing && !after->capturing) {
    after->before_capture = after->clock;
    after->capturing = true;
    after->capture = before->capture;
  }
  Join(&after->clock, before->clock);
}

void Execution::OrderAll(Stream* hub, bool into) {
  for (int place = 0; place < kPlaces; ++place) into ? Order(At(place), hub) : Order(hub, At(place));
  for (std::size_t i = 0; into && i < streams_.size(); ++i) {
    if (streams_[i]->tail != nullptr) Order(streams_[i].get(), hub);
  }
}

void Execution::Tell(Block* block, Stream* user, bool by_ref) {
  // The program's own mark of the same place in the stream; a capture has none.
  const bool marked = !user->capturing && user->number != block->owner;
  const CUevent event = marked ? Mark(*user) : nullptr;
  const StreamRef outside = by_ref && !conditions_.forgetful ? OutsideOf(user) : StreamRef();
  Say("RecordUse(x%d, %c%d);", block->slot, outside ? 'r' : 's', user->number);
  const std::size_t heard_before = heard_;
  const auto record = [&] {
    return outside ? allocator_->RecordUse(block->address, outside) : allocator_->RecordUse(block->address, user->handle);
  };
  if (!conditions_.forgetful && !Took(record(), "RecordUse")) {
    // As a caller would. What a capture does cannot be waited for: the block stays until it ends.
    if (user->capturing) block->kept |= 1U << user->capture;
    else WaitInstead(user->handle, nullptr);
  } else if (!conditions_.forgetful) {
    CheckRecorded(*block, *user, heard_before);
  }
  if (marked) block->told.push_back({user->number, event});
  block->untold.erase(user->number);
}

// Before the block is freed: what its own stream is not behind.
void Execution::TellAll(Block* block) {
  Stream* const owner = streams_[static_cast<std::size_t>(block->owner)].get();
  // What a captured stream waits for, it waits for in the graph: that orders nothing that runs now.
  const Clock& behind = owner->capturing && block->capture < 0 ? owner->before_capture : owner->clock;
  const std::set<int> untold = block->untold;
  for (const int number : untold) {
    Stream* const user = streams_[static_cast<std::size_t>(number)].get();
    if (block->promised.count(number) != 0) continue;
    const auto i = static_cast<std::size_t>(number);
    const auto last = [&](const Ticks& ticks) {
      const auto at = ticks.find(number);
      return at == ticks.end() ? 0 : at->second;
    };
    if (std::max(last(block->writes), last(block->reads)) <= std::max(behind[i], host_[i])) continue;
    if (user->handle != nullptr) Tell(block, user);
  }
}

void Execution::KeepAlive(Block* block, Stream* user) {
  block->told.push_back({user->number, Mark(*user)});
  const CUevent event = Mark(*user);
  Say("KeepAliveUntil(x%d, EventOf(s%d));", block->slot, user->number);
  if (!conditions_.forgetful && !Took(allocator_->KeepAliveUntil(block->address, event), "KeepAliveUntil")) WaitInstead(nullptr, event);
  // The event is the program's own: it means something else from now on, and then nothing.
  for (const auto& other : streams_) {
    if (other->handle != nullptr && other->device == user->device && !other->capturing && other.get() != user)
      (void)Ok(d_.EventRecord(event, other->handle), "EventRecord");
  }
  (void)Ok(d_.EventDestroy(event), "EventDestroy");
  block->untold.erase(user->number);
  ++outcome_.kept_alive;
}

void Execution::SynchronizeAll() {
  Say("cuCtxSynchronize();");
  for (int i = 0; i < program_.devices; ++i) {
    if (!Ok(d_.CtxSynchronize(context_[i]), "CtxSynchronize")) return;
  }
  for (const auto& stream : streams_) Join(&host_, stream->clock);
}

bool Execution::Applies(void* self, StreamRef stream) noexcept {
  const auto& [execution, slot] = *static_cast<const Applying*>(self);
  const auto& streams = execution->streams_;
  return std::any_of(streams.begin(), streams.end(),
                     [&, captured = slot](const auto& one) { return one->capture == captured && one->handle == stream.handle(); });
}

void Execution::BeginCapture(int slot, Stream* stream) {
  Graph& graph = graphs_[slot];
  graph = {};
  Say("g%d = BeginCapture(s%d);", slot, stream->number);
  Route route;
  route.applies = Applies;
  route.user = &applying_[slot];
  if (!Took(allocator_->CreatePool({}, &graph.pool), "CreatePool") ||
      !Took(allocator_->BeginAllocateToPool(stream->device, graph.pool, route), "BeginAllocateToPool") ||
      !Ok(d_.StreamBeginCapture(stream->handle, CU_STREAM_CAPTURE_MODE_GLOBAL), "StreamBeginCapture"))
    return;
  graph_there_[slot] = true;
  graph.capturing = true;
  graph.origin = stream->number;
  graph.device = stream->device;
  stream->before_capture = stream->clock;
  stream->capturing = true;
  stream->capture = slot;
  ++outcome_.captures;
}

void Execution::EndCapture(int slot) {
  Graph& graph = graphs_[slot];
  Stream* const origin = streams_[static_cast<std::size_t>(graph.origin)].get();
  for (const auto& [address, block] : blocks_) {  // told of while that is a use by the capture
    if (block->capture != slot) continue;
    const std::set<int> untold = block->untold;
    for (const int number : untold) Tell(block.get(), streams_[static_cast<std::size_t>(number)].get());
  }
  for (const auto& stream : streams_) {
    if (stream->capture == slot && stream.get() != origin) Order(stream.get(), origin);
  }
  Say("EndCapture(g%d);", slot);
  CUgraph made = nullptr;
  if (!Ok(d_.StreamEndCapture(origin->handle, &made), "StreamEndCapture")) return;
  On(graph.device, [&] {
    (void)(Ok(d_.GraphInstantiateWithFlags(&graph.exec, made, 0), "GraphInstantiate") && Ok(d_.GraphDestroy(made), "GraphDestroy"));
  });
  if (failed() || !Took(allocator_->EndAllocateToPool(graph.device, graph.pool), "EndAllocateToPool")) return;
  for (const auto& stream : streams_) {
    if (stream->capture != slot) continue;
    stream->capturing = false;
    stream->capture = -1;
    const auto own = static_cast<std::size_t>(stream->number);
    const std::uint32_t ticks = stream->clock[own];
    stream->clock = stream->before_capture;
    stream->clock[own] = ticks;
  }
  // None of it has run.
  for (const auto& [address, block] : blocks_) {
    block->kept &= ~(1U << slot);  // also of a block from outside that the capture used
    if (block->capture != slot) continue;
    block->capture = -1;
    block->writes.clear();
    block->reads.clear();
    block->untold.clear();
  }
  graph.capturing = false;
}

// Ordered behind everything before it, and everything after it behind it.
void Execution::LaunchGraph(Graph* graph, Stream* stream) {
  OrderAll(stream, true);
  Say("cuGraphLaunch(g%d, s%d);", static_cast<int>(graph - graphs_), stream->number);
  if (!Ok(d_.GraphLaunch(graph->exec, stream->handle), "GraphLaunch")) return;
  Join(&stream->clock, host_);
  const std::uint32_t tick = ++stream->clock[static_cast<std::size_t>(stream->number)];
  for (const auto& [address, block] : blocks_) {
    for (const auto& [start, bytes] : graph->ranges) {
      if (start + bytes <= address || start >= address + block->size) continue;
      block->writes[stream->number] = tick;
      if (stream->number != block->owner) block->untold.insert(stream->number);
    }
  }
  OrderAll(stream, false);
  ++outcome_.launches;
}

void Execution::DropGraph(int slot) {
  SynchronizeAll();
  Say("DropGraph(g%d);", slot);
  (void)Ok(d_.GraphExecDestroy(graphs_[slot].exec), "GraphExecDestroy");
  (void)Took(allocator_->ReleasePool(graphs_[slot].pool), "ReleasePool");
  (void)Took(allocator_->ReleasePool(graphs_[slot].pool), "ReleasePool");  // the user that BeginAllocateToPool added
  graph_there_[slot] = false;
}

}  // namespace cuaudit::alloc
