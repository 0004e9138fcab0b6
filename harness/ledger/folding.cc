// SPDX-License-Identifier: MIT
#include "harness/ledger/folding.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "harness/ledger/rules.h"

namespace cuaudit::harness {
namespace {

using faults::ProcessEvent;
using faults::Record;
using faults::RecordKind;

constexpr std::size_t kStackRoom = std::size_t{16} << 10;
constexpr std::size_t kFirstObjects = 64;

bool CountsAtReturn(const Record& record) {
  return record.call < faults::kHostCallCount && faults::kHostCalls[record.call].counts == faults::HostCounts::AtReturn;
}

}  // namespace

Folding::Folding(const Folding& other)
    : given_(other.given_),
      given_count_(other.given_count_),
      last_ticket_(other.last_ticket_),
      books_(other.books_),
      current_(other.current_),
      begun_(other.begun_),
      notes_(other.notes_) {
  processes_.reserve(other.processes_.size());
  for (const std::unique_ptr<ProcessFold>& process : other.processes_) {
    const ProcessFold* parent = nullptr;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (other.processes_[i]->IsParentOf(*process)) parent = processes_[i].get();
    }
    processes_.push_back(std::make_unique<ProcessFold>(*process, &books_, parent));
  }
}

bool Folding::Add(std::span<const Record> records) {
  if (!Schedule(records, true)) return false;
  Take(records);
  return true;
}

std::optional<Ledger> Folding::Finish(std::span<const Record> records) {
  if (!Schedule(records, false)) return std::nullopt;
  Take(records);
  for (const std::unique_ptr<ProcessFold>& process : processes_) process->Finish();
  DropSaidTwice();
  return std::move(books_.ledger);
}

// Sorts the events of these records by ticket. False: the records cannot be added.
bool Folding::Schedule(std::span<const Record> records, bool whole) {
  events_.clear();
  events_.reserve(records.size() * 2);
  bool returned = true;
  const auto add = [this](std::uint64_t ticket, const Record& record, bool at_return) {
    Event& event = events_.emplace_back();
    event.ticket = ticket;
    event.record = &record;
    event.returned = at_return;
  };
  for (const Record& record : records) {
    if (record.begin == 0) {
      returned = false;
      continue;
    }
    switch (record.kind) {
      case RecordKind::Empty:
        break;
      case RecordKind::Argument:
        if (begun_ && record.context <= last_ticket_) return false;  // belongs to a call that was already folded
        break;
      case RecordKind::Call:
        returned = returned && record.end != 0;
        if (!IsProgramCall(record)) break;
        add(record.begin, record, false);
        if (record.end != 0) add(record.end, record, true);
        break;
      case RecordKind::Host:
        returned = returned && (record.end != 0 || !CountsAtReturn(record));
        add(CountsAtReturn(record) && record.end != 0 ? record.end : record.begin, record, false);
        break;
      case RecordKind::Mark:
      case RecordKind::Process:
      case RecordKind::Misuse:
      case RecordKind::Stop:
        add(record.begin, record, false);
        break;
    }
  }
  if (whole && !returned) return false;
  const auto earlier = [](const Event& a, const Event& b) { return a.ticket < b.ticket; };
  if (!std::is_sorted(events_.begin(), events_.end(), earlier)) std::stable_sort(events_.begin(), events_.end(), earlier);
  return events_.empty() || !begun_ || events_.front().ticket > last_ticket_;
}

