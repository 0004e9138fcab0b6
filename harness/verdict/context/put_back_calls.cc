// SPDX-License-Identifier: MIT
#include "harness/verdict/context/put_back_calls.h"

#include <algorithm>
#include <span>

#include "driver_present.inc"
#include "faults/driver/shape.h"
#include "harness/ledger/arguments.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Effect;
using driver::Kind;
using faults::Record;

Effect EffectOfCall(const Record& record) { return driver::EffectOf(BaseOf(record)).effect; }

// Each thread has a standard stream of its own. All others have a handle, or cannot be captured.
std::uint64_t StreamOf(const Record& record) {
  const std::uint64_t stream = record.argument[0];
  return IsStandardStream(stream) ? kPerThreadStream | (std::uint64_t{record.tid} << 8U) : stream;
}

bool SwitchesContext(const Record& record, Effect effect) {
  return effect == Effect::SetsContext && record.context != 0 && record.argument[0] != record.context;
}

// True for calls that are made to look, whatever the stream's state is.
bool OnlyLooks(const Record& record, Effect effect) {
  return effect == Effect::Describes || (effect == Effect::Queries && BaseOf(record) != BaseId::StreamQuery);
}

// Follows the context stack of a thread: `above` is the number of entries over the one that a change was made in; below 0 when that one
// was taken off. The end of the current context takes off its entry. When that is the changed one, nobody chose what is current then, and
// the change still stands.
void Follow(const Record& record, Effect effect, int* above) {
  const Answer answer = AnswerOf(record);
  if (answer != Answer::Succeeded && answer != Answer::After) return;
  if (effect == Effect::PushesContext || effect == Effect::CreatesContext) ++*above;
  if (effect == Effect::PopsContext) --*above;
  if (effect == Effect::DestroysContext && record.argument[0] == record.context && *above > 0) --*above;
}

namespace {

enum class Needs : std::uint8_t { Nothing, Lock, Init, Object, UnsafeObject, Context, Unsafe };  // faults/sim/entry/entry.h

// What the simulated driver asks for before it carries out the call, as devices do (contract questions none.*).
Needs NeedsOf(driver::CallId call) {
  switch (call) {
#define CUAUDIT_SIM(entry, model, needs) \
  case driver::CallId::entry:            \
    return Needs::needs;
#define CUAUDIT_SIM_REFUSES(entry, model, needs) CUAUDIT_SIM(entry, model, needs)
#include "faults/sim/entry/bindings.def"
#undef CUAUDIT_SIM_REFUSES
#undef CUAUDIT_SIM
    default:
      return Needs::Context;
  }
}

}  // namespace

// True for a call that does what the current context makes of it. Others name what they work on, and an H200 carries them out in every
// context and in none: releases, and what belongs to no context (cuGraphCreate, cuMemCreate, cuLibraryLoadData).
bool NeedsCurrent(const Record& record, Effect effect) {
  switch (BaseOf(record)) {
    case BaseId::MemFreeAsync:
      return IsStandardStream(record.argument[1]);
    case BaseId::TexObjectDestroy:
    case BaseId::SurfObjectDestroy:
    case BaseId::GLUnregisterBufferObject:
      return true;
    default:
      break;
  }
  const Needs needs = NeedsOf(CallOf(record));
  const bool chooses = needs == Needs::Nothing || needs == Needs::Lock || needs == Needs::Init;  // a context, or belongs to none
  return !chooses && !driver::IsRelease(effect) && !OnlyLooks(record, effect);
}

bool NamesStream(const Record& record, std::uint64_t stream) {
  const driver::CallId call = CallOf(record);
  const std::size_t count = std::min(driver::ShapeOf(call).count, faults::kRecordArguments);
  for (std::size_t i = 0; i < count; ++i) {
    if (driver::ShapeOf(call).parameter[i].output || ArgumentFamily(call, i) != driver::Family::Stream) continue;
    const std::uint64_t named = record.argument[i];
    if (named == stream || (IsStandardStream(named) && (stream & 0xffU) == kPerThreadStream && stream >> 8U == record.tid)) return true;
  }
  return false;
}

