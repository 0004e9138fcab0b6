// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/stream/schedule.h"

#include "faults/sim/operation/value_work.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kMostAtOnce = 4;  // Random runs fewer operations than this at each call

std::uint64_t Draw(World& world) {
  std::uint64_t x = (world.random += 0x9e3779b97f4a7c15U);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Host functions are left to the attending thread, because a thread that queues or waits may hold a lock that they take.
enum class HostFunctions : std::uint8_t { Last, Never };

bool IsRunnable(World& world, const Stream* stream) { return !stream->busy && ObstacleOf(world, stream).stream == nullptr; }

// Fifo: the highest priority, then the oldest. Random: the highest priority, then any. Adversarial: the newest. Lazy: the oldest; it picks
// only when a wait depends on something unforeseen.
Stream* Pick(World& world, HostFunctions host) {
  Stream* best = nullptr;
  Stream* last = nullptr;
  std::uint64_t equals = 0;
  for (Stream* const stream : world.busy_streams) {
    if (!IsRunnable(world, stream)) continue;
    if (world.attended && RunsHostFunctions(stream->head->work)) {
      if (host == HostFunctions::Last && (last == nullptr || stream->head->ticket < last->head->ticket)) last = stream;
      continue;
    }
    bool better = best == nullptr;
    if (!better) {
      switch (world.schedule) {
        case Schedule::Lazy:
          better = stream->head->ticket < best->head->ticket;
          break;
        case Schedule::Fifo:
          better = stream->priority != best->priority ? stream->priority < best->priority : stream->head->ticket < best->head->ticket;
          break;
        case Schedule::Random:
          better = stream->priority != best->priority ? stream->priority < best->priority : Draw(world) % (equals + 1) == 0;
          break;
        case Schedule::Adversarial:
          better = stream->head->ticket > best->head->ticket;
          break;
      }
    }
    equals = best != nullptr && stream->priority == best->priority ? equals + 1 : 1;
    if (better) best = stream;
  }
  return best != nullptr ? best : last;
}

// Another thread runs a host function that must finish first.
void Rest(World& world) {
  ++world.waiting_turns;
  pthread_cond_wait(&world.turn, &world.lock);
  --world.waiting_turns;
}

// The stream whose first operation is the next step towards the goal; nullptr: another thread is running it, or there is none.
Stream* NextFor(World& world, Goal goal) {
  while (!goal.stream->busy) {
    const Goal obstacle = ObstacleOf(world, goal.stream);
    if (obstacle.stream == nullptr) return goal.stream;
    if (obstacle.stream == goal.stream) return nullptr;
    goal = obstacle;
  }
  return nullptr;
}

// In an attended world a host function runs only if the goal needs it; if several can run, the one that the goal needs.
Stream* PickFor(World& world, Goal goal) {
  if (!world.attended) return Pick(world, HostFunctions::Last);
  if (Stream* const stream = Pick(world, HostFunctions::Never); stream != nullptr) return stream;
  Stream* const needed = NextFor(world, goal);
  return needed != nullptr ? needed : Pick(world, HostFunctions::Last);
}

// Runs the stream's first operation inside a call that queues or waits. Normally only the wait tells its thread what has run. In an
// attended world, a host function runs here only when nothing else can, so any thread may be waiting for it.
void Run(World& world, Thread* thread, Stream* stream) {
  const bool tells = RunsHostFunctions(stream->head->work);
  RunHead(world, thread, stream, !tells ? Seen::ByNobody : world.attended ? Seen::ByAll : Seen::ByOthers);
}

void RunAnything(World& world, Thread* thread, Goal goal) {
  Stream* const stream = PickFor(world, goal);
  if (stream != nullptr) {
    world.stuck_since = 0;
    Run(world, thread, stream);
  } else if (world.running != 0) {
    Rest(world);
  } else {
    BePatient(world);
  }
}

// Each goal stands in the way of the one before. Tickets fall on the way down, so the search ends.
class Trail {
 public:
  explicit Trail(World& world) noexcept : world_(world) {}
  ~Trail() {
    while (!goals_.empty()) Pop();
    goals_.Clear(world_.arena);
  }
  Trail(const Trail&) = delete;
  Trail& operator=(const Trail&) = delete;
  bool Push(Goal goal) noexcept {
    if (!goals_.Push(world_.arena, goal)) return false;
    Pin(goal.stream);
    return true;
  }
  void Pop() noexcept {
    Stream* const stream = Last().stream;
    goals_.Truncate(goals_.size() - 1);
    Unpin(world_, stream);
  }
  const Goal& Last() const noexcept { return goals_[goals_.size() - 1]; }
  bool empty() const noexcept { return goals_.empty(); }

 private:
  World& world_;
  Vector<Goal> goals_;
};

void ReachLazily(World& world, Thread* thread, Goal goal) {
  Trail trail(world);
  bool room = trail.Push(goal);
  while (room && !trail.empty()) {
    Stream* const stream = trail.Last().stream;
    if (IsReached(trail.Last())) {
      trail.Pop();
    } else if (stream->busy) {
      Rest(world);
    } else if (const Goal obstacle = ObstacleOf(world, stream); obstacle.stream == nullptr) {
      Run(world, thread, stream);
    } else if (obstacle.stream == stream) {
      RunAnything(world, thread, goal);
    } else {
      room = trail.Push(obstacle);
    }
  }
}

}  // namespace

