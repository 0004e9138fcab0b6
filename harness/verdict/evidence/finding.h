// SPDX-License-Identifier: MIT
// finding.h: one broken rule of one trial, with its places; findings that are one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/rules.h"

namespace cuaudit::harness {

// One broken rule. All objects of one kind, acquire site and state are one finding.
struct TrialFinding {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Site acquired = {};              // record_kind is Empty when unknown
  Site where = {};                 // the call where a violation, crash or hang showed; else Empty
  Site other = {};                 // the call that it collides with; Empty when there is none
  std::uint64_t acquired_key = 0;  // SiteKey of acquired; likewise the next two
  std::uint64_t where_key = 0;
  std::uint64_t other_key = 0;
  Details detail = {};        // what the title of the rule does not say; may be empty
  bool refused_wait = false;  // a proved misuse that exists only because the plan refused a wait
  bool believed = false;      // the program was told that an earlier release had failed, and may have tried it again (Violation)
};

// A finding about an object, and one at a call (Empty: at no place). Both count one object.
[[nodiscard]] TrialFinding FindingOf(Rule rule, const Object& object, const faults::JournalView& journal);
[[nodiscard]] TrialFinding FindingAt(Rule rule, const Site& where, const faults::JournalView& journal, Details detail = {},
                                     driver::Kind kind = driver::Kind::None);

// Set a place with its key.
void SetAcquired(const Site& acquired, const faults::JournalView& journal, TrialFinding* finding);
void SetWhere(const Site& where, const faults::JournalView& journal, TrialFinding* finding);
void SetOther(const Site& other, const faults::JournalView& journal, TrialFinding* finding);

inline void Append(std::vector<TrialFinding>* to, std::vector<TrialFinding> from) {
  to->insert(to->end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Takes those out of `from` of which `is_one` is true. Both lists keep their order.
template <typename IsOne>
[[nodiscard]] std::vector<TrialFinding> TakeIf(std::vector<TrialFinding>* from, IsOne is_one) {
  const auto first = std::stable_partition(from->begin(), from->end(), [&](const TrialFinding& one) { return !is_one(one); });
  std::vector<TrialFinding> taken(std::make_move_iterator(first), std::make_move_iterator(from->end()));
  from->erase(first, from->end());
  return taken;
}

// Collects findings that agree in rule, kind and all places, in order of first appearance. Two colliding calls are one finding, however
// many buffers they collide in.
class TrialGroups {
 public:
  void Add(const TrialFinding& finding) {
    const std::uint64_t acquired_key = IsProved(finding.rule) ? 0 : finding.acquired_key;
    const std::uint64_t other = OtherCallOf(finding.rule).tells_apart ? finding.other_key : 0;
    const auto [found, added] = index_.try_emplace(
        {finding.rule, finding.kind, acquired_key, finding.where_key, other, finding.refused_wait || finding.believed, finding.detail},
        findings_.size());
    if (added) {
      findings_.push_back(finding);
    } else {
      findings_[found->second].count += finding.count;
      findings_[found->second].bytes += finding.bytes;
    }
  }
  std::vector<TrialFinding> Take() { return std::move(findings_); }

 private:
  std::map<std::tuple<Rule, driver::Kind, std::uint64_t, std::uint64_t, std::uint64_t, bool, Details>, std::size_t> index_;
  std::vector<TrialFinding> findings_;
};

}  // namespace cuaudit::harness
