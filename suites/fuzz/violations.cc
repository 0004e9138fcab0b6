// SPDX-License-Identifier: MIT
// Violations of the ledger against what the driver answered, what became of the handle, and a walk over the journal that knows of nothing
// but explicit releases. Not judged here: memory (its addresses are given out again), references of user objects (graphs hold some of
// them, and the driver does not ask whose they are), and what the simulator itself proves.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"
#include "suites/fuzz/gated_run.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

using driver::BaseId;
using driver::Effect;
using driver::Family;
using driver::Kind;
using faults::Record;
using faults::RecordKind;
using harness::Rule;
using harness::State;
using harness::Violation;

constexpr int kHow = faults::kInjected | faults::kForwarded;
bool Succeeded(const Record& record) { return (record.flags & kHow) == faults::kForwarded && record.result == CUDA_SUCCESS; }
bool WasDenied(const Record& record) { return (record.flags & kHow) == kHow; }
// By the driver itself: not by the plan, nor because a context was lost.
bool Declined(const Record& record) {
  return (record.flags & kHow) == faults::kForwarded && record.result != CUDA_SUCCESS && record.result != CUDA_ERROR_DEINITIALIZED &&
         !driver::IsSticky(static_cast<CUresult>(record.result));
}
// A call that does not look at its object, also at one that is gone: a copy of no bytes (array.copy_of_nothing_after_destroy), a node that
// is added for an event (stale.event_record_node), a pool that becomes the device's (setting.pool_destroyed).
bool LooksAtNothing(const Record& record) {
  const BaseId base = driver::BaseOf(static_cast<driver::CallId>(record.call));
  return ((base == BaseId::MemcpyHtoA || base == BaseId::MemcpyAtoH) && record.argument[3] == 0) ||
         base == BaseId::GraphAddEventRecordNode || base == BaseId::GraphAddEventWaitNode || base == BaseId::DeviceSetMemPool;
}
driver::CallId CallOf(const Record& record) { return static_cast<driver::CallId>(record.call); }
// Not by the ledger's own list. Other codes speak of something else, of graphs with memory nodes or of a capture.
bool SaysUnknown(const Record& record) {
  if (!Declined(record)) return false;
  const std::int32_t result = record.result;
  return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_CONTEXT ||
         result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
// A release of a texture, a surface, a mapping or external memory (questions texture.destroy_twice, vmm.unmap_unmapped,
// outlives.released_external_memory): the driver answers success even when there is nothing to release, so only the ledger sees the
// violation.
bool IsForgiven(const Record& record) {
  const BaseId base = driver::BaseOf(CallOf(record));
  return base == BaseId::TexObjectDestroy || base == BaseId::SurfObjectDestroy || base == BaseId::MemUnmap ||
         base == BaseId::DestroyExternalMemory;
}
const driver::EffectRow& RowOf(const Record& record) { return driver::EffectOf(driver::BaseOf(CallOf(record))); }

class Judge {
 public:
  Judge(const Run& run, const harness::Ledger& ledger) : run_(run), ledger_(ledger) {
    gone_.clear();
    given_.clear();
    levels_.clear();
    mapped_.clear();
    of_nothing_.clear();
    for (const Record& record : run.records()) {
      if (record.kind != RecordKind::Call) continue;
      const BaseId base = driver::BaseOf(CallOf(record));
      const bool leaves = base == BaseId::DevicePrimaryCtxRelease || base == BaseId::GreenCtxDestroy;
      if (leaves && (record.flags & faults::kForwarded) != 0) primary_left_at_ = std::min(primary_left_at_, record.begin);
      const bool holds = base == BaseId::DevicePrimaryCtxRetain || base == BaseId::GreenCtxCreate;
      held_unseen_ = held_unseen_ || (holds && WasDenied(record));
    }
  }

  std::string Wrong() {
    for (const Record& record : run_.records()) {
      if (record.kind == RecordKind::Call && (record.flags & faults::kNested) == 0) Walk(record);
    }
    for (const Violation& violation : ledger_.violations) Check(violation);
    CheckStacks();
    return wrong_;
  }

 private:
  using Handle = std::pair<Family, std::uint64_t>;

  // That it may be told at all.
  void Check(const Violation& violation) {
    const Record* const record = Find(violation.where.begin);
    if (record == nullptr || harness::IsProved(violation.rule)) return;
    const bool named = HasHandle(violation.kind);
    const sim::Fate fate = named ? run_.FateOf(violation.handle) : sim::Fate::Unknown;
    switch (violation.rule) {
      case Rule::DoubleRelease:
        if (IsForgiven(*record) && Succeeded(*record)) {
          const bool nothing = std::find(of_nothing_.begin(), of_nothing_.end(), record->begin) != of_nothing_.end();
          if (!nothing) Tell(violation, "there was something to release");
          break;
        }
        if (Succeeded(*record)) Tell(violation, "the release succeeded");
        if (named && MayLive(fate, violation, *record)) Tell(violation, "it was never released");
        break;
      case Rule::UnknownHandle:
        if (!SaysUnknown(*record)) Tell(violation, "the driver did not say so");
        // A primary context, and what stands for a green one, the program was given, and yet it made neither.
        if (named && fate != sim::Fate::Unknown && violation.kind != Kind::Context &&
            IsGiven({driver::FamilyOf(violation.kind), violation.handle}, record->begin))
          Tell(violation, "the driver had made it");
        break;
      case Rule::UseAfterRelease:
        if (!named || violation.kind == Kind::UserObject || MayBeHeld(violation)) break;
        if (MayLive(fate, violation, *record)) Tell(violation, "it is alive");
        if (Succeeded(*record) && !LooksAtNothing(*record) && !(IsForgiven(*record) && fate == sim::Fate::DiedWithContext))
          Tell(violation, "the call succeeded");
        break;
      case Rule::WrongContext:
        if (!Declined(*record)) Tell(violation, "the driver did not decline it");
        if (named && fate == sim::Fate::Unknown) Tell(violation, "there was no such object");
        break;
      default:
        break;
    }
  }

  // With the pin, or what was denied, a context whose last reference went is still there, and so is what lives in it.
  bool MayBeHeld(const Violation& violation) const {
    return (run_.pinned || held_unseen_) && driver::DiesWithOf(violation.kind) == driver::DiesWith::Context &&
           violation.where.begin > primary_left_at_;
  }

  // What the ledger has on a stack, or tells of there, is on it.
  void CheckStacks() {
    const auto held = std::count_if(ledger_.objects.begin(), ledger_.objects.end(), [](const harness::Object& object) {
      return object.kind == Kind::ContextStackEntry && object.state == harness::State::Live;
    });
    const auto told = std::count_if(ledger_.violations.begin(), ledger_.violations.end(), [](const Violation& violation) {
      return violation.rule == Rule::ContextStack && violation.object >= 0;
    });
    const auto most = static_cast<std::uint64_t>(std::max(held, told));
    if (most > run_.stack_entries) wrong_ += std::to_string(most) + " entries pushed, of " + std::to_string(run_.stack_entries) + "\n";
  }

  // That it is told where it must be.
  void Walk(const Record& record) {
    const driver::EffectRow& row = RowOf(record);
    const driver::Shape& shape = driver::ShapeOf(CallOf(record));
    const bool release = row.effect == Effect::Releases;
    for (std::size_t i = 0; i < shape.count && i < faults::kRecordArguments; ++i) {
      const driver::Parameter& parameter = shape.parameter[i];
      const Handle handle{parameter.family, record.argument[i]};
      if (parameter.output) {
        Forget(handle);  // made anew, or answered by a query: whoever answers it vouches for it
        if (Succeeded(record) && handle.first != Family::None) given_.emplace_back(handle, record.begin);
        if (row.base == BaseId::MipmappedArrayGetLevel && Succeeded(record)) levels_.push_back(handle.second);
      } else if (!(release && static_cast<int>(i) == row.object) && IsGone(handle)) {
        Expect(record, Rule::UseAfterRelease, handle.second, "a handle that was released is used");
      }
    }
    if (release) WalkRelease(record, row);
    WalkMapping(record, row.base);
    if (row.effect == Effect::ReleasesPrimary) WalkPrimary(record);
    if (row.effect == Effect::RetainsPrimary && WasDenied(record)) primary_in_doubt_ = true;
  }

  void WalkRelease(const Record& record, const driver::EffectRow& row) {
    const Handle handle{driver::FamilyOf(row.kind), record.argument[row.object]};
    // Physical memory has one handle for several references.
    if (handle.second == 0 || !HasHandle(row.kind) || handle.first == Family::PhysicalMemory) return;
    const bool again = IsGone(handle);
    if (IsForgiven(record) && (again || !IsGiven(handle, record.begin))) of_nothing_.push_back(record.begin);
    if (again && Succeeded(record) && !IsForgiven(record)) wrong_ += "released twice, and the simulator had it both times\n";
    if (again) Expect(record, Rule::DoubleRelease, handle.second, "a handle is released again");
    if (!again && SaysUnknown(record) && run_.FateOf(handle.second) == sim::Fate::Unknown) {
      Expect(record, Rule::UnknownHandle, handle.second, "nothing has that handle");
    }
    // A level of a mipmapped array stays, whoever destroys it (mipmapped.level_destroyed_twice).
    const bool stays = row.base == BaseId::ArrayDestroy && std::find(levels_.begin(), levels_.end(), handle.second) != levels_.end();
    if (Succeeded(record) && !again && !stays && IsGiven(handle, record.begin)) gone_.push_back(handle);
    if (WasDenied(record)) Forget(handle);  // who was told that it is still there may try again
  }

  // What is really mapped, whatever the program was told.
  void WalkMapping(const Record& record, BaseId base) {
    const bool done = (record.flags & faults::kForwarded) != 0 && (WasDenied(record) || Succeeded(record));
    if (base == BaseId::MemMap && done) mapped_.push_back(record.argument[0]);
    if (base != BaseId::MemUnmap || !done) return;
    const auto inside = [&](std::uint64_t one) { return one - record.argument[0] < record.argument[1]; };
    if (std::erase_if(mapped_, inside) == 0) of_nothing_.push_back(record.begin);
  }

  // With the pin the driver has one reference more than the program.
  void WalkPrimary(const Record& record) {
    if ((record.flags & faults::kInjected) != 0) primary_in_doubt_ = true;
    if (primary_in_doubt_) return;
    const bool told = IsTold(record, Rule::OverReleasedPrimary, record.argument[0]);
    if (record.result == CUDA_ERROR_INVALID_CONTEXT && !told) wrong_ += At(record) + "one reference too many, and nobody says so\n";
    if (!run_.pinned && Succeeded(record) && told) wrong_ += At(record) + "no reference too many, as the driver says\n";
  }

  bool IsTold(const Record& record, Rule rule, std::uint64_t handle) const {
    return std::any_of(ledger_.violations.begin(), ledger_.violations.end(), [&](const Violation& violation) {
      return violation.where.begin == record.begin && violation.rule == rule && violation.handle == handle;
    });
  }
  static bool IsGone(const Handle& handle) { return !gone_.empty() && std::find(gone_.begin(), gone_.end(), handle) != gone_.end(); }
  // By a call before then that the program was told to have succeeded.
  static bool IsGiven(const Handle& handle, std::uint64_t before) {
    return std::any_of(given_.begin(), given_.end(), [&](const auto& one) { return one.first == handle && one.second < before; });
  }
  static void Forget(const Handle& handle) {
    if (!gone_.empty()) std::erase(gone_, handle);
  }

  void Expect(const Record& record, Rule rule, std::uint64_t handle, const char* why) {
    if (!IsTold(record, rule, handle)) wrong_ += At(record) + "no " + std::string(Name(rule)) + ": " + why + "\n";
  }

  // Of a handle of long ago the simulator knows nothing any more.
  bool MayLive(sim::Fate fate, const Violation& violation, const Record& record) const {
    if (fate == sim::Fate::Unknown) return !IsGiven({driver::FamilyOf(violation.kind), violation.handle}, record.begin);
    return fate == sim::Fate::Alive;
  }

  void Tell(const Violation& violation, const char* why) {
    wrong_ += std::string(Name(violation.rule)) + " at " + std::to_string(violation.where.begin) + ": " + why + "\n";
  }
  static std::string At(const Record& record) { return "at " + std::to_string(record.begin) + ": "; }

  const Record* Find(std::uint64_t begin) const {
    const std::span<const Record> records = run_.records();
    const auto found =
        std::lower_bound(records.begin(), records.end(), begin, [](const Record& a, std::uint64_t b) { return a.begin < b; });
    return found != records.end() && found->begin == begin ? &*found : nullptr;
  }

  const Run& run_;
  const harness::Ledger& ledger_;
  // Kept from one program to the next, for their memory.
  // With the call that gave it. A copy's nodes are known to the driver alone, what was denied to nobody.
  static inline std::vector<std::pair<Handle, std::uint64_t>> given_;
  static inline std::vector<Handle> gone_;
  static inline std::vector<std::uint64_t> levels_;
  static inline std::vector<std::uint64_t> mapped_;
  static inline std::vector<std::uint64_t> of_nothing_;  // releases that a driver forgives
  std::uint64_t primary_left_at_ = ~std::uint64_t{0};    // when a reference of a primary context went for the first time
  bool held_unseen_ = false;                             // a primary context, by what was denied
  bool primary_in_doubt_ = false;                        // the plan interfered with its references
  std::string wrong_;
};

}  // namespace

void CompareViolations(const Run& run, const harness::Ledger& ledger) {
  const std::string wrong = Judge(run, ledger).Wrong();
  if (!wrong.empty()) Require(false, "each violation is one, and none is missing", wrong + run.Text());
}

}  // namespace cuaudit::fuzz
