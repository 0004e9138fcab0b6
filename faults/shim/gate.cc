// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/gate.h"

#include <errno.h>
#include <string.h>

#include <span>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/shim/call_record.h"
#include "faults/shim/thread_identity.h"
#include "faults/shim/told_objects.h"

namespace cuaudit::faults {

static_assert(Plan::kCapacity == kMaxFaults);  // the journal counts for each fault of a plan

namespace {

// No two plans of this process are told apart by less than this.
std::uint32_t NextArming() noexcept {
  static constinit std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The last fault of the plan that hit this thread, 0: none did.
std::uint32_t HitThisThread(std::uint32_t arming) noexcept { return thread_state.arming == arming ? thread_state.hit : 0; }

}  // namespace

void Gate::Arm(driver::DriverRef next, Journal* journal, StackTable* stacks, const Plan& plan, Scope scope) noexcept {
  next_ = next;
  journal_ = journal;
  stacks_ = stacks;
  plan_ = plan;
  arming_ = NextArming();
  scope_ = scope;
  armed_ = journal != nullptr || plan.size() != 0;
}

std::uint32_t Gate::ProcessName() noexcept { return Pid(); }

void Gate::Rearm(const Plan& plan, Anew anew) noexcept {
  plan_ = plan;
  if (anew == Anew::Nothing) return;
  arming_ = NextArming();
  std::atomic<std::uint32_t>* const matched = journal_ != nullptr ? journal_->header().matched : matched_;
  for (std::size_t i = 0; i < kMaxFaults; ++i) matched[i].store(0, std::memory_order_relaxed);
  if (journal_ == nullptr) {
    armed_ = plan.size() != 0 || lost_.any() || before_.function != nullptr;
    return;
  }
  std::span<std::atomic<std::uint32_t>> counts = journal_->header().occurrences;
  if (anew == Anew::Faults) counts = journal_->header().fired;
  memset(static_cast<void*>(counts.data()), 0, counts.size_bytes());  // nobody counts during Rearm
}

void Gate::Decide(Passage* passage, bool nested, std::uint64_t site) noexcept {
  const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(passage->id));
  std::atomic<std::uint32_t>* matched = journal_ != nullptr ? journal_->header().matched : matched_;
  const Phase phase = journal_ != nullptr ? static_cast<Phase>(journal_->header().phase.load(std::memory_order_relaxed)) : Phase::Any;
  Decision decision;
  if (!nested) {
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      const Fault& fault = plan_.fault(i);
      if (fault.base != row.base || (fault.phase != Phase::Any && fault.phase != phase)) continue;
      if (fault.site != 0 && fault.site != site) continue;
      if (fault.follows && HitThisThread(arming_) < i) continue;
      const std::uint32_t count = matched[i].fetch_add(1, std::memory_order_relaxed) + 1;
      const Decision now = Plan::Decide(fault, count);
      if (now.code == CUDA_SUCCESS || decision.code != CUDA_SUCCESS) continue;
      decision = now;
      decision.fault = static_cast<std::uint16_t>(i + 1);
      if (journal_ != nullptr) journal_->header().fired[i].fetch_add(1, std::memory_order_relaxed);
    }
    if (decision.fault > HitThisThread(arming_)) {
      thread_state.arming = arming_;
      thread_state.hit = decision.fault;
    }
  }
  if (decision.how == How::Sticky && decision.code != CUDA_SUCCESS) {
    lost_.Lose(next_, {decision.code, decision.fault}, pinned_.Unreferenced());
  } else if (lost_.any() && decision.code == CUDA_SUCCESS && LostContexts::Concerns(row)) {
    const Loss loss = lost_.Find(next_);
    if (loss.code != CUDA_SUCCESS) decision = {loss.code, How::Sticky, loss.fault};
  }
  if (decision.code == CUDA_SUCCESS) return;
  passage->injected = decision.code;
  passage->how = decision.how;
  passage->forward = decision.how == How::After;
  if (passage->record != nullptr) {
    passage->record->fault = decision.fault;
    passage->record->flags |= kInjected;
  }
}