namespace {

// True when the last that the process did with the context until then was the refused attempt to end it: the one with ticket `refused`, or
// a destruction. A process that goes back to the context, works in it or makes it anew has one that is to be put back.
bool IsGivenUp(const Evidence& run, std::uint32_t pid, std::uint64_t context, std::uint64_t refused, std::uint64_t when) {
  for (std::size_t step = run.first_call_from(when); step-- > 0;) {
    const Record& record = run.call(step);
    if (record.begin <= refused) return true;
    if (record.pid != pid) continue;
    const Effect effect = EffectOfCall(record);
    const bool names = effect == Effect::SetsContext || effect == Effect::PushesContext || effect == Effect::DestroysContext;
    if (names && record.argument[0] == context) return effect == Effect::DestroysContext && AnswerOf(record) == Answer::Refused;
    const bool makes = effect == Effect::CreatesContext && record.argument[0] == context;
    if (makes || (record.context == context && NeedsCurrent(record, effect))) return false;
  }
  return false;
}

}  // namespace

bool IsGone(const Evidence& run, std::uint32_t pid, std::uint64_t context, std::uint64_t when) {
  bool known = false;
  std::uint64_t refused = 0;
  for (const Object& object : run.ledger->objects) {
    const bool is_it =
        (object.kind == Kind::Context && object.handle == context) || (object.kind == Kind::PrimaryContext && object.context == context);
    if (!is_it || object.pid != pid || object.acquired.begin > when) continue;
    known = true;
    // What was closed without a call belongs to the harness, or another object took the handle.
    const bool ended = object.state == State::Released || object.state == State::Orphaned || object.state == State::ReleaseRefused;
    if (!ended || object.released.record_kind != faults::RecordKind::Call || object.released.begin > when) return false;
    if (object.state == State::ReleaseRefused) refused = std::max(refused, object.released.begin);
  }
  // Of a context that was made under `after` the ledger has no object.
  return (known && refused == 0) || IsGivenUp(run, pid, context, refused, when);
}

TrialFinding* AddChange(const Evidence& trial, Rule rule, Kind kind, const Record& change, const Record* met,
                        std::vector<TrialFinding>* findings) {
  TrialFinding finding = FindingAt(rule, SiteOf(change), *trial.journal, {}, kind);
  if (met != nullptr) SetOther(SiteOf(*met), *trial.journal, &finding);
  const auto same = std::find_if(findings->begin(), findings->end(), [&](const TrialFinding& one) {
    return one.rule == finding.rule && one.where_key == finding.where_key && one.other_key == finding.other_key;
  });
  if (same == findings->end()) return &findings->emplace_back(finding);
  ++same->count;
  return &*same;
}

void DropBefore(std::size_t call, std::vector<Away>* all) {
  std::erase_if(*all, [call](const Away& one) { return one.until <= call; });
}

std::size_t InnermostAway(const Evidence& run, std::size_t call, std::vector<Away>* all, bool only_from_none) {
  const auto stack = [&run](std::size_t of) { return run.journal->Stack(run.call(of).stack); };
  const std::span<const std::uint64_t> frames = stack(call);
  std::size_t innermost = frames.size();
  for (Away& away : *all) {
    if (away.from == kNoCall || (only_from_none && !away.from_none)) return 0;
    if (!away.frame) {
      const std::size_t level = SharedLevel(run, away.from, away.until - 1);
      away.frame = level == kNoLevel ? 0 : stack(away.from)[level];
    }
    // A function that calls itself is found where it runs last: what it changes then counts as its own.
    const auto found = frames.empty() ? frames.end() : std::find(frames.begin() + 1, frames.end(), *away.frame);
    if (*away.frame == 0 || found == frames.end()) return 0;
    innermost = std::min(innermost, static_cast<std::size_t>(found - frames.begin()));
  }
  return innermost;
}

}  // namespace cuaudit::harness
