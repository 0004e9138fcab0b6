// SPDX-License-Identifier: MIT
// Objects of the ledger and of the simulator, one by one.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "harness/ledger/arguments.h"
#include "suites/fuzz/gated_run.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

using driver::BaseId;
using driver::Effect;
using driver::Kind;
using faults::Record;
using faults::RecordKind;
using harness::Object;
using harness::State;

using Name = std::pair<Kind, std::uint64_t>;

BaseId CallOf(const harness::Site& site) { return driver::BaseOf(static_cast<driver::CallId>(site.call)); }

// What the journal says that neither of the two books does.
struct Journal {
  explicit Journal(std::span<const Record> records) {
    constexpr std::uint64_t kDevices = 4;  // more than a world has here
    int holders[kDevices] = {};            // of primary contexts, as the program was told
    int references[kDevices] = {};         // and in truth
    int captures = 0;                      // under way; one whose end failed may be counted on
    std::vector<std::pair<std::uint64_t, std::uint64_t>> device_of_green;
    for (const Record& record : records) {
      const bool memory = record.kind == RecordKind::Argument && (record.flags & faults::kMemoryNode) != 0;
      if (memory && record.context == unowned_node_) denied.push_back({Kind::StreamOrderedMemory, record.argument[0]});
      if (record.kind != RecordKind::Call || (record.flags & faults::kForwarded) == 0) continue;
      const bool was_denied = (record.flags & faults::kInjected) != 0;
      const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(static_cast<driver::CallId>(record.call)));
      // What a launch brings to life no argument names.
      if (was_denied && row.effect == Effect::LaunchesGraph) denied_launch = true;
      if (was_denied && driver::IsAcquire(row.effect) && row.object >= 0) denied.push_back({row.kind, harness::ObjectHandle(record, row)});
      if (!was_denied && record.result != CUDA_SUCCESS) continue;
      if (row.effect == Effect::EndsCapture) captures -= captures > 0 ? 1 : 0;
      if (row.effect == Effect::BeginsCapture) {
        ++captures;
        capture_outlived_holder = capture_outlived_holder || !last_releases.empty();
      }
      // Which context it is of nobody knows here.
      if (row.effect == Effect::ReleasesPrimary || row.base == BaseId::GreenCtxDestroy)
        capture_outlived_holder = capture_outlived_holder || captures > 0;
      if (row.effect == Effect::RetainsPrimary) ++references[record.argument[1] % kDevices];
      if (row.effect == Effect::ReleasesPrimary) beneath_zero = beneath_zero || --references[record.argument[0] % kDevices] < 0;
      FollowNodes(record, row, was_denied);
      const bool holds = row.effect == Effect::RetainsPrimary || row.base == BaseId::GreenCtxCreate;
      held_unseen = held_unseen || (holds && was_denied);
      if (row.effect == Effect::RetainsPrimary && !was_denied) ++holders[record.argument[1] % kDevices];
      if (row.base == BaseId::GreenCtxCreate && !was_denied) {
        device_of_green.push_back({record.argument[0], record.argument[2] % kDevices});
        ++holders[record.argument[2] % kDevices];
      }
      if (row.effect == Effect::ReleasesPrimary && --holders[record.argument[0] % kDevices] <= 0) last_releases.push_back(record.begin);
      if (row.base != BaseId::GreenCtxDestroy) continue;
      const auto green =
          std::find_if(device_of_green.begin(), device_of_green.end(), [&](const auto& one) { return one.first == record.argument[0]; });
      if (green == device_of_green.end() || --holders[green->second] <= 0) last_releases.push_back(record.begin);
    }
  }
  // Of a copy's node no call told, nor of the graph in it, until that is asked for; what a denied node allocates the launches allocate.
  void FollowNodes(const Record& record, const driver::EffectRow& row, bool was_denied) {
    if (row.effect == Effect::AddsNode) {
      if (!was_denied) nodes_.push_back(record.argument[0]);
      if (was_denied || IsInCopy(record.argument[1])) unowned_node_ = record.begin;
    }
    if (row.base != BaseId::GraphChildGraphNodeGetGraph) return;
    if (std::find(nodes_.begin(), nodes_.end(), record.argument[0]) == nodes_.end()) in_copies_.push_back(record.argument[1]);
  }
  bool IsInCopy(std::uint64_t graph) const { return std::find(in_copies_.begin(), in_copies_.end(), graph) != in_copies_.end(); }

  // The driver has it and nobody owns it (`after`).
  bool Denied(const Name& name) const {
    if (denied_launch && name.first == Kind::StreamOrderedMemory) return true;
    return std::find(denied.begin(), denied.end(), name) != denied.end();
  }

  std::vector<Name> denied;
  bool denied_launch = false;
  bool capture_outlived_holder = false;      // it was under way when a primary context was released, or after that
  bool held_unseen = false;                  // a primary context, by what was denied
  bool beneath_zero = false;                 // more releases of one than references: the driver took the pin's
  std::vector<std::uint64_t> last_releases;  // after which the program holds a primary context no more

 private:
  std::vector<std::uint64_t> nodes_;      // that calls made
  std::vector<std::uint64_t> in_copies_;  // graphs
  std::uint64_t unowned_node_ = 0;        // the call that added the last one
};

