// SPDX-License-Identifier: MIT
#include <algorithm>
#include <set>
#include <utility>

#include "faults/driver/effects.h"
#include "harness/defect/blame.h"
#include "harness/sweep/run/trial.h"

namespace cuaudit::harness {
namespace {

using faults::Record;

bool IsReleaseCall(const Record& record) {
  return record.kind == faults::RecordKind::Call &&
         driver::IsRelease(driver::EffectOf(driver::BaseOf(static_cast<driver::CallId>(record.call))).effect);
}

class Blamer {
 public:
  Blamer(const Rehearsed& rehearsal, const Observation& trial, const Record& failed, SiteTexts* sites)
      : rehearsal_(rehearsal), trial_(trial), evidence_(trial.evidence()), sites_(sites), failed_(failed), failed_stack_(Text(failed)) {
    std::set<std::uint32_t> known;
    for (const std::uint32_t call : evidence_.own_calls()) {
      const Record& record = evidence_.record(call);
      if (record.pid != failed.pid || record.begin < failed.begin || record.cycle != failed.cycle) continue;
      if (known.insert(record.stack).second) afterwards_.push_back(&Text(record));
    }
  }

  void Blame(const TrialFinding& finding, TrialFindingText* text) {
    if (finding.rule == Rule::Leak || finding.rule == Rule::Orphaned || finding.rule == Rule::ContextStack) {
      const auto found = rehearsal_.releases().find({finding.kind, finding.acquired_key});
      if (found != rehearsal_.releases().end()) {
        const faults::JournalView& journal = *rehearsal_.run().journal;
        text->released = sites_->Text(journal, found->second, SiteKey(journal, found->second));
      }
      const std::size_t running =
          OnFailingThread(finding.acquired.begin) ? StillRunningSince(finding.acquired.begin) : failed_stack_.size();
      text->blame = BlameForLoss({text->acquired->stack, failed_stack_, text->released->stack, running, afterwards_, RehearsedCalls()});
    } else if (finding.rule == Rule::NotRecovered) {
      text->blame = BlameForNoRecovery(text->where->stack.empty() ? failed_stack_ : text->where->stack);
    } else {
      text->blame = BlameForCall(text->where->stack.empty() ? failed_stack_ : text->where->stack);
    }
  }

 private:
  const Stack& Text(const Record& record) {
    const Site site = SiteOf(record);
    return sites_->Text(trial_.journal, site, SiteKey(trial_.journal, site))->stack;
  }

  // The calls of the fault-free run, when the call that failed is a release.
  std::span<const Stack* const> RehearsedCalls() {
    if (!rehearsed_.empty() || !IsReleaseCall(failed_)) return rehearsed_;
    const faults::JournalView& journal = *rehearsal_.run().journal;
    std::set<std::uint32_t> known;
    for (const std::uint32_t call : rehearsal_.run().facts().calls) {
      const Site site = SiteOf(rehearsal_.run().record(call));
      if (known.insert(site.stack).second) rehearsed_.push_back(&sites_->Text(journal, site, SiteKey(journal, site))->stack);
    }
    return rehearsed_;
  }

  // False when another thread made the call with this ticket: it may have been in the same functions, but not in the same calls of them.
  bool OnFailingThread(std::uint64_t ticket) const {
    const std::vector<std::uint32_t>& calls = evidence_.facts().calls;
    const auto call = std::lower_bound(calls.begin(), calls.end(), ticket,
                                       [&](std::uint32_t index, std::uint64_t begin) { return evidence_.record(index).begin < begin; });
    return call == calls.end() || evidence_.record(*call).begin != ticket || evidence_.record(*call).tid == failed_.tid;
  }

  // Index in the failing stack of the innermost function that no call of the thread was outside of since `ticket`.
  std::size_t StillRunningSince(std::uint64_t ticket) {
    if (left_.empty()) LookBack();
    std::size_t running = 0;
    for (const auto& [when, index] : left_) {
      if (when >= ticket) running = index;
    }
    return running;
  }

  // Goes back from the failing call and notes each function of its stack that was entered on the way.
  void LookBack() {
    left_.emplace_back(~std::uint64_t{0}, 0);
    std::set<std::uint32_t> known;
    const std::vector<std::uint32_t>& calls = evidence_.facts().calls;
    for (auto call = calls.rbegin(); call != calls.rend() && left_.back().second + 1 < failed_stack_.size(); ++call) {
      const Record& record = evidence_.record(*call);
      if (record.tid != failed_.tid || record.pid != failed_.pid || record.begin >= failed_.begin) continue;
      if (!known.insert(record.stack).second) continue;
      const std::size_t running = RunningSince(Text(record), failed_stack_);
      if (running > left_.back().second) left_.emplace_back(record.begin, running);
    }
  }

  const Rehearsed& rehearsal_;
  const Observation& trial_;
  const Evidence evidence_;
  SiteTexts* const sites_;
  const Record& failed_;
  const Stack& failed_stack_;
  std::vector<const Stack*> afterwards_;
  std::vector<const Stack*> rehearsed_;
  std::vector<std::pair<std::uint64_t, std::size_t>> left_;  // from this ticket back, functions further in were not yet running
};

}  // namespace

void BlameFindings(const Rehearsed& rehearsal, const Observation& trial, std::span<const TrialFinding> findings, SiteTexts* sites,
                   std::vector<TrialFindingText>* texts) {
  if (findings.empty()) return;
  // What the program lost, it lost on the way back from the last fault.
  const Record* const failed = trial.evidence().last_hit();
  if (failed == nullptr) return;
  Blamer blamer(rehearsal, trial, *failed, sites);
  for (std::size_t i = 0; i < findings.size(); ++i) blamer.Blame(findings[i], &(*texts)[i]);
}

}  // namespace cuaudit::harness
