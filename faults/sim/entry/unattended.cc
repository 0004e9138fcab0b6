// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"
#include "faults/sim/world.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint32_t kMostRounds = 10;

// Ticket of the first operation that the CPU may wait for; 0: none.
std::uint64_t FirstAwaited(const World& world) {
  std::uint64_t first = 0;
  for (const Stream* const stream : world.busy_streams) {
    for (const Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
      if (first != 0 && operation->ticket >= first) break;
      if ((stream->busy && operation == stream->head) || !MayBeAwaited(world, operation->work)) continue;
      first = operation->ticket;
      break;
    }
  }
  return first;
}

}  // namespace

std::uint64_t RunUnattended(World* at, Attendance* attendance) noexcept {
  World& world = *at;
  if (world.closed.load(std::memory_order_relaxed) || !UsableHere(world)) return 0;
  const std::uint64_t serial = ThreadSerial();
  pthread_mutex_lock(&world.lock);
  Call call{world, world.FindThread(serial), nullptr, false};
  if (call.thread == nullptr) {
    pthread_mutex_unlock(&world.lock);
    return 0;
  }
  const std::uint64_t first = FirstAwaited(world);
  const bool waits = first != 0 && first < attendance->since;
  attendance->rounds = waits ? attendance->rounds + 1 : 0;
  if (!waits) attendance->since = world.next_ticket;
  const bool due = waits && (world.calls == attendance->calls || attendance->rounds >= kMostRounds);
  attendance->calls = world.calls;
  std::uint64_t count = 0;
  const bool counted = due && attendance->forced != nullptr;
  if (counted) attendance->forced->fetch_add(1, std::memory_order_relaxed);
  // Work that is queued meanwhile starts a wait of its own.
  for (std::uint64_t awaited = due ? first : 0; awaited != 0 && awaited < attendance->since; awaited = FirstAwaited(world)) {
    if (!RunOne(world, call.thread)) break;
    ++count;
  }
  if (counted && count == 0) attendance->forced->fetch_sub(1, std::memory_order_relaxed);
  if (due) attendance->rounds = 0;
  Leave(call);
  return count;
}

// A wait that the fault plan refuses.
//
// On a device, work goes on whether or not the host waits for it. In a simulated world it would not. A program that was refused a wait
// could then hang when it looks at memory or waits for a host function.

namespace {

using driver::BaseId;

bool IsQuery(BaseId base) { return base == BaseId::StreamQuery || base == BaseId::EventQuery; }
bool IsWait(BaseId base) {
  return base == BaseId::CtxSynchronize || base == BaseId::StreamSynchronize || base == BaseId::EventSynchronize || IsQuery(base);
}

template <typename Handle>
Handle As(std::uint64_t argument) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(argument));  // NOLINT(performance-no-int-to-ptr)
}

// Runs what is queued now in the streams of `context` for which `wanted` is true, as far as it can run.
template <typename Wanted>
void RunStreams(Call& call, const Context* context, const Wanted& wanted) {
  World& world = call.world;
  const std::uint64_t handle = context->handle;
  const std::uint64_t limit = world.next_ticket;
  // RunToward releases the lock for a host function, and another thread may change the list of streams meanwhile. So each round searches
  // the list anew. Streams whose first operation is older than `least` were found stuck.
  for (std::uint64_t least = 0; world.Find<Context>(handle) == context;) {
    Stream* next = nullptr;
    for (Stream* const stream : world.busy_streams) {
      if (stream->owner != context || !wanted(stream) || IsReached({stream, limit}) || stream->head->ticket < least) continue;
      if (next == nullptr || stream->head->ticket < next->head->ticket) next = stream;
    }
    if (next == nullptr) return;
    const std::uint64_t ticket = next->head->ticket;
    Pin(next);
    RunToward(world, call.thread, {next, limit});
    const bool stuck = next->head != nullptr && next->head->ticket == ticket;
    Unpin(world, next);
    least = stuck ? ticket + 1 : 0;
  }
}

void RefuseContext(Call& call, const Context* context, const GreenContext* green) {
  {
    const Supposing supposing(call.world);
    TellContext(call.world, context, false, green);
  }
  RunStreams(call, context, [&](const Stream* stream) { return IsStreamOf(stream, context, green); });
}

void RefuseStream(Call& call, Stream* stream, bool runs) {
  if (stream->capture != nullptr) return;
  {
    const Supposing supposing(call.world);
    if (stream->legacy) {
      TellContext(call.world, stream->owner, true);
    } else {
      TellStream(call.world, stream);
    }
  }
  if (!runs) return;
  if (stream->legacy) {
    RunStreams(call, stream->owner, [](const Stream* one) { return one->blocking; });
  } else {
    RunToward(call.world, call.thread, {stream, call.world.next_ticket});
  }
}

void RefuseEvent(Call& call, const Event* event, bool runs) {
  if (event->marker == nullptr || event->capture != nullptr) return;
  {
    const Supposing supposing(call.world);
    Tell(call.world, event->marker->clock);
  }
  if (runs && !event->marker->done) RunToward(call.world, call.thread, {event->marker->stream, event->marker->ticket + 1});
}

// The context that the call names, or else the current one.
void RefuseContextCall(Call& call, CUcontext named) {
  const Context* context = named == nullptr ? call.context : call.world.Find<Context>(named);
  if (context == nullptr) return;
  const GreenContext* const green = named == nullptr ? CurrentGreen(call.world, call.thread) : context->green;
  if (named != nullptr && green != nullptr) context = green->primary;
  RefuseContext(call, context, green);
}

}  // namespace

void NoteRefusedCall(World* world, driver::CallId id, const std::uint64_t* arguments) noexcept {
  const BaseId base = driver::BaseOf(id);
  if (!IsWait(base)) return;
  Call call{*world, nullptr, nullptr, driver::Row(id).per_thread};
  if (Enter(call, Needs::Object) != CUDA_SUCCESS) return;
  // A program that only queries may hold a lock that a host function takes. Then the attending thread runs the work.
  const bool runs = !IsQuery(base) || !world->attended;
  if (base == BaseId::CtxSynchronize) {
    CUcontext named = nullptr;
#ifdef CUAUDIT_HAS_CtxSynchronize_v2
    if (id == CallId::CtxSynchronize_v2) named = As<CUcontext>(arguments[0]);
#endif
    RefuseContextCall(call, named);
  } else if (base == BaseId::StreamSynchronize || base == BaseId::StreamQuery) {
    CUresult result = CUDA_SUCCESS;
    if (Stream* const stream = FindStream(call, As<CUstream>(arguments[0]), &result)) RefuseStream(call, stream, runs);
  } else if (const Event* const event = world->Find<Event>(As<CUevent>(arguments[0]))) {
    RefuseEvent(call, event, runs);
  }
  Leave(call);
}

}  // namespace cuaudit::sim
