// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>

#include "faults/sim/graph/executable.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/operation/access.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
namespace {

using driver::MisuseRule;

// Where the kernel runs: a function belongs to a context, a CUkernel to every one.
const Context* ContextOf(const World& world, const Stream* stream, const Work& work) {
  const Function* const function = world.Find<Function>(work.kernel.func);
  return function != nullptr ? function->module->owner : stream->owner;
}

bool MayUse(const Context* context, const Range* range) {
  if (range->kind == Kind::StreamOrderedMemory) return range->pool == nullptr || range->pool->access[context->device] != 0;
  if (range->kind != Kind::DeviceMemory || range->owner == nullptr || range->owner->device == context->device) return true;
  return context->peers.Contains(range->owner->handle);
}

template <typename T>
bool IsForeign(const World& world, const Context* context, std::uint64_t handle) {
  const T* const object = world.Find<T>(handle);
  return object != nullptr && object->owner != nullptr && object->owner != context;
}

std::uint64_t WordAt(const Arguments& arguments, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, arguments.values + at, sizeof(value));
  return value;
}

// The parameters of 8 bytes, which may be pointers; a struct of that size is taken for one.
template <typename F>
void ForEachPointer(const World& world, const Work& work, const F& each) {
  const Arguments* const arguments = work.type == WorkType::Kernel ? work.arguments : nullptr;
  if (arguments == nullptr || arguments->values == nullptr) return;
  const cuaudit_kernel* const host = arguments->by_host ? arguments->host : nullptr;
  const Symbol* const symbol = arguments->by_host ? nullptr : KernelSymbol(world, work.kernel);
  if (host == nullptr && (symbol == nullptr || symbol->parameters.size() < arguments->count)) return;
  for (std::uint32_t i = 0; i < arguments->count; ++i) {
    const std::size_t bytes = host != nullptr ? host->parameters[i].bytes : symbol->parameters[i].size;
    if (bytes != sizeof(std::uint64_t)) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, arguments->pointers[i], sizeof(value));
    each(value);
  }
}

// True for a pointer one past the end of another argument's memory: a pair of iterators.
bool IsEndOfAnother(const World& world, const Arguments& arguments, std::uint64_t address) {
  const Range* const before = world.ranges.Find(address - 1);
  if (before == nullptr) return false;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= arguments.bytes; at += sizeof(std::uint64_t)) {
    if (world.ranges.Find(WordAt(arguments, at)) == before) return true;
  }
  return false;
}

bool IsRemembered(const Plan* plan, std::size_t step, std::uint64_t base) {
  if (plan == nullptr) return false;
  for (const Pointee& pointee : plan->pointees) {
    if (pointee.step == step && pointee.address == base) return true;
  }
  return false;
}

}  // namespace

// A stream-ordered free that the host does not know to be done may not have run yet, so it is reported as not run.
void ObserveFreed(World& world, const Work& work, std::uint64_t origin, const Plan* plan, std::size_t step) noexcept {
  const Arguments* const arguments = work.type == WorkType::Kernel && !world.freed.empty() ? work.arguments : nullptr;
  if (arguments == nullptr || arguments->values == nullptr || arguments->by_host) return;
  const Symbol* const symbol = KernelSymbol(world, work.kernel);
  if (symbol == nullptr || !symbol->parameters_known) return;
  for (std::size_t i = 0; i < symbol->parameters.size(); ++i) {
    const std::size_t at = symbol->parameters[i].offset;
    if (symbol->parameters[i].size != sizeof(std::uint64_t) || at + sizeof(std::uint64_t) > arguments->bytes) continue;
    const std::uint64_t value = WordAt(*arguments, at);
    const Freed* const freed = FindFreed(world, value);
    if (freed == nullptr || IsEndOfAnother(world, *arguments, value) || IsRemembered(plan, step, freed->base)) continue;
    const MisuseRule rule = IsKnown(world, freed->death.stamp) ? MisuseRule::UsedAfterFree : MisuseRule::FreedInUse;
    TellMisuse(world, rule, freed->kind, freed->base, freed->bytes, origin, freed->death.origin);
  }
}

void ObserveArguments(World& world, const Stream* stream, const Work& work, std::uint64_t origin) noexcept {
  if (work.type != WorkType::Kernel) return;
  const Context* const context = ContextOf(world, stream, work);
  ForEachPointer(world, work, [&](std::uint64_t value) {
    const Range* const range = world.ranges.Find(value);
    if (range != nullptr && !MayUse(context, range)) {
      TellMisuse(world, MisuseRule::CrossContext, range->kind, range->base, range->asked, origin, 0);
    } else if (IsForeign<Texture>(world, context, value)) {
      TellMisuse(world, MisuseRule::CrossContext, Kind::TextureObject, value, 0, origin, 0);
    } else if (IsForeign<Surface>(world, context, value)) {
      TellMisuse(world, MisuseRule::CrossContext, Kind::SurfaceObject, value, 0, origin, 0);
    }
  });
}

namespace {

using driver::MisuseRule;

constexpr std::size_t kMostSteps = 1024;  // most steps of a plan that are compared with each other

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
    const Box whole{memory->address, memory->size};
    for (const Touch& touch : touches) {
      const std::uint32_t late = alloc ? touch.step : static_cast<std::uint32_t>(i);
      const std::uint32_t early = alloc ? static_cast<std::uint32_t>(i) : touch.step;
      if (before.Has(late, early) || !Overlap(touch.access.box, whole)) continue;
      const std::uint64_t user = plan.steps[touch.step].origin;
      TellMisuse(world, alloc ? MisuseRule::UsedBeforeAllocated : MisuseRule::FreedInUse, Kind::StreamOrderedMemory, memory->address,
                 memory->size, alloc ? user : step.origin, alloc ? step.origin : user);
    }
  }
}

void CompareTouches(World& world, const Plan& plan, const Before& before, const Touch& one, const Touch& two) {
  if (one.access.mode != AccessMode::Write && two.access.mode != AccessMode::Write) return;
  if (one.access.mode == AccessMode::Use || two.access.mode == AccessMode::Use) return;
  const Touch& later = one.step > two.step ? one : two;
  const Touch& earlier = one.step > two.step ? two : one;
  if (later.step == earlier.step || before.Has(later.step, earlier.step) || !Overlap(later.access.box, earlier.access.box)) return;
  const Range* const range = world.ranges.Find(later.access.box.address);
  TellMisuse(world, MisuseRule::UnorderedAccess, range == nullptr ? Kind::None : range->kind, later.access.box.address,
             later.access.box.bytes, plan.steps[later.step].origin, plan.steps[earlier.step].origin);
}

// In order of addresses, so that only what begins before the other's end is compared.
void CompareSteps(World& world, const Plan& plan) {
  if (plan.steps.size() > kMostSteps) return;
  Vector<Touch> touches;
  Collect(world, plan, &touches);
  const Before before(world, plan);
  if (before.good()) CompareLifetimes(world, plan, before, touches);
  std::sort(touches.begin(), touches.end(), [](const Touch& one, const Touch& two) {
    return one.access.box.address != two.access.box.address ? one.access.box.address < two.access.box.address : one.step < two.step;
  });
  for (std::size_t i = 0; before.good() && i < touches.size(); ++i) {
    const std::uint64_t end = EndOf(touches[i].access.box);
    for (std::size_t k = i + 1; k < touches.size() && touches[k].access.box.address < end; ++k) {
      CompareTouches(world, plan, before, touches[i], touches[k]);
    }
  }
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

}  // namespace cuaudit::sim
