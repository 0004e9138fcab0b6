// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/access.h"
#include "faults/sim/arguments.h"
#include "faults/sim/graph_memory.h"
#include "faults/sim/oracle.h"
#include "faults/sim/plan.h"

namespace cuaudit::sim {
namespace {

using driver::MisuseRule;

constexpr std::size_t kMostSteps = 1024;  // of a plan whose steps are compared with each other

// For each step the set of steps that are ordered before it, one bit each.
class Before {
 public:
  Before(World& world, const Plan& plan) noexcept : world_(world), words_((plan.steps.size() + 63) / 64), count_(plan.steps.size()) {
    bits_ = static_cast<std::uint64_t*>(world.arena.Allocate(Bytes()));
    if (bits_ == nullptr) return;
    Fill(plan, 0, count_, count_);
  }
  ~Before() {
    if (bits_ != nullptr) world_.arena.Free(bits_, Bytes());
  }
  Before(const Before&) = delete;
  Before& operator=(const Before&) = delete;
  bool good() const noexcept { return bits_ != nullptr; }
  bool Has(std::size_t step, std::size_t earlier) const noexcept { return (Row(step)[earlier / 64] >> (earlier % 64) & 1) != 0; }

 private:
  std::size_t Bytes() const noexcept { return count_ * words_ * sizeof(std::uint64_t); }
  std::uint64_t* Row(std::size_t step) const noexcept { return bits_ + step * words_; }
  void Add(std::size_t step, std::size_t earlier) noexcept {
    for (std::size_t i = 0; i < words_; ++i) Row(step)[i] |= Row(earlier)[i];
    Row(step)[earlier / 64] |= std::uint64_t{1} << (earlier % 64);
  }
  // Steps inside another come after what that one comes after; who depends on it comes after all of them.
  void Fill(const Plan& plan, std::size_t begin, std::size_t end, std::size_t outer) noexcept {
    for (std::size_t i = begin; i < end; ++i) {
      const Step& step = plan.steps[i];
      if (outer != count_) Add(i, outer);
      for (std::uint32_t k = 0; k < step.edges; ++k) {
        const std::size_t earlier = plan.edges[step.first_edge + k];
        for (std::size_t inner = 0; inner <= plan.steps[earlier].inner; ++inner) Add(i, earlier + inner);
      }
      if (step.inner != 0) Fill(plan, i + 1, i + 1 + step.inner, i);
      i += step.inner;
    }
  }
  World& world_;
  std::size_t words_;
  std::size_t count_;
  std::uint64_t* bits_ = nullptr;
};

struct Touch {
  std::uint32_t step;
  Access access;
};

std::uint64_t EndOf(const Access& access) { return access.address + (access.rows - 1) * access.pitch + access.bytes; }

// Whether any rows of the two meet. Each row of the one with fewer is laid against the other's even grid.
bool Overlap(const Access& one, const Access& two) {
  if (EndOf(one) <= two.address || EndOf(two) <= one.address) return false;
  const Access& few = one.rows <= two.rows ? one : two;
  const Access& many = one.rows <= two.rows ? two : one;
  for (std::uint64_t row = 0; row < few.rows; ++row) {
    const std::uint64_t begin = few.address + row * few.pitch;
    const std::uint64_t end = begin + few.bytes;
    if (end <= many.address) continue;
    std::uint64_t at = 0;  // the last row of the other that begins before `end`
    if (many.rows > 1 && many.pitch != 0) at = (end - 1 - many.address) / many.pitch;
    if (at >= many.rows) at = many.rows - 1;
    if (many.address + at * many.pitch + many.bytes > begin) return true;
  }
  return false;
}

void Collect(World& world, const Plan& plan, Vector<Touch>* touches) {
  AccessList list;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) i += step.inner;
    if (!step.enabled) continue;
    list.Truncate(0);
    (void)ListAccesses(world, step.work, &list);
    for (const Access& access : list) (void)touches->Push(world.arena, Touch{static_cast<std::uint32_t>(i), access});
  }
  list.Clear(world.arena);
}

