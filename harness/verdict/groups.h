// SPDX-License-Identifier: MIT
// groups.h: findings of one trial that are one finding.
//
//   Owns      the findings.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/ledger/rules.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

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
