// SPDX-License-Identifier: MIT
#include "harness/verdict/in_the_way.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/context/put_back_calls.h"

namespace cuaudit::harness {
namespace {

using driver::Effect;
using driver::Family;
using driver::Kind;
using faults::Record;

// Answers that speak of something that is there, of whatever kind, and that the call need not name.
bool SaysTaken(std::int32_t result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_CONTEXT_ALREADY_CURRENT:
    case CUDA_ERROR_ALREADY_MAPPED:
    case CUDA_ERROR_ALREADY_ACQUIRED:
    case CUDA_ERROR_CONTEXT_ALREADY_IN_USE:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE:
      return true;
    default:
      return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
}

bool IsContext(Kind kind) { return kind == Kind::Context || kind == Kind::PrimaryContext || kind == Kind::GreenContext; }

// Whether the end of the context or parent that was kept would have ended the object.
bool StandsOn(const Object& object, const Object& kept) {
  const std::uint64_t handle = kept.kind == Kind::PrimaryContext ? kept.context : kept.handle;
  return handle != 0 && (object.context == handle || object.parent == handle);
}

bool IsAt(const Object& object, std::uint64_t handle) {
  return driver::FamilyOf(object.kind) == Family::Pointer ? handle - object.handle < std::max<std::uint64_t>(object.bytes, 1)
                                                          : handle == object.handle;
}

// True when the plan carried out the same acquisition before and told the program that it had failed. What such a call acquires has a name
// that the program chooses (an address, or the peer of a context), so it can be acquired only once. A program that has released it since
// acquires it twice by itself.
bool WasDoneUnderAfter(const Evidence& trial, const Record& failing) {
  const driver::EffectRow& row = driver::EffectOf(BaseOf(failing));
  const bool already =
      failing.result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED || failing.result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (row.effect != Effect::AcquiresGiven || !already) return false;
  bool there = false;
  for (const std::uint32_t index : trial.own_calls()) {
    const Record& record = trial.record(index);
    const driver::EffectRow& other = driver::EffectOf(BaseOf(record));
    if (record.begin >= failing.begin || other.kind != row.kind || ObjectHandle(record, other) != ObjectHandle(failing, row)) continue;
    const Answer answer = AnswerOf(record);
    if (other.base == row.base && answer == Answer::After) there = true;
    if (driver::IsRelease(other.effect) && Releases(answer)) there = false;
  }
  return there;
}

}  // namespace

InTheWay::InTheWay(const Evidence& trial) : trial_(trial) {
  for (const Object& object : trial.ledger->objects) {
    if (object.state == State::ReleaseRefused) kept_.push_back(&object);
  }
  const auto calls = trial.own_calls();
  moved_ = std::any_of(calls.begin(), calls.end(), [&](std::uint32_t call) { return DisturbsStack(trial.record(call)); });
}

bool InTheWay::Keeps(const Record& release) const {
  return std::any_of(kept_.begin(), kept_.end(), [&](const Object* kept) { return kept->released == SiteOf(release); });
}

// Whether such an object is still there because its release was refused, or because the end of what it stands on was.
bool InTheWay::Left(Kind kind, const Record& failing) const {
  const std::vector<Object>& objects = trial_.ledger->objects;
  return std::any_of(objects.begin(), objects.end(), [&](const Object& object) {
    if (object.kind != kind) return false;
    if (object.state == State::ReleaseRefused) return true;
    const bool there = object.state == State::Live || object.released.begin > failing.begin;
    return there && std::any_of(kept_.begin(), kept_.end(), [&](const Object* kept) {
             return object.acquired.begin < kept->released.begin && StandsOn(object, *kept);
           });
  });
}

// Whether the answer may speak of what is left, although the call does not name it.
bool InTheWay::SpeaksOfLeft(const Record& failing) const {
  if (failing.result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) return Left(Kind::HostRegistration, failing);
  if (failing.result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return Left(Kind::PeerAccess, failing);
  // A lost context that could not be ended.
  const bool sticky = driver::IsSticky(static_cast<CUresult>(failing.result));
  if (sticky) return std::any_of(kept_.begin(), kept_.end(), [](const Object* kept) { return IsContext(kept->kind); });
  return !kept_.empty() && SaysTaken(failing.result);
}

// True when the thread has another context current than the program believes, or one that it could not take off.
bool InTheWay::DisturbsStack(const Record& call) const {
  if (!driver::MovesContext(EffectOfCall(call))) return false;
  if (EffectOfCall(call) == Effect::DestroysContext && call.argument[0] != call.context) return false;
  const Answer answer = AnswerOf(call);
  return answer == Answer::After || (answer == Answer::Refused && Keeps(call));
}

// True when its thread has not made a context current itself since its stack was disturbed, or has taken that one off again.
bool InTheWay::IsAstray(const Record& call) const {
  bool disturbed = false;
  int chosen = 0;  // entries on top of the stack that the thread has put there since
  for (const std::uint32_t index : trial_.own_calls()) {
    const Record& before = trial_.record(index);
    if (before.begin >= call.begin) break;
    if (before.tid != call.tid || before.pid != call.pid) continue;
    const Effect effect = EffectOfCall(before);
    if (DisturbsStack(before)) {
      disturbed = true;
      chosen = 0;
    } else if (effect == Effect::SetsContext && AnswerOf(before) == Answer::Succeeded) {
      chosen = before.argument[0] == 0 ? chosen - 1 : std::max(chosen, 1);
    } else {
      Follow(before, effect, &chosen);
    }
    chosen = std::max(chosen, 0);
  }
  return disturbed && chosen == 0;
}

// Whether the call names an object that is accepted. A handle is that of the newest object that has it.
template <typename Accepts>
bool InTheWay::Names(const Record& call, Accepts accepts) const {
  const std::vector<Object>& objects = trial_.ledger->objects;
  const auto named = [&](Family family, std::uint64_t handle) {
    const auto newest = std::find_if(objects.rbegin(), objects.rend(), [&](const Object& object) {
      return object.pid == call.pid && driver::FamilyOf(object.kind) == family && object.acquired.begin < call.begin &&
             IsAt(object, handle);
    });
    return handle != 0 && newest != objects.rend() && accepts(*newest);
  };
  const driver::EffectRow& row = driver::EffectOf(BaseOf(call));
  const bool given = row.effect == Effect::AcquiresGiven || driver::IsRelease(row.effect);
  if (given && named(driver::FamilyOf(row.kind), ObjectHandle(call, row))) return true;
  const driver::Shape& shape = driver::ShapeOf(CallOf(call));
  for (std::size_t i = 0; i < std::min<std::size_t>(shape.count, faults::kRecordArguments); ++i) {
    const Family family = ArgumentFamily(CallOf(call), i);
    if (family != Family::None && !shape.parameter[i].output && named(family, call.argument[i])) return true;
  }
  return false;
}

bool InTheWay::IsSecondRelease(const Record& failing) const {
  return driver::IsRelease(EffectOfCall(failing)) && Names(failing, [](const Object& object) { return object.release_denied; });
}

bool InTheWay::Explains(const Record& failing) const {
  if (Keeps(failing) || SpeaksOfLeft(failing) || WasDoneUnderAfter(trial_, failing)) return true;
  if (Names(failing, [](const Object& object) { return object.state == State::ReleaseRefused || object.release_denied; })) return true;
  const Effect effect = EffectOfCall(failing);
  return (NeedsCurrent(failing, effect) || driver::MovesContext(effect)) && IsAstray(failing);
}

bool InTheWay::Explains(const Object& left, bool by_itself) const {
  if (left.state == State::ReleaseRefused) return true;
  if (by_itself) return false;
  const Record* const made = trial_.call_at(left.acquired.begin);
  return (made != nullptr && IsAstray(*made)) ||
         std::any_of(kept_.begin(), kept_.end(), [&](const Object* kept) { return StandsOn(left, *kept); });
}

}  // namespace cuaudit::harness