Goal ObstacleOf(World& world, const Stream* stream) noexcept {
  const Operation* const operation = stream->head;
  if (stream->legacy) {
    for (Stream* const other : world.busy_streams) {
      if (other == stream || other->owner != stream->owner || !other->blocking) continue;
      if (other->head->ticket < operation->ticket) return {other, operation->ticket};
    }
  } else if (Stream* const legacy = stream->owner->legacy; stream->blocking && legacy != nullptr) {
    if (legacy->head != nullptr && legacy->head->ticket < operation->ticket) return {legacy, operation->ticket};
  }
  if (operation->work.type == WorkType::Wait) {
    const Marker* const marker = operation->work.marker;
    if (!marker->done) return {marker->stream, marker->ticket + 1};
  }
  if (operation->work.type == WorkType::Await && !world.hollow.passes && !IsSatisfied(world, operation->work.value)) {
    return {const_cast<Stream*>(stream), operation->ticket + 1};
  }
  for (const Marker* const marker : operation->markers) {
    if (marker != nullptr && !marker->done && marker->ticket != operation->ticket) return {marker->stream, marker->ticket + 1};
  }
  return {};
}

void Reach(World& world, Thread* thread, Goal goal) noexcept {
  Pin(goal.stream);
  if (world.schedule == Schedule::Lazy) ReachLazily(world, thread, goal);
  while (!IsReached(goal)) RunAnything(world, thread, goal);
  Unpin(world, goal.stream);
}

void RunToward(World& world, Thread* thread, Goal goal) noexcept {
  Pin(goal.stream);
  while (!IsReached(goal)) {
    Stream* const stream = world.schedule == Schedule::Lazy ? NextFor(world, goal) : PickFor(world, goal);
    if (stream == nullptr) break;
    Run(world, thread, stream);
  }
  Unpin(world, goal.stream);
}

void Nudge(World& world, Thread* thread, Goal goal) noexcept {
  Stream* stream = nullptr;
  if (world.schedule == Schedule::Lazy) {
    stream = NextFor(world, goal);
    if (stream == nullptr && goal.stream->busy) return;
  }
  if (stream == nullptr) stream = PickFor(world, goal);
  // The querying thread may look at what its host functions have done.
  if (stream != nullptr) RunHead(world, thread, stream, RunsHostFunctions(stream->head->work) ? Seen::ByAll : Seen::ByNobody);
}

void Advance(World& world, Thread* thread) noexcept {
  std::uint64_t count = 0;
  if (world.schedule == Schedule::Fifo) count = ~std::uint64_t{0};
  if (world.schedule == Schedule::Random) count = Draw(world) % kMostAtOnce;
  if (world.pending > kMostPending && count < world.pending - kMostPending) count = world.pending - kMostPending;
  for (; count != 0 && !world.busy_streams.empty(); --count) {
    Stream* const stream = Pick(world, HostFunctions::Never);
    if (stream == nullptr) return;
    Run(world, thread, stream);
  }
}

bool RunOne(World& world, Thread* thread) noexcept {
  Stream* const stream = Pick(world, HostFunctions::Last);
  if (stream != nullptr) RunHead(world, thread, stream, world.hollow.all ? Seen::ByNobody : Seen::ByAll);
  return stream != nullptr;
}

void Drain(Call& call, Stream* stream) noexcept {
  Pin(stream);
  TellStream(call.world, stream);
  if (stream->head != nullptr) Reach(call.world, call.thread, Goal{stream, call.world.next_ticket});
  if (call.world.clock < stream->time) call.world.clock = stream->time;
  Unpin(call.world, stream);
}

void DrainContext(Call& call, Context* context, const GreenContext* green) noexcept {
  World& world = call.world;
  const std::uint64_t limit = world.next_ticket;
  const std::uint64_t handle = context->handle;
  std::uint64_t end = 0;  // of what it waits for in destroyed streams
  TellContext(world, context, false, green);
  for (bool again = true; again && world.Find<Context>(handle) == context;) {
    again = false;
    for (Stream* const stream : world.busy_streams) {
      if (!IsStreamOf(stream, context, green) || IsReached({stream, limit})) continue;
      Pin(stream);
      Reach(world, call.thread, Goal{stream, limit});
      if (end < stream->time) end = stream->time;
      Unpin(world, stream);
      again = true;
      break;
    }
  }
  if (world.Find<Context>(handle) != context) return;
  if (green == nullptr && end < context->time) end = context->time;
  for (const Object* at = green == nullptr ? nullptr : context->children.first; at != nullptr; at = at->next) {
    if (at->tag != Tag::Stream) continue;
    const Stream* const stream = static_cast<const Stream*>(at);
    if (stream->green == green && end < stream->time) end = stream->time;
  }
  if (world.clock < end) world.clock = end;
}

void DrainLegacy(Call& call, Context* context) noexcept {
  World& world = call.world;
  const std::uint64_t limit = world.next_ticket;
  const std::uint64_t handle = context->handle;
  TellContext(world, context, true);
  for (bool again = true; again && world.Find<Context>(handle) == context;) {
    again = false;
    for (Stream* const stream : world.busy_streams) {
      if (stream->owner != context || !stream->blocking || IsReached({stream, limit})) continue;
      Reach(world, call.thread, Goal{stream, limit});
      again = true;
      break;
    }
  }
  if (world.Find<Context>(handle) != context) return;
  if (world.clock < context->blocking_time) world.clock = context->blocking_time;
  if (context->legacy != nullptr && world.clock < context->legacy->time) world.clock = context->legacy->time;
}

void DrainMarker(Call& call, Marker* marker) noexcept {
  if (marker == nullptr) return;
  ++marker->references;
  Tell(call.world, marker->clock);
  if (!marker->done) Reach(call.world, call.thread, Goal{marker->stream, marker->ticket + 1});
  if (call.world.clock < marker->time) call.world.clock = marker->time;
  DropMarker(call.world, marker);
}

}  // namespace cuaudit::sim
