// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/gate.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"

namespace cuaudit::faults {
namespace {

using driver::CallId;
using driver::Effect;

// All the thread-local storage there is: the gate that this thread is inside of with its call's ticket, cached thread and process ids, and
// how far the faults of which plan have come on this thread.
// Values only: a call that never returns (longjmp, pthread_exit from a host function) leaves nothing behind that could dangle.
struct ThreadState {
  const Gate* inside;
  std::uint64_t begin;
  std::uint32_t tid;
  std::uint32_t pid;
  std::uint32_t arming;  // Gate::arming_ of the plan whose fault number `hit` hit this thread last
  std::uint32_t hit;
};
thread_local ThreadState thread_state = {};

// No two plans of this process are told apart by less than this.
std::uint32_t NextArming() noexcept {
  static constinit std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The last fault of the plan that hit this thread, 0: none did.
std::uint32_t HitThisThread(std::uint32_t arming) noexcept { return thread_state.arming == arming ? thread_state.hit : 0; }

// A process that continues its parent keeps its parent's names: `self` is known as `as`.
struct Alias {
  std::atomic<std::uint32_t> self{0};
  std::atomic<std::uint32_t> as{0};
};
constinit Alias alias;

std::uint32_t Known(std::uint32_t id) noexcept {
  return id == alias.self.load(std::memory_order_relaxed) ? alias.as.load(std::memory_order_relaxed) : id;
}

std::uint32_t Pid() noexcept {
  // getpid is a system call in current glibc, and a cached one must not survive fork: the fork handler clears it.
  if (thread_state.pid == 0) thread_state.pid = Known(static_cast<std::uint32_t>(getpid()));
  return thread_state.pid;
}

std::uint32_t Tid() noexcept {
  if (thread_state.tid == 0) thread_state.tid = Known(static_cast<std::uint32_t>(syscall(SYS_gettid)));
  return thread_state.tid;
}

// A lost context answers every call that needs one. What names a device instead of a context still works, and so does what ends or
// resets the context or makes another one current; the headers document INVALID_CONTEXT for some of those too.
bool NeedsContext(const driver::EffectRow& row) noexcept {
  switch (row.effect) {
    case Effect::CreatesContext:
    case Effect::DestroysContext:
    case Effect::SetsContext:
    case Effect::PushesContext:
    case Effect::PopsContext:
      return false;
    default:
      break;
  }
  if (row.base == driver::BaseId::CtxGetCurrent || strncmp(driver::Name(row.base).data(), "cuDevice", 8) == 0) return false;
  return driver::IsLegalCode(row.base, CUDA_ERROR_INVALID_CONTEXT);
}

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

void Gate::ReplacePlan(const Plan& plan) noexcept {
  plan_ = plan;
  arming_ = NextArming();
  if (journal_ == nullptr) return;
  for (std::size_t i = 0; i < kMaxFaults; ++i) {
    journal_->header().matched[i].store(0, std::memory_order_relaxed);
    journal_->header().fired[i].store(0, std::memory_order_relaxed);
  }
}

std::uint32_t Gate::ProcessName() noexcept { return Pid(); }

void Gate::Continue(const Plan& plan) noexcept {
  plan_ = plan;
  alias.as.store(Pid(), std::memory_order_relaxed);
  alias.self.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
}

void Gate::Rearm(const Plan& plan, StackTable* stacks) noexcept {
  plan_ = plan;
  arming_ = NextArming();
  stacks_ = stacks;
  std::atomic<std::uint32_t>* const matched = journal_ != nullptr ? journal_->header().matched : matched_;
  for (std::size_t i = 0; i < kMaxFaults; ++i) matched[i].store(0, std::memory_order_relaxed);
  if (journal_ == nullptr) {
    armed_ = plan.size() != 0 || lost_.any() || before_.function != nullptr;
    return;
  }
  for (std::atomic<std::uint32_t>& occurrences : journal_->header().occurrences) occurrences.store(0, std::memory_order_relaxed);
}

Record* Gate::NewRecord(RecordKind kind, std::uint16_t call) noexcept {
  if (journal_ == nullptr) return nullptr;
  Record* record = journal_->Begin();
  if (record == nullptr) return nullptr;
  const JournalHeader& header = journal_->header();
  record->kind = kind;
  record->call = call;
  record->pid = Pid();
  record->tid = Tid();
  record->cycle = header.cycle.load(std::memory_order_relaxed);
  record->phase = static_cast<Phase>(header.phase.load(std::memory_order_relaxed));
  return record;
}

// Whose primary contexts only the pin keeps: for the program they are gone.
std::uint64_t Gate::UnreferencedDevices() const noexcept {
  std::uint64_t devices = 0;
  for (std::size_t device = 0; device < kMaxDevices; ++device) {
    if (references_[device].load(std::memory_order_relaxed) <= 0) devices |= std::uint64_t{1} << device;
  }
  return devices & pinned_devices_.load(std::memory_order_relaxed);
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
    lost_.Lose(next_, {decision.code, decision.fault}, UnreferencedDevices());
  } else if (lost_.any() && decision.code == CUDA_SUCCESS && NeedsContext(row)) {
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
  Record* record = NewRecord(RecordKind::Call, static_cast<std::uint16_t>(passage->id));
  passage->record = record;
  thread_state.begin = record != nullptr ? record->begin : 0;
  if (record != nullptr) {
    record->occurrence = journal_->header().occurrences[driver::Index(row.base)].fetch_add(1, std::memory_order_relaxed) + 1;
    if (nested) record->flags |= kNested;
    if (!next_.table->modelled[driver::Index(passage->id)]) record->flags |= kUnmodelled;
    if (driver::IsAcquire(row.effect) || driver::IsRelease(row.effect) || row.effect == Effect::SetsContext) {
      CUcontext current = nullptr;
      if (next_.CtxGetCurrent(&current) == CUDA_SUCCESS) record->context = reinterpret_cast<std::uintptr_t>(current);
    }
    const driver::Shape& shape = driver::ShapeOf(passage->id);
    for (std::size_t i = 0; i < shape.count && i < kRecordArguments; ++i) {
      if (!shape.parameter[i].output) record->argument[i] = passage->value[i];
    }
    if (row.effect == Effect::ReleasesPointee && passage->value[0] != 0) {
      memcpy(&record->argument[0], reinterpret_cast<const void*>(passage->value[0]), sizeof(record->argument[0]));
    }
  }
  if (record != nullptr) passage->child = ChildOf(*passage);
  std::uint64_t site = 0;
  std::uint32_t stack = 0;
  if (stacks_ != nullptr && !nested && plan_.NamesSite(row.base)) {
    stack = stacks_->Capture();
    site = stacks_->KeyOf(driver::Name(row.base), stack);
  }
  if (plan_.size() != 0 || lost_.any()) Decide(passage, nested, site);
  if (gone_.any() && !nested && passage->injected == CUDA_SUCCESS) AnswerIfGone(passage);
  if (record != nullptr && stack != 0) {
    record->stack = stack;
  } else if (record != nullptr && stacks_ != nullptr) {
    const bool object = driver::IsAcquire(row.effect) || driver::IsRelease(row.effect) || passage->injected != CUDA_SUCCESS;
    if (object || (journal_->header().flags.load(std::memory_order_relaxed) & kStacksOfObjectsOnly) == 0)
      record->stack = stacks_->Capture();
  }
  if (record != nullptr && passage->forward) {
    record->flags |= kForwarded;
    if (captures_.load(std::memory_order_relaxed) > 0) SeeCapture(passage);
  }
  errno = saved;
}

CUresult Gate::Leave(Passage* passage, CUresult result) noexcept {
  const int saved = errno;
  const bool succeeded = passage->forward && result == CUDA_SUCCESS;
  const driver::Shape& shape = driver::ShapeOf(passage->id);
  Record* record = passage->record;
  if (succeeded && record != nullptr) {
    const bool keep_first = driver::EffectOf(driver::BaseOf(passage->id)).effect == Effect::ReleasesPointee;
    for (std::size_t i = 0; i < shape.count && i < kRecordArguments; ++i) {
      const driver::Parameter& parameter = shape.parameter[i];
      if (parameter.output && passage->value[i] != 0 && !(keep_first && i == 0)) {
        memcpy(&record->argument[i], reinterpret_cast<const void*>(passage->value[i]), parameter.size);
      }
    }
    RecordAddresses(*passage);
  }
  if (record != nullptr && passage->forward) CountCaptures(*passage, result);
  if (succeeded && record != nullptr && driver::BaseOf(passage->id) == driver::BaseId::Init) NameDevice();
  if (succeeded && scope_ == Scope::Pinned && driver::BaseOf(passage->id) == driver::BaseId::DevicePrimaryCtxRetain) Pin(*passage);
  if (succeeded) ForgetLostContext(*passage);
  if (succeeded && answers_for_gone_) NoteGone(*passage);
  if (passage->injected != CUDA_SUCCESS) {
    // A driver that failed on its own keeps its own error; `after` only turns a success into one.
    if (!passage->forward || succeeded) result = passage->injected;
    if (passage->how == How::RefuseGarbage) {
      for (std::size_t i = 0; i < shape.count; ++i) {
        if (!shape.parameter[i].output || passage->value[i] == 0) continue;
        memset(reinterpret_cast<void*>(passage->value[i]), 0xA5, shape.parameter[i].size);
      }
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
  thread_state.inside = passage->outer;
  thread_state.begin = passage->outer_begin;
  errno = saved;
  return result;
}

// A reset or destroyed context takes its lost state with it, and so does one whose last reference the program gave back: without the pin
// it would be gone.
void Gate::ForgetLostContext(const Passage& passage) noexcept {
  const Effect effect = driver::EffectOf(driver::BaseOf(passage.id)).effect;
  if (effect == Effect::CreatesContext && lost_.any() && passage.value[0] != 0) {
    std::uint64_t made = 0;
    memcpy(&made, reinterpret_cast<const void*>(passage.value[0]), sizeof(made));
    lost_.Begin(made);
  }
  if (effect == Effect::DestroysContext) lost_.ForgetContext(passage.value[0]);
  if (effect == Effect::ResetsPrimary) lost_.ForgetPrimary(static_cast<int>(passage.value[0]));
  if (effect == Effect::RetainsPrimary && passage.value[1] < kMaxDevices)
    references_[passage.value[1]].fetch_add(1, std::memory_order_relaxed);
  if (effect == Effect::ReleasesPrimary && passage.value[0] < kMaxDevices &&
      references_[passage.value[0]].fetch_sub(1, std::memory_order_relaxed) <= 1) {
    lost_.ForgetPrimary(static_cast<int>(passage.value[0]));
  }
}

void Gate::NameDevice() noexcept {
  JournalHeader& header = journal_->header();
  CUdevice device = 0;
  if (header.device_name[0] != '\0' || next_.DeviceGet(&device, 0) != CUDA_SUCCESS) return;
  if (next_.DeviceGetName(header.device_name, sizeof(header.device_name), device) != CUDA_SUCCESS) header.device_name[0] = '\0';
}

void Gate::Pin(const Passage& passage) noexcept {
  const std::uint64_t device = passage.value[1];
  if (device >= kMaxDevices) return;
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((pinned_devices_.fetch_or(bit, std::memory_order_acq_rel) & bit) != 0) return;
  CUcontext context = nullptr;
  if (next_.DevicePrimaryCtxRetain(&context, static_cast<CUdevice>(device)) != CUDA_SUCCESS) {
    pinned_devices_.fetch_and(~bit, std::memory_order_acq_rel);
  }
}

void Gate::NoteHeldPrimary(CUdevice device) noexcept {
  if (device >= 0 && static_cast<std::size_t>(device) < kMaxDevices) pinned_devices_.fetch_or(std::uint64_t{1} << device);
}

void Gate::Mark(MarkKind kind, std::uint32_t value, const std::uint64_t* device_bytes) noexcept {
  if (journal_ == nullptr) return;
  JournalHeader& header = journal_->header();
  if (kind == MarkKind::CycleBegin) header.cycle.fetch_add(1, std::memory_order_relaxed);
  if (kind == MarkKind::Phase)
    header.phase.store(value <= static_cast<std::uint32_t>(Phase::Unwind) ? value : 0, std::memory_order_relaxed);
  Record* record = NewRecord(RecordKind::Mark, static_cast<std::uint16_t>(kind));
  if (record == nullptr) return;
  record->argument[0] = value;
  if (device_bytes != nullptr) {
    record->argument[1] = 1;
    record->argument[2] = *device_bytes;
  }
  journal_->Finish(record);
  if (kind == MarkKind::CycleEnd) header.phase.store(0, std::memory_order_relaxed);
}

void Gate::Note(ProcessEvent event, std::uint64_t argument) noexcept {
  if (event == ProcessEvent::Fork) {
    argument = Known(static_cast<std::uint32_t>(argument));
    thread_state = {};
    lost_.ForgetAll();  // a context does not survive fork, neither does its loss
    if (stacks_ != nullptr) stacks_->AfterFork();
  }
  Record* record = NewRecord(RecordKind::Process, static_cast<std::uint16_t>(event));
  if (record == nullptr) return;
  record->argument[0] = argument;
  journal_->Finish(record);
}

void Gate::Block(MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept {
  const int saved = errno;
  Record* record = NewRecord(RecordKind::Mark, static_cast<std::uint16_t>(kind));
  if (record == nullptr) return;
  record->argument[0] = address;
  record->argument[1] = bytes;
  if (stacks_ != nullptr) record->stack = stacks_->Capture();
  journal_->Finish(record);
  errno = saved;
}

std::uint64_t Gate::CallUnderWay(void* gate) noexcept { return thread_state.inside == gate ? thread_state.begin : 0; }

void Gate::NoteMisuse(void* gate, const driver::Misuse& misuse) noexcept {
  Gate* const self = static_cast<Gate*>(gate);
  Record* record = self->NewRecord(RecordKind::Misuse, static_cast<std::uint16_t>(misuse.rule));
  if (record == nullptr) return;
  record->argument[0] = static_cast<std::uint64_t>(misuse.kind);
  record->argument[1] = misuse.object;
  record->argument[2] = misuse.bytes;
  record->argument[3] = misuse.origin;
  record->argument[4] = misuse.other;
  self->journal_->Finish(record);
}

}  // namespace cuaudit::faults
