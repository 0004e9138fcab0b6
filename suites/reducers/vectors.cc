// SPDX-License-Identifier: MIT
#include "suites/reducers/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "cuaudit/gtest.h"

namespace cuaudit::reducers {

std::string Lost(const Audit& audit) {
  std::map<std::string, std::uint64_t> counts;
  std::string others;
  for (const Finding& finding : audit.findings) {
    if (finding.rule == "leak" || finding.rule == "growth") {
      counts[finding.kind] += finding.count;
    } else {
      others.append(others.empty() ? "" : ", ").append(finding.rule).append(finding.kind.empty() ? "" : " ").append(finding.kind);
    }
  }
  std::string text;
  for (const auto& [kind, count] : counts) text.append(text.empty() ? "" : ", ").append(kind).append(" ").append(std::to_string(count));
  if (!others.empty()) text.append(text.empty() ? "" : ", ").append(others);
  return audit.outcome == AuditOutcome::Findings || audit.outcome == AuditOutcome::Clean ? text : audit.message;
}

void ExpectVectors(Lifecycle defective, const std::vector<Row>& rows) {
  defective.RetryTeardown();
  for (const Row& row : rows) EXPECT_EQ(Lost(Replay(defective, {row.fault})), row.lost) << defective.name() << " under " << row.fault;
  const Audit audit = Sweep(defective, {.depth = 1, .prune = cuaudit::Prune::None});
  const auto call = [](const std::string& fault) { return fault.substr(0, fault.find('=')); };
  std::vector<std::string> expected;
  expected.reserve(rows.size());
  for (const Row& row : rows) expected.push_back(call(row.fault));
  for (const Finding& finding : audit.findings) {
    ASSERT_EQ(finding.faults.size(), 1U) << audit.Text();
    EXPECT_THAT(expected, ::testing::Contains(call(finding.faults.front()))) << audit.Text();
  }
}

std::vector<Lifecycle>*& Collector() {
  static std::vector<Lifecycle>* collector = nullptr;
  return collector;
}

void ExpectSilent(Lifecycle repaired) {
  repaired.RetryTeardown();
  if (Collector() != nullptr) return Collector()->push_back(repaired);
  EXPECT_UNWINDS_CLEANLY(repaired);
  EXPECT_ALLOCATION_NEUTRAL(repaired);
}

}  // namespace cuaudit::reducers
