// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <memory>
#include <set>
#include <type_traits>

#include "faults/driver/call_shape.h"
#include "faults/driver/effects.h"
#include "faults/shim/gate.h"
#include "faults/sim/world.h"
#include "suites/contract/ask.h"
#include "suites/contract/question.h"

namespace cuaudit::contract {
namespace {

using driver::BaseId;
using driver::CallId;

// Texture objects and handles of physical memory are of one integer type with addresses, and with some flags.
template <typename... P>
constexpr bool MayHandInteger(CUresult (* /*function*/)(P...)) {
  return (std::is_same_v<P, CUdeviceptr> || ...);
}

template <CallId id>
bool TakesHandle() {
  const driver::EffectRow& effect = driver::EffectOf(driver::BaseOf(id));
  if (effect.object >= 0 && driver::IsRelease(effect.effect) && effect.kind != driver::Kind::PrimaryContext) return true;  // a device
  using Call = driver::CallType<id>;
  constexpr bool kInteger = MayHandInteger(static_cast<typename Call::Function*>(nullptr));
  return kInteger || std::any_of(Call::kShape.parameter, Call::kShape.parameter + Call::kShape.count, [](const driver::Parameter& one) {
           return !one.output && (one.handle || one.family == driver::Family::Pointer);
         });
}

struct Base {
  BaseId base;
  bool (*takes_handle)();
};
constexpr Base kBases[] = {
#define CUAUDIT_BASE(base, current) {BaseId::base, TakesHandle<CallId::current>},
#include "driver_bases.inc"
#undef CUAUDIT_BASE
};

struct Unasked {
  const char* name;
  const char* reason;
};
constexpr Unasked kUnasked[] = {
#define CUAUDIT_UNASKED(base, reason) {"cu" #base, reason},
#include "suites/contract/unasked.def"
#undef CUAUDIT_UNASKED
};

// Entry points called while the objects' context was not current.
struct Listener {
  std::set<BaseId> called;
  bool away = false;

  static void Hear(void* self, BaseId base) noexcept {
    Listener& listener = *static_cast<Listener*>(self);
    if (listener.away) listener.called.insert(base);
    if (base == BaseId::CtxPopCurrent || base == BaseId::CtxCreate) listener.away = true;
    if (base == BaseId::CtxPushCurrent || base == BaseId::CtxSetCurrent) listener.away = false;
  }
};

std::set<BaseId> CalledBy(const std::string& family) {
  std::set<BaseId> called;
  for (const Question& question : ListQuestions()) {
    if (!question.name.starts_with(family)) continue;
    sim::World* const world = sim::CreateWorld({.device_bytes = std::uint64_t{1} << 30});
    if (world == nullptr) continue;
    Listener listener;
    const auto gate = std::make_unique<faults::Gate>();
    gate->Arm(sim::Driver(world), nullptr, nullptr, faults::Plan(), faults::Scope::Process);
    gate->Watch({Listener::Hear, &listener});
    (void)Answer(question, faults::Driver(gate.get()));
    sim::DestroyWorld(world);
    called.merge(listener.called);
  }
  return called;
}

}  // namespace

std::vector<std::string> HandlesWithoutQuestion() {
  const std::set<BaseId> none = CalledBy("none."), elsewhere = CalledBy("elsewhere.");
  std::set<std::string> excused;
  for (const Unasked& row : kUnasked) excused.insert(row.name);
  std::vector<std::string> lines;
  for (const Base& base : kBases) {
    const std::string name(driver::Name(base.base));
    if (excused.erase(name) != 0) {
      if (!base.takes_handle()) lines.push_back(name + ": in unasked.def, but it is handed no object");
      if (none.contains(base.base) && elsewhere.contains(base.base)) lines.push_back(name + ": in unasked.def, but questions ask it");
      continue;
    }
    if (!base.takes_handle()) continue;
    if (!none.contains(base.base)) lines.push_back(name + ": is handed an object, and no question asks it without a current context");
    if (!elsewhere.contains(base.base)) lines.push_back(name + ": is handed an object, and no question asks it with another context");
  }
  for (const std::string& name : excused) lines.push_back(name + ": in unasked.def, but there is no such entry point");
  return lines;
}

}  // namespace cuaudit::contract
