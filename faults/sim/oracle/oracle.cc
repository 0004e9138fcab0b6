// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/oracle/oracle.h"

#include "faults/sim/graph/executable.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/operation/access.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
namespace {

using driver::MisuseRule;

// Mappings of one physical allocation share its bytes and history, so addresses count from the allocation's beginning.
std::uint64_t OffsetOf(const Range* range) { return range->physical != nullptr ? range->base : 0; }

void TellOverlap(void* argument, std::uint64_t begin, std::uint64_t end, const Trace& earlier) {
  const Teller& teller = *static_cast<Teller*>(argument);
  TellMisuse(teller.world, teller.rule, teller.range->kind, begin + OffsetOf(teller.range), end - begin, teller.origin, earlier.origin,
             IsSupposed(teller.world, earlier.stamp));
}

constexpr std::uint64_t kFewRows = 8;  // up to this many rows are noted one by one

// The part of one row that lies in `range`.
void NoteInterval(World& world, const Stream* stream, Range* range, History* history, AccessMode mode, std::uint64_t begin,
                  std::uint64_t end, const Trace& trace) {
  Teller teller{world, range, MisuseRule::UnorderedAccess, trace.origin};
  const Conflict conflict{TellOverlap, &teller};
  const std::uint64_t offset = OffsetOf(range);
  if (mode == AccessMode::Read) {
    NoteRead(world, history, stream, begin - offset, end - offset, trace, conflict);
  } else {
    NoteWrite(world, history, stream, begin - offset, end - offset, trace, conflict);
  }
}

// Bytes without a gap, of whatever allocations they are.
void NoteRow(World& world, const Stream* stream, std::uint64_t begin, std::uint64_t bytes, AccessMode mode, const Trace& trace) {
  const std::uint64_t end = begin + bytes;
  while (begin < end) {
    Range* const range = world.ranges.Find(begin);
    if (range == nullptr) return;  // the client's own memory, or memory that is gone: the operation will fail
    const std::uint64_t left = range->base + range->size - begin;
    const std::uint64_t until = end - begin < left ? end : begin + left;
    History* const history = HistoryOf(world, range);
    if (history == nullptr) return;
    CheckLifetime(world, stream, range, history, trace);
    if (!IsTraced(world, stream)) {
      // It would only hide what was there before it.
    } else if (mode == AccessMode::Use) {
      NoteUse(world, history, trace);
    } else {
      NoteInterval(world, stream, range, history, mode, begin, until, trace);
    }
    begin = until;
  }
}

// All of the box lies in one allocation.
void NoteInside(World& world, const Stream* stream, Range* range, Box box, AccessMode mode, const Trace& trace) {
  History* const history = HistoryOf(world, range);
  if (history == nullptr) return;
  CheckLifetime(world, stream, range, history, trace);
  if (!IsTraced(world, stream)) return;
  Teller teller{world, range, MisuseRule::UnorderedAccess, trace.origin};
  box.address -= OffsetOf(range);
  NotePatch(world, history, stream, Patch{box, trace, mode == AccessMode::Write}, Conflict{TellOverlap, &teller});
}

// Rows of one slice. Those that lie in one allocation are noted together, if they are many.
void NoteRows(World& world, const Stream* stream, const Box& box, AccessMode mode, const Trace& trace) {
  for (std::uint64_t row = 0; row < box.rows;) {
    const std::uint64_t begin = box.address + row * box.pitch;
    Range* const range = world.ranges.Find(begin);
    if (range == nullptr) return;
    const std::uint64_t left = range->base + range->size - begin;
    std::uint64_t together = box.rows > 1 && box.bytes <= left ? (left - box.bytes) / box.pitch + 1 : 0;
    if (together > box.rows - row) together = box.rows - row;
    if (together <= kFewRows) {
      NoteRow(world, stream, begin, box.bytes, mode, trace);
      ++row;
      continue;
    }
    NoteInside(world, stream, range, Box{begin, box.bytes, together, box.pitch}, mode, trace);
    row += together;
  }
}

void NoteBox(World& world, const Stream* stream, const Box& box, AccessMode mode, const Trace& trace) {
  const bool gaps = box.rows > 1 || box.slices > 1;
  Range* const range = gaps ? world.ranges.Find(box.address) : nullptr;
  if (!gaps || mode == AccessMode::Use) {
    NoteRow(world, stream, box.address, box.bytes, mode, trace);
  } else if (range != nullptr && box.slices > 1 && EndOf(box) <= range->base + range->size) {
    NoteInside(world, stream, range, box, mode, trace);
  } else {
    for (std::uint64_t slice = 0; slice < box.slices; ++slice) {
      NoteRows(world, stream, Box{box.address + slice * box.slice_pitch, box.bytes, box.rows, box.pitch}, mode, trace);
    }
  }
}

void NoteAccesses(World& world, const Stream* stream, const Work& work, bool staged, const Trace& trace) {
  AccessList list;
  (void)ListAccesses(world, work, &list);
  for (const Access& access : list) {
    if (!staged || access.mode != AccessMode::Read) NoteBox(world, stream, access.box, access.mode, trace);
  }
  list.Clear(world.arena);
}

// The accesses of a conditional node's body are unknown until it runs.
void NoteLaunch(World& world, const Stream* stream, const Operation* operation, const Trace& trace) {
  Plan* const plan = operation->work.launch.plan;
  ObservePlan(world, plan, trace.origin);
  for (std::size_t i = 0; i < plan->steps.size(); ++i) {
    const Step& step = plan->steps[i];
    if (step.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) i += step.inner;
    if (!step.enabled) continue;
    if (step.work.type == WorkType::Free) CheckFree(world, stream, step.work.address, trace);
    NoteAccesses(world, stream, step.work, false, trace);
    ObserveArguments(world, stream, step.work, trace.origin);
    ObserveFreed(world, step.work, trace.origin, plan, static_cast<std::size_t>(&step - plan->steps.begin()));
  }
}

// Any thread may write a value in memory.
bool Awaits(const Work& work) {
  if (work.type == WorkType::Await) return true;
  if (work.type == WorkType::Batch) {
    for (unsigned i = 0; i < work.batch.count; ++i) {
      const CUstreamBatchMemOpType operation = work.batch.paramArray[i].operation;
      if (operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) return true;
    }
  }
  if (work.type != WorkType::Launch) return false;
  for (const Step& step : work.launch.plan->steps) {
    if (Awaits(step.work)) return true;
  }
  return false;
}

}  // namespace

