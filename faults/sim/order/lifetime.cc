// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/order/lifetime.h"

#include "faults/sim/order/clock.h"
#include "faults/sim/order/tell.h"

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

}  // namespace cuaudit::sim
