// SPDX-License-Identifier: MIT
#include "harness/ledger/ledger.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/ledger/process_fold.h"
#include "harness/ledger/rules.h"

namespace cuaudit::harness {
namespace {

using faults::ProcessEvent;
using faults::Record;
using faults::RecordKind;

struct Event {
  std::uint64_t ticket = 0;
  std::size_t record = 0;
  bool returned = false;
};

bool CountsAtEntry(const Record& record) {
  return record.end == 0 || record.call >= faults::kHostCallCount || faults::kHostCalls[record.call].counts == faults::HostCounts::AtEntry;
}

// Calls that the driver or the gate make inside another call are not the program's.
bool IsProgramCall(const Record& record) {
  return record.kind == RecordKind::Call && record.begin != 0 && record.call < driver::kCallCount && (record.flags & faults::kNested) == 0;
}

class Folder {
 public:
  explicit Folder(std::span<const Record> records) : records_(records) {}

  Ledger Run() {
    Schedule();
    for (const Event& event : events_) Apply(event);
    for (const std::unique_ptr<ProcessFold>& process : processes_) process->Finish();
    DropSaidTwice();
    return std::move(books_.ledger);
  }

 private:
  void Schedule() {
    events_.reserve(records_.size() * 2);
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const Record& record = records_[i];
      if (record.begin == 0) continue;
      switch (record.kind) {
        case RecordKind::Empty:
          break;
        case RecordKind::Call:
          if (!IsProgramCall(record)) break;
          Count(record);
          events_.push_back({record.begin, i, false});
          if (record.end != 0) events_.push_back({record.end, i, true});
          break;
        case RecordKind::Argument: {
          if ((record.flags & (faults::kMemoryNode | faults::kMovedGraph | faults::kCopiedGraph)) != 0) {
            contents_[record.context] = &record;
            break;
          }
          Graphs::Addresses& addresses = addresses_[record.context];
          for (const std::uint64_t address : record.argument) {
            if (address != 0) addresses.push_back(address);
          }
          break;
        }
        case RecordKind::Host:
          events_.push_back({CountsAtEntry(record) ? record.begin : record.end, i, false});
          break;
        case RecordKind::Mark:
        case RecordKind::Process:
        case RecordKind::Misuse:
          events_.push_back({record.begin, i, false});
          break;
      }
    }
    const auto earlier = [](const Event& a, const Event& b) { return a.ticket < b.ticket; };
    if (!std::is_sorted(events_.begin(), events_.end(), earlier)) std::stable_sort(events_.begin(), events_.end(), earlier);
    if (!events_.empty()) first_pid_ = records_[events_.front().record].pid;
  }

  void Count(const Record& record) {
    ++books_.ledger.calls;
    if ((record.flags & faults::kUnmodelled) != 0) ++books_.ledger.unmodelled_calls;
    if (record.end == 0) ++books_.ledger.unfinished_calls;
  }

  void Apply(const Event& event) {
    const Record& record = records_[event.record];
    switch (record.kind) {
      case RecordKind::Call:
        if (event.returned) {
          if (const auto content = contents_.find(record.begin); content != contents_.end()) {
            ProcessOf(record.pid).NodeContent(*content->second);
          }
          ProcessOf(record.pid).Return(record, AddressesOf(record));
        } else {
          ProcessOf(record.pid).Enter(record, AddressesOf(record));
        }
        break;
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
        break;
    }
  }

  // A use of freed memory that the calls alone already show is not said again by the simulated driver's proof: one bug, one violation.
  void DropSaidTwice() {
    std::vector<Violation>& violations = books_.ledger.violations;
    std::set<std::tuple<std::uint32_t, std::int64_t, std::uint64_t>> shown;
    for (const Violation& violation : violations) {
      if (violation.rule == Rule::UseAfterRelease) shown.emplace(violation.pid, violation.object, violation.where.begin);
    }
    std::erase_if(violations, [&](const Violation& violation) {
      return violation.object >= 0 && IsProved(violation.rule) &&
             shown.count({violation.pid, violation.object, violation.where.begin}) != 0;
    });
  }

  // The calls that a proof names may have returned long ago, in whichever process queued them.
  void Misuse(const Record& record) {
    if (record.call >= driver::kMisuseRuleCount || record.argument[0] >= driver::kKindCount) return;
    if (calls_.empty()) {
      for (const Record& call : records_) {
        if (IsProgramCall(call)) calls_.emplace(call.begin, &call);
      }
    }
    const auto place = [&](std::uint64_t begin) {
      const auto call = calls_.find(begin);
      return call == calls_.end() ? Site() : SiteOf(*call->second);
    };
    ProcessOf(record.pid).Misuse(record, place(record.argument[3]), place(record.argument[4]));
  }

  void Process(const Record& record) {
    switch (static_cast<ProcessEvent>(record.call)) {
      case ProcessEvent::Start:
        // A second start under the same number is exec: nothing of the former image is left to release.
        if (current_.count(record.pid) != 0) Open(record.pid, std::make_unique<ProcessFold>(&books_, record.pid));
        break;
      case ProcessEvent::Fork: {
        const ProcessFold& parent = ProcessOf(static_cast<std::uint32_t>(record.argument[0]));
        Open(record.pid, std::make_unique<ProcessFold>(&books_, record.pid, &parent, record.begin));
        break;
      }
      case ProcessEvent::Exit:
        if (record.pid == first_pid_) books_.ledger.exited = true;
        break;
      case ProcessEvent::RuntimeExit:
        ProcessOf(record.pid).RuntimeExit();
        break;
    }
  }

  ProcessFold& Open(std::uint32_t pid, std::unique_ptr<ProcessFold> process) {
    current_[pid] = processes_.size();
    processes_.push_back(std::move(process));
    return *processes_.back();
  }

  ProcessFold& ProcessOf(std::uint32_t pid) {
    const auto found = current_.find(pid);
    if (found != current_.end()) return *processes_[found->second];
    return Open(pid, std::make_unique<ProcessFold>(&books_, pid));
  }

  const Graphs::Addresses& AddressesOf(const Record& record) const {
    static const Graphs::Addresses kNone;
    const auto found = addresses_.find(record.begin);
    return found == addresses_.end() ? kNone : found->second;
  }

  std::span<const Record> records_;
  std::vector<Event> events_;
  std::unordered_map<std::uint64_t, Graphs::Addresses> addresses_;  // by the begin ticket of the call
  std::unordered_map<std::uint64_t, const Record*> contents_;       // of a graph node that the call adds; the same
  std::unordered_map<std::uint64_t, const Record*> calls_;          // the same; filled by the first proved misuse
  Books books_;
  std::vector<std::unique_ptr<ProcessFold>> processes_;
  std::unordered_map<std::uint32_t, std::size_t> current_;
  std::uint32_t first_pid_ = 0;
};

}  // namespace

Ledger Fold(std::span<const faults::Record> records) { return Folder(records).Run(); }

}  // namespace cuaudit::harness