// What uses the memory of an allocation or free node comes after the one and before the other.
void CompareLifetimes(World& world, const Plan& plan, const Before& before, const Vector<Touch>& touches) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const GraphMemory* const memory = step.work.memory;
    if (memory == nullptr) continue;
    const bool alloc = step.work.type == WorkType::Alloc;
    const Access whole{memory->address, memory->size, AccessMode::Use};
    for (const Touch& touch : touches) {
      const std::uint32_t late = alloc ? touch.step : static_cast<std::uint32_t>(i);
      const std::uint32_t early = alloc ? static_cast<std::uint32_t>(i) : touch.step;
      if (before.Has(late, early) || !Overlap(touch.access, whole)) continue;
      const std::uint64_t user = plan.steps[touch.step].origin;
      TellMisuse(world, alloc ? MisuseRule::UsedBeforeAllocated : MisuseRule::FreedInUse, Kind::StreamOrderedMemory, memory->address,
                 memory->size, alloc ? user : step.origin, alloc ? step.origin : user);
    }
  }
}

void CompareSteps(World& world, const Plan& plan) {
  if (plan.steps.size() > kMostSteps) return;
  Vector<Touch> touches;
  Collect(world, plan, &touches);
  const Before before(world, plan);
  for (std::size_t i = 0; before.good() && i < touches.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const Touch& later = touches[i];
      const Touch& earlier = touches[k];
      if (later.access.mode != AccessMode::Write && earlier.access.mode != AccessMode::Write) continue;
      if (later.access.mode == AccessMode::Use || earlier.access.mode == AccessMode::Use) continue;
      if (later.step == earlier.step || before.Has(later.step, earlier.step) || !Overlap(later.access, earlier.access)) continue;
      const Range* const range = world.ranges.Find(later.access.address);
      TellMisuse(world, MisuseRule::UnorderedAccess, range == nullptr ? Kind::None : range->kind, later.access.address, later.access.bytes,
                 plan.steps[later.step].origin, plan.steps[earlier.step].origin);
    }
  }
  if (before.good()) CompareLifetimes(world, plan, before, touches);
  touches.Clear(world.arena);
}

}  // namespace

void ObservePlan(World& world, Plan* plan, std::uint64_t origin) noexcept {
  if (!plan->compared) CompareSteps(world, *plan);
  plan->compared = true;
  for (std::size_t i = 0; i < plan->steps.size(); ++i) {
    const Step& step = plan->steps[i];
    if (step.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) i += step.inner;
    if (!step.enabled) continue;
    if (step.type == CU_GRAPH_NODE_TYPE_KERNEL && KernelSymbol(world, step.work.kernel) == nullptr) {
      TellMisuse(world, MisuseRule::DestroyedInUse, Kind::Module, reinterpret_cast<std::uintptr_t>(step.work.kernel.func), 0, origin,
                 step.origin);
    }
    const bool event = step.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || step.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    if (event && world.Find<Event>(step.work.event) == nullptr) {
      TellMisuse(world, MisuseRule::DestroyedInUse, Kind::Event, reinterpret_cast<std::uintptr_t>(step.work.event), 0, origin, step.origin);
    }
  }
  for (const Pointee& pointee : plan->pointees) {
    const Step& step = plan->steps[pointee.step];
    const Range* const range = world.ranges.Find(pointee.address);
    if (!step.enabled || (range != nullptr && (range->id == pointee.id || range->kind == Kind::Mapping))) continue;
    TellMisuse(world, MisuseRule::GraphReadsFreed, pointee.kind, pointee.address, pointee.bytes, origin, step.origin);
  }
}

void RememberPointees(World& world, Plan* plan, std::size_t first, std::size_t count) noexcept {
  plan->compared = false;
  if (world.on_misuse == nullptr) return;
  std::size_t kept = 0;
  for (const Pointee& pointee : plan->pointees) {
    if (pointee.step < first || pointee.step >= first + count) plan->pointees[kept++] = pointee;
  }
  plan->pointees.Truncate(kept);
  AccessList list;
  for (std::size_t i = 0; i < first + count; ++i) {
    const std::size_t step = i;
    if (plan->steps[i].type == CU_GRAPH_NODE_TYPE_CONDITIONAL) i += plan->steps[i].inner;  // nobody knows which bodies will run
    if (step < first) continue;
    list.Truncate(0);
    (void)ListAccesses(world, plan->steps[step].work, &list);
    for (const Access& access : list) {
      const Range* const range = world.ranges.Find(access.address);
      if (range == nullptr || range->kind == Kind::HostRegistration) continue;
      if (range->graph != nullptr) continue;  // it comes back with the next launch
      (void)plan->pointees.Push(world.arena, Pointee{static_cast<std::uint32_t>(step), range->kind, range->base, range->asked, range->id});
    }
  }
  list.Clear(world.arena);
}

}  // namespace cuaudit::sim