class Comparison {
 public:
  Comparison(const Run& run, const harness::Ledger& ledger) : run_(run), ledger_(ledger), journal_(run.records()) {
    known_.clear();
    real_.clear();
    for (const Object& object : ledger.objects) {
      // Of those the ledger counts what was pushed; CompareViolations looks at them.
      if (object.kind != Kind::ContextStackEntry) known_.push_back({{object.kind, object.handle}, &object});
    }
    std::sort(known_.begin(), known_.end());  // of one name in order of acquisition: that is how they lie in memory
    for (const sim::LiveObject& object : run.live) real_.push_back({NameOf(object), &object});
    std::sort(real_.begin(), real_.end());
    pin_taken_ = run.pinned && journal_.beneath_zero;
  }

  std::string Differing() {
    auto real = real_.begin();
    for (auto known = known_.begin(); known != known_.end() || real != real_.end();) {
      const Name name = known == known_.end() || (real != real_.end() && real->first < known->first) ? real->first : known->first;
      const auto real_end = std::find_if(real, real_.end(), [&](const auto& one) { return one.first != name; });
      const auto known_end = std::find_if(known, known_.end(), [&](const auto& one) { return one.first != name; });
      if (name.first == Kind::PrimaryContext) {
        CompareReferences(name, {known, known_end}, static_cast<std::size_t>(real_end - real));
      } else {
        Compare(name, {known, known_end}, real == real_end ? nullptr : real->second);
      }
      real = real_end;
      known = known_end;
    }
    return differing_;
  }

 private:
  using Known = std::pair<Name, const Object*>;
  using Real = std::pair<Name, const sim::LiveObject*>;

  // All rows of one name: an object that was retained has several, and an address stands for one after another.
  void Compare(const Name& name, std::span<const Known> rows, const sim::LiveObject* real) {
    const Object* live = nullptr;
    bool refused = false;  // its context may have gone since: it is no fault of the program, so it stays that
    for (const Known& row : rows) {
      if (row.second->state == State::Live) live = row.second;
      refused = refused || row.second->state == State::ReleaseRefused;
    }
    if (live != nullptr && real == nullptr && !MayBeGone(*live)) Tell(name, "alive in the ledger alone");
    if (live != nullptr && real != nullptr && live->bytes != 0 && live->bytes != real->bytes) {
      Tell(name, std::to_string(live->bytes) + " bytes, in the simulator " + std::to_string(real->bytes));
    }
    if (live == nullptr && !refused && real != nullptr && !MayBeAlive(name, rows.empty() ? nullptr : rows.back().second, *real)) {
      Tell(name, "alive in the simulator alone");
    }
    if (live == nullptr && !refused && real == nullptr && rows.size() == 1 && HasHandle(name.first))
      CompareDeath(name, *rows.front().second);
  }

  // The ledger has one number for the two contexts of peer access.
  static Name NameOf(const sim::LiveObject& object) {
    if (object.kind != Kind::PeerAccess) return {object.kind, object.handle};
    Record enable{};
    enable.argument[0] = object.handle;
    enable.context = object.had_by;
    return {object.kind, harness::ObjectHandle(enable, driver::EffectOf(BaseId::CtxEnablePeerAccess))};
  }

  bool MayBeGone(const Object& live) const {
    // What was attached to a primary context is counted by nobody there, and ends with the context.
    if (live.kind == Kind::Context && CallOf(live.acquired) == BaseId::CtxAttach) return run_.FateOf(live.handle) == sim::Fate::Alive;
    if (live.kind == Kind::GraphNode && journal_.IsInCopy(live.parent)) return true;
    // For the program the capture has ended with its context, which goes on all the same: there this memory is a graph's.
    if (live.kind == Kind::StreamOrderedMemory && journal_.capture_outlived_holder && IsHeldSince(live.acquired.begin)) return true;
    // It ended with the peer, a primary context, and the ledger waits for the driver to say so.
    if (live.kind == Kind::PeerAccess && std::any_of(journal_.last_releases.begin(), journal_.last_releases.end(),
                                                     [&](std::uint64_t one) { return one > live.acquired.begin; }))
      return !run_.pinned || pin_taken_;
    // A release too many was the pin's: its context is gone, and without the pin the driver would have declined that call.
    return pin_taken_ && driver::DiesWithOf(live.kind) == driver::DiesWith::Context;
  }

  // A primary context that the program does not hold any more, since before then.
  bool IsHeldSince(std::uint64_t begin) const {
    const std::vector<std::uint64_t>& last = journal_.last_releases;
    return (run_.pinned || journal_.held_unseen) && std::any_of(last.begin(), last.end(), [=](std::uint64_t one) { return one < begin; });
  }

