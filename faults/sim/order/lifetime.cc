// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/order/lifetime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "faults/sim/order/clock.h"
#include "faults/sim/order/history.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {
namespace {

using driver::MisuseRule;

bool IsHostMemory(const Range* range) { return range->kind == Kind::PinnedMemory || range->kind == Kind::HostRegistration; }

void TellWhole(void* argument, std::uint64_t, std::uint64_t, const Trace& earlier) {
  const Teller& teller = *static_cast<Teller*>(argument);
  TellMisuse(teller.world, teller.rule, teller.range->kind, teller.range->base, teller.range->asked, teller.origin, earlier.origin,
             IsSupposed(teller.world, earlier.stamp));
}

}  // namespace

History* HistoryOf(World& world, Range* range) noexcept {
  History** const at = range->physical != nullptr ? &range->physical->backing->history : &range->history;
  if (*at == nullptr) *at = MakeHistory(world);
  if (*at != nullptr) Refresh(world, *at);
  return *at;
}

void ObserveAllocation(World& world, Stream* stream, Range* range) noexcept {
  if (world.on_misuse == nullptr) return;
  History* const history = HistoryOf(world, range);
  if (history != nullptr) history->birth = Trace{Tick(world, stream), Origin(world)};
}

void ObserveRelease(World& world, const Range* range) noexcept {
  if (world.on_misuse == nullptr) return;
  const History* const history = range->physical != nullptr ? range->physical->backing->history : range->history;
  if (history == nullptr) return;
  BeginTelling(world);
  Teller teller{world, range, IsHostMemory(range) ? MisuseRule::HostFreedInUse : MisuseRule::FreedInUse, Origin(world)};
  TellUnordered(world, history, nullptr, Conflict{TellWhole, &teller});
}

bool HasGone(World& world, std::uint64_t address, std::uint64_t bytes) noexcept {
  static const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const Range* const range = world.ranges.Find(address);
  if (range == nullptr || range->kind != Kind::HostRegistration) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(range->bytes) + (address - range->base);
  const std::uintptr_t begin = at & ~(page - 1);
  const int before = errno;
  const bool gone =
      msync(reinterpret_cast<void*>(begin), at + bytes - begin, MS_ASYNC) != 0 && errno == ENOMEM;  // MS_ASYNC changes nothing
  errno = before;
  if (!gone) return false;
  const std::uint64_t now = Origin(world);
  const std::uint64_t queued_by = world.running_for == now ? 0 : world.running_for;
  TellMisuse(world, MisuseRule::HostFreedInUse, range->kind, range->base, range->asked, now, queued_by);
  return true;
}

void ForgetHistory(World& world, Range* range) noexcept {
  FreeHistory(world, range->history);
  range->history = nullptr;
}

void CheckLifetime(World& world, const Stream* stream, const Range* range, const History* history, const Trace& trace) noexcept {
  if (range->freeing) {
    TellMisuse(world, MisuseRule::FreedInUse, range->kind, range->base, range->asked, trace.origin, history->death.origin);
  }
  if (!IsBehind(world, stream, history->birth.stamp)) {
    TellMisuse(world, MisuseRule::UsedBeforeAllocated, range->kind, range->base, range->asked, trace.origin, history->birth.origin,
               IsSupposed(world, history->birth.stamp));
  }
}

void CheckFree(World& world, const Stream* stream, CUdeviceptr address, const Trace& trace) noexcept {
  Range* const range = world.ranges.Find(address);
  History* const history = range == nullptr ? nullptr : HistoryOf(world, range);
  if (history == nullptr) return;
  Teller teller{world, range, MisuseRule::FreedInUse, trace.origin};
  TellUnordered(world, history, stream, Conflict{TellWhole, &teller});
  if (!IsBehind(world, stream, history->birth.stamp)) {
    TellMisuse(world, MisuseRule::UsedBeforeAllocated, range->kind, range->base, range->asked, trace.origin, history->birth.origin,
               IsSupposed(world, history->birth.stamp));
  }
  history->death = trace;
}

namespace {

constexpr std::size_t kMost = 1024;
constexpr std::uint64_t kBefore = 64;  // bytes; programs that index from 1 hold a pointer to before their first element

bool IsBeforeSomething(const World& world, std::uint64_t address) {
  const Range* const after = world.ranges.FirstFrom(address);
  return after != nullptr && after->base - address <= kBefore;
}

bool IsReserved(const World& world, std::uint64_t address) {
  for (const Reservation* at = world.reservations; at != nullptr; at = at->next) {
    if (address - at->base < at->size) return true;
  }
  return false;
}

}  // namespace

void RememberFreed(World& world, const Range* range) noexcept {
  if (world.on_misuse == nullptr || range->region != &world.device_memory) return;
  const Kind kind = range->kind == Kind::None ? Kind::DeviceMemory : range->kind;  // a variable
  Freed freed{range->base, range->size, kind, {}};
  if (range->history != nullptr) freed.death = range->history->death;
  if (freed.death.stamp.slot == 0) freed.death.origin = Origin(world);
  if (world.freed.size() < kMost) {
    (void)world.freed.Push(world.arena, freed);
  } else {
    world.freed[world.freed_next] = freed;
  }
  world.freed_next = (world.freed_next + 1) % kMost;
}

const Freed* FindFreed(const World& world, std::uint64_t address) noexcept {
  if (world.freed.empty() || !world.device_memory.Contains(address) || world.ranges.Find(address) != nullptr) return nullptr;
  const std::size_t count = world.freed.size();
  for (std::size_t i = 1; i <= count; ++i) {
    const Freed& freed = world.freed[(world.freed_next + count - i) % count];
    if (address - freed.base < freed.bytes) return IsBeforeSomething(world, address) || IsReserved(world, address) ? nullptr : &freed;
  }
  return nullptr;
}

std::uint64_t Origin(const World& world) noexcept { return world.origin == nullptr ? 0 : world.origin(world.observer); }

void TellMisuse(World& world, driver::MisuseRule rule, Kind kind, std::uint64_t at, std::uint64_t bytes, std::uint64_t origin,
                std::uint64_t other, bool refused_wait) noexcept {
  if (world.on_misuse == nullptr) return;
  for (const Told& told : world.told) {
    if (told.rule == rule && told.other == other && (other != 0 || told.at == at)) return;
  }
  (void)world.told.Push(world.arena, Told{rule, other, at});
  driver::Misuse misuse;
  misuse.rule = rule;
  misuse.kind = kind;
  misuse.object = at;
  misuse.bytes = bytes;
  misuse.origin = origin;
  misuse.other = other;
  misuse.refused_wait = refused_wait;
  world.on_misuse(world.observer, misuse);
}

}  // namespace cuaudit::sim
