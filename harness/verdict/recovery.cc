// SPDX-License-Identifier: MIT
#include "harness/verdict/recovery.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "harness/verdict/said.h"

namespace cuaudit::harness {
namespace {

using faults::MarkKind;
using faults::Record;
using faults::RecordKind;

bool IsMark(const Record& record, MarkKind kind) {
  return record.kind == RecordKind::Mark && record.call == static_cast<std::uint16_t>(kind);
}

bool IsCall(const Record& record) {
  return record.kind == RecordKind::Call && record.call < driver::kCallCount && (record.flags & faults::kNested) == 0;
}

// What one cycle of one run looks like from outside.
struct CycleFacts {
  bool begun = false;
  std::uint64_t end = 0;  // ticket of its end, 0: none
  std::uint64_t said = 0;
  std::map<std::uint64_t, std::uint64_t> failures;  // by place: calls that failed
  const Record* failing = nullptr;                  // the first call that failed more often than it may
};

bool IsRelease(const Record& record) {
  return driver::IsRelease(driver::EffectOf(driver::BaseOf(static_cast<driver::CallId>(record.call))).effect);
}

// `told_alive`: something was released and told not to have been; a program that then tries again must fail.
CycleFacts FactsOf(const faults::JournalView& journal, std::span<const Record> records, std::uint32_t cycle, const CycleFacts* allowed,
                   bool told_alive) {
  CycleFacts facts;
  for (const Record& record : records) {
    if (record.begin == 0 || record.cycle != cycle) continue;
    if (IsMark(record, MarkKind::CycleBegin)) facts.begun = true;
    if (IsMark(record, MarkKind::CycleEnd)) facts.end = record.begin;
    if (IsMark(record, MarkKind::Report) && record.argument[0] != 0) facts.said = record.argument[0];
    if (!IsCall(record) || record.end == 0 || record.result == CUDA_SUCCESS) continue;
    if (told_alive && IsRelease(record)) continue;
    const std::uint64_t place = SiteKey(journal, {record.kind, record.call, record.stack, record.begin});
    const std::uint64_t count = ++facts.failures[place];
    if (allowed == nullptr || facts.failing != nullptr) continue;
    const auto known = allowed->failures.find(place);
    if (known == allowed->failures.end() || known->second < count) facts.failing = &record;
  }
  return facts;
}

bool IsDriverObject(const Object& object) {
  return object.acquired.record_kind == RecordKind::Call && driver::DiesWithOf(object.kind) != driver::DiesWith::Parent;
}

bool LiveAt(const Object& object, std::uint64_t ticket) {
  const bool gone = object.state == State::Released || object.state == State::Orphaned;
  return object.acquired.begin < ticket && (!gone || object.released.begin > ticket);
}

using Places = std::map<std::pair<driver::Kind, std::uint64_t>, std::uint64_t>;

// Acquired in `cycle` and still held when it ended, beyond what the rehearsal holds at that point.
const Object* Surplus(const Evidence& rehearsal, std::uint64_t rehearsed_end, const Evidence& trial, std::uint32_t cycle,
                      std::uint64_t end) {
  Places allowed;
  for (const Object& object : rehearsal.ledger->objects) {
    if (IsDriverObject(object) && LiveAt(object, rehearsed_end)) ++allowed[{object.kind, SiteKey(*rehearsal.journal, object.acquired)}];
  }
  for (const Object& object : trial.ledger->objects) {
    if (!IsDriverObject(object) || object.cycle != cycle || !LiveAt(object, end)) continue;
    std::uint64_t& left = allowed[{object.kind, SiteKey(*trial.journal, object.acquired)}];
    if (left == 0) return &object;
    --left;
  }
  return nullptr;
}

TrialFinding Finding(std::string detail) {
  TrialFinding finding;
  finding.rule = Rule::NotRecovered;
  finding.count = 1;
  finding.detail = std::move(detail);
  return finding;
}

}  // namespace

std::string_view WhyUnchecked(Recovery recovery) noexcept {
  switch (recovery) {
    case Recovery::NoFault:
    case Recovery::Checked:
      return {};
    case Recovery::NoMarks:
      return "the program marks no cycles";
    case Recovery::NoCycleAfter:
      return "the fault hit the last cycle";
    case Recovery::GaveUp:
      return "the program ended after the faulted cycle";
    case Recovery::Refused:
      return "a refused release left something behind";
    case Recovery::Died:
      return "the program died";
  }
  return {};
}

RecoveryCheck CheckRecovery(const Evidence& rehearsal, const Evidence& trial) {
  RecoveryCheck check;
  const Record* last = nullptr;
  for (const Record& record : trial.journal->own_records()) {
    if (record.begin == 0) continue;
    if (IsCall(record) && (record.flags & faults::kInjected) != 0 && (last == nullptr || record.begin > last->begin)) last = &record;
  }
  if (last == nullptr) return check;
  const std::uint32_t cycle = last->cycle + 1;
  const bool died = trial.ending.timed_out || trial.ending.signal != 0;
  const std::span<const Record> records = trial.journal->records();
  const bool marks = last->cycle != 0 && std::any_of(records.begin(), records.end(), [](const Record& record) {
                       return record.begin != 0 && IsMark(record, MarkKind::CycleBegin);
                     });
  if (died || !marks) {
    check.recovery = died ? Recovery::Died : Recovery::NoMarks;
    return check;
  }
  const CycleFacts rehearsed = FactsOf(*rehearsal.journal, rehearsal.journal->records(), cycle, nullptr, false);
  const std::vector<Object>& objects = trial.ledger->objects;
  const bool told_alive = std::any_of(objects.begin(), objects.end(), [](const Object& object) { return object.told_alive; });
  const CycleFacts tried = FactsOf(*trial.journal, trial.journal->own_records(), cycle, &rehearsed, told_alive);
  const bool kept = std::any_of(objects.begin(), objects.end(), [](const Object& object) { return object.state == State::ReleaseRefused; });
  check.recovery = !rehearsed.begun || !rehearsed.end ? Recovery::NoCycleAfter
                   : !tried.begun                     ? Recovery::GaveUp
                   : kept                             ? Recovery::Refused
                                                      : Recovery::Checked;
  if (check.recovery != Recovery::Checked) return check;

  if (tried.failing != nullptr) {
    const auto result = static_cast<CUresult>(tried.failing->result);
    TrialFinding finding = Finding("the call answered " + std::string(driver::ShortResultName(result)) + " in the clean cycle");
    finding.where = {tried.failing->kind, tried.failing->call, tried.failing->stack, tried.failing->begin};
    finding.where_key = SiteKey(*trial.journal, finding.where);
    check.findings.push_back(std::move(finding));
  } else if (tried.end == 0) {
    check.findings.push_back(Finding("the clean cycle did not end"));
  } else if (tried.said != 0 && rehearsed.said == 0) {
    check.findings.push_back(Finding("the clean cycle reported " + SaidCode(tried.said)));
  } else if (const Object* const left = Surplus(rehearsal, rehearsed.end, trial, cycle, tried.end)) {
    TrialFinding finding = Finding("the clean cycle left it");
    finding.kind = left->kind;
    finding.bytes = left->bytes;
    finding.acquired = left->acquired;
    finding.acquired_key = SiteKey(*trial.journal, left->acquired);
    check.findings.push_back(std::move(finding));
  }
  return check;
}

}  // namespace cuaudit::harness