void Gate::Enter(Passage* passage) noexcept {
  const int saved = errno;
  // Behind a gate on the same thread: the driver calls itself, or a host function calls back. Gates that stack are not nested.
  passage->outer = thread_state.inside;
  passage->outer_begin = thread_state.begin;
  const bool nested = passage->outer == this;
  const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(passage->id));
  if (before_.function != nullptr && !nested) before_.function(before_.self, row.base);
  thread_state.inside = this;
  if (journal_ != nullptr && !nested) passage->occurrence = CountCall(passage->id, journal_);
  // Leave writes the record of a plain query that fails.
  const bool only_counted = journal_ != nullptr && journal_->recording() && IsPlainQuery(passage->id);
  Record* record = only_counted ? nullptr : NewRecord(journal_, RecordKind::Call, static_cast<std::uint16_t>(passage->id));
  passage->record = record;
  thread_state.asking = only_counted ? static_cast<std::uint16_t>(driver::Index(passage->id) + 1) : 0;
  thread_state.begin = record != nullptr ? record->begin : 0;
  if (record != nullptr) FillArguments(*passage, nested, next_, journal_);
  const void* const within = thread_state.own != nullptr ? thread_state.own : __builtin_frame_address(0);
  const std::size_t callers = thread_state.own != nullptr ? 0 : 1;  // the function that Run is inlined into
  std::uint64_t site = 0;
  std::uint32_t stack = 0;
  if (stacks_ != nullptr && !nested && plan_.NamesSite(row.base)) {
    stack = stacks_->Capture(within, callers);
    site = stacks_->KeyOf(driver::Name(row.base), stack);
  }
  if (plan_.size() != 0 || lost_.any()) Decide(passage, nested, site);
  if (gone_.any() && !nested && passage->injected == CUDA_SUCCESS) gone_.Answer(passage);
  if (record != nullptr && stack != 0) {
    record->stack = stack;
  } else if (record != nullptr && stacks_ != nullptr) {
    const bool object = driver::IsAcquire(row.effect) || driver::IsRelease(row.effect) || passage->injected != CUDA_SUCCESS;
    if (object || (journal_->header().flags.load(std::memory_order_relaxed) & kStacksOfObjectsOnly) == 0)
      record->stack = stacks_->Capture(within, callers);
  }
  if (record != nullptr && passage->forward) {
    record->flags |= kForwarded;
    if (captures_.any()) Captures::See(next_, passage);
  }
  if (record != nullptr) journal_->Entered(record);
  errno = saved;
}

CUresult Gate::Leave(Passage* passage, CUresult result) noexcept {
  const int saved = errno;
  const bool succeeded = passage->forward && result == CUDA_SUCCESS;
  // The work of a lost context never ends, so no time passes there: nothing is told of a call that the loss answers.
  const bool refused = passage->injected != CUDA_SUCCESS && passage->how != How::Sticky && (!passage->forward || succeeded);
  if (refused && refusal_.function != nullptr) refusal_.function(refusal_.self, passage->id, passage->value);
  const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(passage->id));
  Record* record = passage->record;
  if (succeeded && record != nullptr) {
    FillOutputs(*passage);
    RecordAddresses(next_, journal_, *passage, textures_.any_gone());
    if (TellsOfObjects(row.base)) TellObjects(*passage);
  }
  if (record != nullptr && passage->forward && !succeeded) RecordDeclinedCopy(journal_, *passage, result);
  if (record != nullptr && passage->forward) captures_.Count(row.effect, result);
  if (succeeded && record != nullptr && row.base == driver::BaseId::Init) NameDevice();
  if (succeeded && scope_ == Scope::Pinned && row.effect == driver::Effect::RetainsPrimary) pinned_.Pin(next_, passage->value[1]);
  if (succeeded) {
    lost_.After(row.effect, *passage);
    // Without the pin it would be gone, and its loss with it.
    if (const int released = pinned_.Count(row.effect, *passage); released >= 0) {
      lost_.ForgetPrimary(released);
      textures_.EndPrimary(released);
    }
  }
  if (succeeded && answers_for_gone_) gone_.After(*passage);
  if (passage->injected != CUDA_SUCCESS) {
    // A driver that failed on its own keeps its own error; `after` only turns a success into one.
    if (!passage->forward || succeeded) result = passage->injected;
    if (passage->how == How::RefuseGarbage) WriteGarbage(*passage);
  }
  if (record == nullptr && result != CUDA_SUCCESS && journal_ != nullptr && journal_->recording() && IsPlainQuery(passage->id)) {
    passage->record = record = NewRecord(journal_, RecordKind::Call, static_cast<std::uint16_t>(passage->id));
    if (record != nullptr) {
      FillArguments(*passage, passage->outer == this, next_, journal_);
      record->flags |= kForwarded;  // a recording refuses nothing
    }
  }
  if (record != nullptr) {
    record->result = static_cast<std::int32_t>(result);
    if (passage->forward && !succeeded && record->fault != 0) {
      // `after` on a call that the driver refused by itself changed nothing: it did not fire.
      journal_->header().fired[record->fault - 1].fetch_sub(1, std::memory_order_relaxed);
      record->flags = static_cast<std::uint16_t>(record->flags & ~kInjected);
      if (HitThisThread(arming_) == record->fault) thread_state.hit = record->fault - 1U;
      record->fault = 0;
    }
    journal_->Finish(record);
  }
  thread_state.asking = 0;
  thread_state.inside = passage->outer;
  thread_state.begin = passage->outer_begin;
  errno = saved;
  return result;
}

