// SPDX-License-Identifier: MIT
#include "harness/verdict/evidence/finding.h"

#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {

TrialFinding FindingOf(Rule rule, const Object& object, const faults::JournalView& journal) {
  TrialFinding finding = {.rule = rule, .kind = object.kind, .count = 1, .bytes = object.bytes};
  SetAcquired(object.acquired, journal, &finding);
  return finding;
}

TrialFinding FindingAt(Rule rule, const Site& where, const faults::JournalView& journal, Details detail, driver::Kind kind) {
  TrialFinding finding = {.rule = rule, .kind = kind, .count = 1, .detail = std::move(detail)};
  SetWhere(where, journal, &finding);
  return finding;
}

void SetAcquired(const Site& acquired, const faults::JournalView& journal, TrialFinding* finding) {
  finding->acquired = acquired;
  finding->acquired_key = SiteKey(journal, acquired);
}

void SetWhere(const Site& where, const faults::JournalView& journal, TrialFinding* finding) {
  finding->where = where;
  finding->where_key = SiteKey(journal, where);
}

void SetOther(const Site& other, const faults::JournalView& journal, TrialFinding* finding) {
  finding->other = other;
  finding->other_key = SiteKey(journal, other);
}

}  // namespace cuaudit::harness
