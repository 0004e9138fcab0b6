// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/graph/plan.h"
#include "faults/sim/kernel/arguments.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/oracle/oracle.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/order/tell.h"

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

}  // namespace cuaudit::sim