void Gate::TellObjects(const Passage& passage) noexcept {
  const ToldDescriptors descriptors = DescriptorsOf(passage);
  if (on_descriptor_ != nullptr && descriptors.made >= 0) on_descriptor_(descriptors.made, false);
  if (on_descriptor_ != nullptr && descriptors.taken >= 0) on_descriptor_(descriptors.taken, true);
  RecordToldObjects(journal_, passage, descriptors);
  if (!journal_->recording()) ReadSetting(passage);
  textures_.After(passage);
}

void Gate::NameDevice() noexcept {
  JournalHeader& header = journal_->header();
  CUdevice device = 0;
  if (header.device_name[0] != '\0' || next_.DeviceGet(&device, 0) != CUDA_SUCCESS) return;
  if (next_.DeviceGetName(header.device_name, sizeof(header.device_name), device) != CUDA_SUCCESS) header.device_name[0] = '\0';
}

void Gate::NoteHeldPrimary(CUdevice device) noexcept { pinned_.NoteHeld(device); }

void Gate::Mark(MarkKind kind, std::uint32_t value, const std::uint64_t* device_bytes) noexcept {
  WriteMark(journal_, kind, value, device_bytes);
}

void Gate::Note(ProcessEvent event, std::uint64_t argument) noexcept {
  if (event == ProcessEvent::Fork) {
    argument = NameOf(static_cast<std::uint32_t>(argument));
    ForgetThread();
    lost_.ForgetAll();  // a context does not survive fork, neither does its loss
    if (stacks_ != nullptr) stacks_->AfterFork();
  }
  WriteProcess(journal_, event, argument);
}

void Gate::Block(MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept {
  const int saved = errno;
  WriteBlock(journal_, stacks_, kind, address, bytes);
  errno = saved;
}

std::uint64_t Gate::CallUnderWay(void* gate) noexcept { return thread_state.inside == gate ? thread_state.begin : 0; }

void Gate::NoteMisuse(void* gate, const driver::Misuse& misuse) noexcept { WriteMisuse(static_cast<Gate*>(gate)->journal_, misuse); }

// The gate as a DriverRef, one entry per call.

namespace {

using driver::CallId;

template <CallId id, typename Function>
struct Through;

template <CallId id, typename... P>
struct Through<id, CUresult(P...)> {
  static CUresult Call(void* self, P... arguments) { return static_cast<Gate*>(self)->Run<id, P...>(arguments...); }
};

const driver::DriverTable kTable = {{
#define CUAUDIT_CALL(id, base, version, per_thread) \
  reinterpret_cast<driver::Entry>(&Through<CallId::id, driver::CallType<CallId::id>::Function>::Call),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    },
                                    {
#define CUAUDIT_CALL(id, base, version, per_thread) true,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                                    }};

}  // namespace

driver::DriverRef Driver(Gate* gate) noexcept { return {&kTable, gate}; }

}  // namespace cuaudit::faults
