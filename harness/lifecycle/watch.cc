// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "include/cuaudit/watch.h"

#include <algorithm>

#include "faults/journal/memory_journal.h"
#include "faults/journal/stack_table.h"
#include "faults/shim/gate.h"
#include "harness/lifecycle/diversion.h"
#include "harness/lifecycle/own_object.h"
#include "harness/lifecycle/trial_text.h"
#include "harness/lifecycle/trial_verdict.h"
#include "harness/verdict/surplus.h"

namespace cuaudit {
namespace {

constexpr std::size_t kRecords = std::size_t{1} << 22;

bool IsIn(std::uint64_t ticket, const std::vector<Watch::Span>& spans) {
  return std::any_of(spans.begin(), spans.end(),
                     [ticket](const Watch::Span& span) { return span.first <= ticket && ticket < span.second; });
}

}  // namespace

struct Watch::Impl {
  const char* why_not = nullptr;
  faults::MemoryJournal journal;
  std::unique_ptr<faults::StackTable> stacks = std::make_unique<faults::StackTable>();
  faults::Gate gate;
  std::unique_ptr<harness::Diversion> diversion;

  const char* Open() {
    const driver::DriverRef next = harness::Diversion::Undiverted();
    if (next.table == nullptr) return "cuaudit's drop-in library is not in this process: link cuaudit::dropin, or run under cuaudit run";
    faults::JournalOptions options;
    options.record_capacity = kRecords;
    options.stack_depth = faults::kMaxFrames;
    options.stacks_of_objects_only = true;
    if (const char* wrong = journal.Open(options, false)) return wrong;
    stacks->Attach(journal.journal(), harness::IsOwnObject());
    // The program's contexts stay its own: nothing is pinned.
    gate.Arm(next, journal.journal(), stacks.get(), faults::Plan(), faults::Scope::Process);
    diversion = std::make_unique<harness::Diversion>(faults::Driver(&gate));
    return nullptr;
  }
};

Watch::Watch() : impl_(std::make_unique<Impl>()) { impl_->why_not = impl_->Open(); }
Watch::~Watch() = default;

const char* Watch::why_not() const noexcept { return impl_->why_not; }

std::uint64_t Watch::Now() const noexcept {
  return impl_->why_not != nullptr ? 0 : impl_->journal.View().header().clock.load(std::memory_order_relaxed) + 1;
}

Audit Watch::Since(std::uint64_t from, const std::string& name, const std::vector<Span>& but) const {
  Audit audit;
  audit.lifecycle = name;
  audit.outcome = AuditOutcome::NotExercised;
  if (impl_->why_not != nullptr) {
    audit.message = impl_->why_not;
    return audit;
  }
  const faults::JournalView whole = impl_->journal.View();
  if ((whole.header().flags.load() & faults::kRecordsDropped) != 0) {
    audit.message = "the program made more driver calls than the journal has room for";
    return audit;
  }
  const auto records = whole.records();
  const auto first = std::find_if(records.begin(), records.end(), [from](const faults::Record& one) { return one.begin >= from; });
  harness::Observation seen;
  seen.journal = whole.Part(static_cast<std::size_t>(first - records.begin()), static_cast<std::size_t>(records.end() - first));
  seen.ledger = harness::Fold(seen.journal.records());
  audit.calls = seen.ledger.calls;
  audit.driver = harness::Diversion::UndivertedDriver();
  for (harness::Object& object : seen.ledger.objects) {
    if (IsIn(object.acquired.begin, but)) object.state = harness::State::Released;
  }
  std::erase_if(seen.ledger.violations, [&](const harness::Violation& one) { return IsIn(one.where.begin, but); });

  const harness::Ledger nothing;
  const faults::JournalView before = whole.Part(0, 0);
  const harness::Evidence empty = {&nothing, &before, {}};
  harness::TrialVerdict verdict;
  verdict.findings = harness::CompareViolations(&empty, seen.evidence());
  for (harness::TrialFinding& leak : harness::CompareObjects(&empty, seen.evidence()).leaks) verdict.findings.push_back(leak);
  harness::FindingTexts("").Add(verdict, seen.journal, {}, &audit);
  audit.outcome = !audit.findings.empty() ? AuditOutcome::Findings : audit.calls == 0 ? AuditOutcome::NotExercised : AuditOutcome::Clean;
  if (audit.outcome == AuditOutcome::Clean) audit.message = "nothing is left";
  if (audit.outcome == AuditOutcome::NotExercised) audit.message = "no driver call was made";
  return audit;
}

}  // namespace cuaudit