void ObserveWork(World& world, Stream* stream, Operation* operation, bool staged) noexcept {
  if (world.on_misuse == nullptr) return;
  const Work& work = operation->work;
  BeginTelling(world);
  Trace trace;
  trace.origin = Origin(world);
  if (work.type == WorkType::Wait) Join(world, stream, work.marker->clock);
  for (const Marker* const marker : operation->markers) {
    if (marker != nullptr && marker->ticket != operation->ticket) Join(world, stream, marker->clock);
  }
  trace.stamp = Tick(world, stream);
  if (Awaits(work)) LoseTrack(world, stream);
  if (work.type == WorkType::Record) work.marker->clock = ClockOf(world, stream);
  for (Marker* const marker : operation->markers) {
    if (marker != nullptr && marker->ticket == operation->ticket) marker->clock = ClockOf(world, stream);
  }
  // Once it has run, the CPU may know of it without a call: from its host function, or by reading the value.
  const bool seen = MayBeAwaited(world, work) && (world.on_awaited != nullptr || work.type == WorkType::Write);
  if (RunsHostFunctions(work) || seen) operation->clock = ClockOf(world, stream);
  if (work.type == WorkType::Free) {
    CheckFree(world, stream, work.address, trace);
  } else if (work.type == WorkType::Launch) {
    NoteLaunch(world, stream, operation, trace);
  } else {
    NoteAccesses(world, stream, work, staged, trace);
    ObserveArguments(world, stream, work, trace.origin);
    ObserveFreed(world, work, trace.origin);
  }
}

namespace {

bool IsHostVisible(const World& world, std::uint64_t address) {
  const Range* const range = world.ranges.Find(address);
  return range != nullptr && range->host_visible;
}

// True for a kernel with such a pointer argument, whether or not a host function stands for it.
bool UsesHost(const World& world, const Work& work) {
  const Arguments* const arguments = work.arguments;
  const Symbol* const symbol = arguments == nullptr ? nullptr : KernelSymbol(world, work.kernel);
  for (std::uint32_t i = 0; symbol != nullptr && i < arguments->count && i < symbol->parameters.size(); ++i) {
    std::uint64_t value = 0;
    if (symbol->parameters[i].size != sizeof(value)) continue;
    std::memcpy(&value, arguments->pointers[i], sizeof(value));
    if (IsHostVisible(world, value)) return true;
  }
  return false;
}

bool WritesHost(const World& world, const CUDA_MEMCPY3D& copy) {
  if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) return false;
  return IsHostVisible(world, copy.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(copy.dstHost) : copy.dstDevice);
}

}  // namespace

bool RunsHostFunctions(const Work& work) noexcept {
  if (work.type == WorkType::HostFunction || work.type == WorkType::Callback) return true;
  if (work.type != WorkType::Launch) return false;
  for (const Step& step : work.launch.plan->steps) {
    if (step.type == CU_GRAPH_NODE_TYPE_HOST) return true;
  }
  return false;
}

bool MayBeAwaited(const World& world, const Work& work) noexcept {
  switch (work.type) {
    case WorkType::HostFunction:
    case WorkType::Callback:
    case WorkType::Batch:
      return true;
    case WorkType::Kernel:
      return (work.arguments != nullptr && work.arguments->host != nullptr) || UsesHost(world, work);
    case WorkType::Copy:
      return WritesHost(world, work.copy);
    case WorkType::Fill:
      return IsHostVisible(world, work.fill.dst);
    case WorkType::Write:
      return work.value.count != 0 || IsHostVisible(world, work.value.address);
    case WorkType::Launch:
      for (const Step& step : work.launch.plan->steps) {
        if (step.type == CU_GRAPH_NODE_TYPE_HOST || MayBeAwaited(world, step.work)) return true;
      }
      return false;
    default:
      return false;
  }
}

void AskForAttendance(World& world, const Work& work) noexcept {
  if (world.attended || world.on_awaited == nullptr || !MayBeAwaited(world, work)) return;
  world.attended = world.on_awaited(world.observer);
  if (!world.attended) world.on_awaited = nullptr;
}

}  // namespace cuaudit::sim