void Folding::Take(std::span<const Record> records) {
  if (!given_.empty() && given_.back().data() + given_.back().size() == records.data()) {
    given_.back() = {given_.back().data(), given_.back().size() + records.size()};
  } else {
    given_.push_back(records);
  }
  addresses_.clear();
  contents_.clear();
  told_.clear();
  calls_.clear();
  Facts& facts = books_.ledger.facts;
  const bool noting = notes_ == Notes::Everything;
  if (noting && facts.calls.empty()) facts.calls.reserve(records.size());
  if (books_.ledger.objects.empty()) {
    books_.ledger.objects.reserve(std::min(records.size(), kFirstObjects));
    books_.beneath.reserve(std::min(records.size(), kFirstObjects));
  }
  const auto index_of = [&, before = given_count_](const Record& record) {
    return static_cast<std::uint32_t>(before + static_cast<std::size_t>(&record - records.data()));
  };
  given_count_ += records.size();
  for (const Record& record : records) {
    if (record.begin == 0) continue;
    if (noting) facts.Count(record, index_of(record));
    if (IsProgramCall(record)) {
      books_.ledger.unmodelled_calls += (record.flags & faults::kUnmodelled) != 0 ? 1 : 0;
      books_.ledger.unfinished_calls += record.end == 0 ? 1 : 0;
    }
    if (record.kind != RecordKind::Argument) continue;
    if ((record.flags & (faults::kDescriptor | faults::kStandsOn | faults::kLaunchWords | faults::kLends | faults::kNames)) != 0) {
      told_[record.context].push_back(&record);
      continue;
    }
    if ((record.flags & (faults::kMemoryNode | faults::kMovedGraph | faults::kCopiedGraph | faults::kCapturedNode)) != 0) {
      contents_[record.context] = &record;
      continue;
    }
    Graphs::Addresses& addresses = addresses_[record.context];
    for (const std::uint64_t address : record.argument) {
      // The argument is a number and not an address.
      if (address != 0 && (address & kNeededObject) == 0) addresses.push_back(address);
    }
  }
  if (events_.empty()) return;
  begun_ = true;
  last_ticket_ = events_.back().ticket;
  for (const Event& event : events_) {
    if (noting && !event.returned) facts.Take(*event.record, index_of(*event.record));
    Apply(event);
  }
}

void Folding::Apply(const Event& event) {
  const Record& record = *event.record;
  switch (record.kind) {
    case RecordKind::Call: {
      ProcessFold& process = ProcessOf(record.pid);
      // A captured node is looked at when its call begins, and the content of an added node when its call has returned.
      const auto content = contents_.find(record.begin);
      const bool is_due = content != contents_.end() && ((content->second->flags & faults::kCapturedNode) != 0) != event.returned;
      process.NodeContent(is_due ? content->second : nullptr, record);
      if (event.returned) {
        process.Return(record, AddressesOf(record), ToldOf(record));
      } else {
        process.Enter(record, AddressesOf(record));
      }
      break;
    }
    case RecordKind::Host:
      ProcessOf(record.pid).Host(record);
      break;
    case RecordKind::Mark:
      ProcessOf(record.pid).Mark(record);
      break;
    case RecordKind::Process:
      Process(record);
      break;
    case RecordKind::Misuse:
      Misuse(record);
      break;
    case RecordKind::Empty:
    case RecordKind::Argument:
    case RecordKind::Stop:
      break;
  }
}

// The calls alone may already show a use of freed memory, or of a registration whose memory is gone. A proof of the same use by the
// simulated driver is dropped: one bug, one violation. The proof is kept for a graph whose module is gone, because it also names the call
// that queued the node.
void Folding::DropSaidTwice() {
  std::vector<Violation>& violations = books_.ledger.violations;
  std::set<std::tuple<std::uint32_t, std::int64_t, std::uint64_t>> shown;
  for (const Violation& violation : violations) {
    if (violation.rule == Rule::UseAfterRelease) shown.emplace(violation.pid, violation.object, violation.where.begin);
  }
  std::set<std::pair<std::uint32_t, std::uint64_t>> proved;
  for (const Violation& violation : violations) {
    if (violation.rule == Rule::DestroyedInUse) proved.emplace(violation.pid, violation.where.begin);
  }
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> under;
  for (const Violation& violation : violations) {
    if (violation.rule == Rule::DestroyedUnderUser) under.emplace(violation.pid, violation.handle, violation.where.begin);
  }
  std::erase_if(violations, [&](const Violation& violation) {
    const std::uint64_t queued = violation.other.begin != 0 ? violation.other.begin : violation.where.begin;
    if (violation.rule == Rule::HostFreedInUse && under.contains({violation.pid, violation.handle, queued})) return true;
    if (violation.rule == Rule::DestroyedUnderUser && proved.contains({violation.pid, violation.where.begin})) return true;
    return violation.object >= 0 && IsProved(violation.rule) && shown.count({violation.pid, violation.object, violation.where.begin}) != 0;
  });
}