  // The last reference went while the pin, or one that was denied, held the context: without them it would be gone.
  bool IsHeld(const Object& object) const {
    if (object.state == State::Orphaned && journal_.Denied({Kind::Context, object.context})) return true;
    const std::vector<std::uint64_t>& last = journal_.last_releases;
    return (run_.pinned || journal_.held_unseen) && object.state == State::Orphaned &&
           std::find(last.begin(), last.end(), object.released.begin) != last.end();
  }

  // A release that came after that, and was declined for a reason of its own. The ledger counts it as tried, for without them there would
  // be nothing to release.
  bool IsHeldAndTried(const Object& object) const {
    return object.state == State::Released && object.told_alive && IsToldDead(object) && IsHeldSince(object.released.begin);
  }

  bool MayBeAlive(const Name& name, const Object* last, const sim::LiveObject& real) const {
    if (name.first == Kind::UserObject) return true;                    // graphs may hold it
    if (name.first == Kind::GraphNode && last == nullptr) return true;  // captured, or of a copy: no call made it
    if (real.freeing || journal_.Denied(name)) return true;
    if (pin_taken_ && journal_.capture_outlived_holder && name.first == Kind::StreamOrderedMemory)
      return true;  // a capture ended with the context that the pin had held
    if (last == nullptr) return false;
    if (!run_.settled && name.first == Kind::StreamOrderedMemory && CallOf(last->released) == BaseId::GraphLaunch) return true;
    return IsHeld(*last) || IsHeldAndTried(*last);
  }

  // Released too late: the ledger has said that it was dead already.
  bool IsToldDead(const Object& object) const {
    return std::any_of(ledger_.violations.begin(), ledger_.violations.end(), [&](const harness::Violation& violation) {
      return violation.rule == harness::Rule::UseAfterRelease && violation.where.begin == object.released.begin;
    });
  }

  // User objects end with graphs.
  void CompareDeath(const Name& name, const Object& object) {
    if (name.first == Kind::UserObject || object.released.record_kind == RecordKind::Empty) return;
    const sim::Fate fate = run_.FateOf(name.second);
    // A release too many may have ended its context before (MayBeGone), and some releases succeed then, too.
    if (object.state == State::Released && fate == sim::Fate::DiedWithContext && !IsToldDead(object) && !pin_taken_)
      Tell(name, "released, but in the simulator it died with its context");
    if (object.state == State::Orphaned && (fate == sim::Fate::Destroyed || fate == sim::Fate::Alive) && !IsHeld(object)) {
      Tell(name, "died with its context, but in the simulator it was destroyed");
    }
  }

  void CompareReferences(const Name& name, std::span<const Known> rows, std::size_t real) {
    const auto count = [&](State state) {
      return static_cast<std::size_t>(
          std::count_if(rows.begin(), rows.end(), [=](const Known& row) { return row.second->state == state; }));
    };
    const std::size_t live = count(State::Live);
    std::size_t most = live + count(State::ReleaseRefused);
    if (run_.pinned) ++most;
    for (const Name& denied : journal_.denied) most += denied.first == Kind::PrimaryContext ? 1 : 0;
    if (real >= live && real <= most) return;
    Tell(name, std::to_string(live) + " to " + std::to_string(most) + " references, in the simulator " + std::to_string(real));
  }

  void Tell(const Name& name, const std::string& what) {
    char handle[32];
    (void)std::snprintf(handle, sizeof(handle), " %llx: ", static_cast<unsigned long long>(name.second));
    differing_ += std::string(driver::Name(name.first)) + handle + what + "\n";
  }

  const Run& run_;
  const harness::Ledger& ledger_;
  Journal journal_;
  // Kept from one program to the next: most of the time would go into making them anew.
  static inline std::vector<Known> known_;
  static inline std::vector<Real> real_;
  bool pin_taken_ = false;
  std::string differing_;
};

}  // namespace

bool HasHandle(Kind kind) {
  switch (driver::FamilyOf(kind)) {
    case driver::Family::Context:
    case driver::Family::Stream:
    case driver::Family::Event:
    case driver::Family::MemoryPool:
    case driver::Family::PhysicalMemory:
    case driver::Family::Array:
    case driver::Family::MipmappedArray:
    case driver::Family::TextureObject:
    case driver::Family::SurfaceObject:
    case driver::Family::TextureReference:
    case driver::Family::Module:
    case driver::Family::Library:
    case driver::Family::LinkState:
    case driver::Family::Graph:
    case driver::Family::GraphNode:
    case driver::Family::ExecutableGraph:
    case driver::Family::UserObject:
    case driver::Family::ExternalMemory:
    case driver::Family::ExternalSemaphore:
    case driver::Family::GreenContext:
    case driver::Family::Callback:
      return true;
    default:
      return false;
  }
}

void CompareObjects(const Run& run, const harness::Ledger& ledger) {
  const std::string differing = Comparison(run, ledger).Differing();
  if (!differing.empty()) Require(false, "the ledger equals the simulator's books", differing + run.Text());
}

}  // namespace cuaudit::fuzz
