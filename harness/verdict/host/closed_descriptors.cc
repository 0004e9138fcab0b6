// SPDX-License-Identifier: MIT
#include "harness/verdict/host/closed_descriptors.h"

#include <algorithm>
#include <span>
#include <utility>

#include "faults/journal/record.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/driver_owned.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;
using faults::Record;
using faults::RecordKind;

bool WasNotOpen(const Record& record) { return record.argument[1] == faults::kNotOpen; }

// A standard stream that the thread closes in order to open it anew, for example as a log file: no call of the driver comes between.
bool IsReplaced(const Evidence& run, const Record& close) {
  constexpr std::uint64_t kStandardStreams = 3;
  if (close.argument[0] > kStandardStreams) return false;  // the number plus one
  const Object* next = nullptr;
  for (const Object& object : run.ledger->objects) {
    if (object.kind != Kind::FileDescriptor || object.pid != close.pid || object.tid != close.tid || object.acquired.begin < close.begin)
      continue;
    if (next == nullptr || object.acquired.begin < next->acquired.begin) next = &object;
  }
  if (next == nullptr || next->handle != close.argument[0]) return false;
  const std::span<const std::uint32_t> calls = run.own_calls();
  return std::none_of(calls.begin(), calls.end(), [&](std::uint32_t index) {
    const Record& call = run.record(index);
    return call.pid == close.pid && call.tid == close.tid && call.begin > close.begin && call.begin < next->acquired.begin;
  });
}

struct Closes {
  std::vector<const Record*> inherited;  // the process never opened the number: it was open when the program began
  std::vector<const Record*> again;      // the number was not open
};

// Only the program's first process is judged: a child may close what it was given. `only_opened`: ignore numbers that were never opened.
Closes ClosesOf(const Evidence& run, std::span<const std::uint32_t> all, bool only_opened) {
  Closes closes;
  for (const std::uint32_t index : all) {
    const Record& record = run.record(index);
    if (!run.facts().IsFirst(record.pid)) continue;
    (WasNotOpen(record) ? closes.again : closes.inherited).push_back(&record);
  }
  if (closes.inherited.empty() && closes.again.empty()) return closes;
  std::map<std::uint64_t, std::uint64_t> opened;  // first opening of each number
  for (const Object& object : run.ledger->objects) {
    if (object.kind == Kind::FileDescriptor && run.facts().IsFirst(object.pid)) opened.try_emplace(object.handle, object.acquired.begin);
  }
  const auto was_opened = [&](const Record* record) {
    const auto found = opened.find(record->argument[0]);
    return found != opened.end() && found->second < record->begin;
  };
  std::erase_if(closes.inherited, was_opened);
  if (only_opened) std::erase_if(closes.again, [&](const Record* record) { return !was_opened(record); });
  return closes;
}

class Finder {
 public:
  Finder(const UsualCloses& usual, const Evidence& trial) : usual_(usual), trial_(trial) {}

  std::vector<TrialFinding> Find() {
    FindClosesOfNothing();
    FindTakenNumbers();
    return std::move(findings_);
  }

 private:
  // `before`: the close that ended the descriptor which this one had to close; Empty when nobody did.
  void Add(const Site& where, const Object* closed, const Site& before, Detail detail) {
    if (CalledByDriver(*trial_.journal, where.stack)) return;
    TrialFinding finding = FindingAt(Rule::Deficit, where, *trial_.journal, {{detail}}, Kind::FileDescriptor);
    if (closed != nullptr) SetAcquired(closed->acquired, *trial_.journal, &finding);
    if (before.record_kind != RecordKind::Empty) SetOther(before, *trial_.journal, &finding);
    findings_.push_back(std::move(finding));
  }

  // The last close of a descriptor of this number; Empty when the journal has none.
  Site CloseBefore(const Record& again) const {
    Site before;
    for (const Object& object : trial_.ledger->objects) {
      if (object.kind != Kind::FileDescriptor || object.pid != again.pid || object.handle != again.argument[0]) continue;
      if (object.state == State::Released && object.released.begin < again.begin && object.released.begin >= before.begin)
        before = object.released;
    }
    return before;
  }

  // Inherited descriptors are compared by number, because a program that ends early closes its standard streams from another place. They
  // are also compared by place, because a loop over all numbers may find other ones open.
  void FindClosesOfNothing() {
    const Closes closes = ClosesOf(trial_, trial_.own_closes(), true);
    if (closes.inherited.empty() && closes.again.empty()) return;
    const auto is_usual = [&](const Record* record) {
      return usual_.places_of_unopened.count(CallerKey(*trial_.journal, SiteOf(*record))) != 0;
    };
    for (const Record* const record : closes.inherited) {
      if (usual_.inherited.count(record->argument[0]) == 0 && !is_usual(record) && !IsReplaced(trial_, *record))
        Add(SiteOf(*record), nullptr, {}, Detail::OpenAtBegin);
    }
    for (const Record* const record : closes.again) {
      if (!is_usual(record)) Add(SiteOf(*record), nullptr, CloseBefore(*record), Detail::ClosedAlready);
    }
  }

  // A close of a number that now belongs to another file. In the fault-free run this close closes descriptors opened in other places.
  void FindTakenNumbers() {
    std::map<std::uint64_t, std::vector<const Object*>> by_number;
    for (const Object& object : trial_.ledger->objects) {
      if (object.kind == Kind::FileDescriptor && trial_.facts().IsFirst(object.pid) && object.acquired.record_kind == RecordKind::Host)
        by_number[object.handle].push_back(&object);
    }
    for (const auto& [number, objects] : by_number) {
      for (std::size_t i = 1; i < objects.size(); ++i) {
        const Object& taken = *objects[i];
        const std::uint64_t place = SiteKey(*trial_.journal, taken.acquired);
        const auto own = usual_.closed_at.find(SiteKey(*trial_.journal, taken.released));
        if (taken.state != State::Released || own == usual_.closed_at.end() || usual_.opened.count(place) == 0) continue;
        if (own->second.count(place) != 0) continue;
        const auto stale = std::find_if(objects.rend() - static_cast<std::ptrdiff_t>(i), objects.rend(), [&](const Object* earlier) {
          return own->second.count(SiteKey(*trial_.journal, earlier->acquired)) != 0;
        });
        if (stale != objects.rend()) Add(taken.released, &taken, (*stale)->released, Detail::NumberTaken);
      }
    }
  }

  const UsualCloses& usual_;
  const Evidence& trial_;
  std::vector<TrialFinding> findings_;
};

}  // namespace

UsualCloses UsualClosesOf(const Evidence& fault_free) {
  UsualCloses usual;
  const Closes closes = ClosesOf(fault_free, fault_free.facts().closes, false);
  const auto place = [&](const Record* record) { return CallerKey(*fault_free.journal, SiteOf(*record)); };
  for (const Record* const record : closes.inherited) {
    usual.inherited.insert(record->argument[0]);
    usual.places_of_unopened.insert(place(record));
  }
  for (const Record* const record : closes.again) usual.places_of_unopened.insert(place(record));
  for (const Object& object : fault_free.ledger->objects) {
    if (object.kind != Kind::FileDescriptor) continue;
    usual.opened.insert(SiteKey(*fault_free.journal, object.acquired));
    if (object.state == State::Released)
      usual.closed_at[SiteKey(*fault_free.journal, object.released)].insert(SiteKey(*fault_free.journal, object.acquired));
  }
  return usual;
}

std::vector<TrialFinding> ClosedByWrongOwner(const UsualCloses& usual, const Evidence& trial) { return Finder(usual, trial).Find(); }

}  // namespace cuaudit::harness