// A proof may name any call of any process, so the first proof costs a pass over all records.
Site Folding::PlaceOf(std::uint64_t begin) {
  if (calls_.empty()) {
    for (const std::span<const Record>& records : given_) {
      for (const Record& call : records) {
        if (IsProgramCall(call)) calls_.emplace(call.begin, SiteOf(call));
      }
    }
  }
  const auto call = calls_.find(begin);
  return call == calls_.end() ? Site() : call->second;
}

// The calls that a proof names may have returned long ago, in whichever process queued the work.
void Folding::Misuse(const Record& record) {
  if (record.call >= driver::kMisuseRuleCount || record.argument[0] >= driver::kKindCount) return;
  ProcessOf(record.pid).Misuse(record, PlaceOf(record.argument[3]), PlaceOf(record.argument[4]));
}

void Folding::Process(const Record& record) {
  switch (static_cast<ProcessEvent>(record.call)) {
    case ProcessEvent::Start:
      // A second start with the same process id is an exec. Nothing of the old image can be released any more.
      if (current_.count(record.pid) != 0) {
        ProcessOf(record.pid).Replaced(record);
        Open(record.pid, std::make_unique<ProcessFold>(&books_, record.pid));
      }
      break;
    case ProcessEvent::Fork: {
      const ProcessFold& parent = ProcessOf(static_cast<std::uint32_t>(record.argument[0]));
      Open(record.pid, std::make_unique<ProcessFold>(&books_, record.pid, &parent, record.begin));
      break;
    }
    case ProcessEvent::Exit:
      ProcessOf(record.pid).Exit();
      break;
    case ProcessEvent::RuntimeExit:
      ProcessOf(record.pid).RuntimeExit();
      break;
    case ProcessEvent::Running:  // a fact (facts.h), and nothing that the books change by
      break;
  }
}

ProcessFold& Folding::Open(std::uint32_t pid, std::unique_ptr<ProcessFold> process) {
  current_[pid] = processes_.size();
  last_ = nullptr;
  processes_.push_back(std::move(process));
  return *processes_.back();
}

ProcessFold& Folding::ProcessOf(std::uint32_t pid) {
  if (last_ != nullptr && last_pid_ == pid) return *last_;
  const auto found = current_.find(pid);
  if (found == current_.end()) return Open(pid, std::make_unique<ProcessFold>(&books_, pid));
  last_pid_ = pid;
  last_ = processes_[found->second].get();
  return *last_;
}

const Graphs::Addresses& Folding::AddressesOf(const Record& record) const {
  static const Graphs::Addresses kNone;
  const auto found = addresses_.find(record.begin);
  return found == addresses_.end() ? kNone : found->second;
}

ProcessFold::Told Folding::ToldOf(const Record& record) const {
  const auto found = told_.find(record.begin);
  return found == told_.end() ? ProcessFold::Told() : ProcessFold::Told(found->second);
}

Ledger Fold(std::span<const faults::Record> records) {
  Folding folding;
  return *folding.Finish(records);
}

// The books of a trial in process find room on the stack.
Ledger FoldObjects(std::span<const faults::Record> records) {
  std::array<std::byte, kStackRoom> room;
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
  Folding folding(Folding::Notes::NoFacts, &memory);
  return *folding.Finish(records);
}

}  // namespace cuaudit::harness
