// SPDX-License-Identifier: MIT
// findings.h: the findings of an audit as short texts: "leak stream 1 after cuEventCreate#1=OUT_OF_MEMORY,refuse".
#pragma once

#include <string>
#include <vector>

#include "cuaudit/lifecycle.h"

namespace cuaudit::testing {

inline std::string Text(const Finding& finding) {
  std::string text = finding.rule;
  if (!finding.kind.empty()) text.append(" ").append(finding.kind).append(" ").append(std::to_string(finding.count));
  for (std::size_t i = 0; i < finding.faults.size(); ++i) text.append(i == 0 ? " after " : " ").append(finding.faults[i]);
  return text;
}

inline std::vector<std::string> Texts(const Audit& audit) {
  std::vector<std::string> texts;
  for (const Finding& finding : audit.findings) texts.push_back(Text(finding));
  if (audit.outcome != AuditOutcome::Findings && audit.outcome != AuditOutcome::Clean) texts.push_back(audit.message);
  return texts;
}

}  // namespace cuaudit::testing
