// SPDX-License-Identifier: MIT
#include "harness/verdict/surplus.h"

#include <map>
#include <tuple>
#include <unordered_map>

namespace cuaudit::harness {
namespace {

using driver::Kind;

// SiteKey walks a stack; equal (call, stack) pairs are looked up once.
class Keys {
 public:
  explicit Keys(const faults::JournalView& journal) : journal_(&journal) {}
  std::uint64_t Of(const Site& site) {
    if (site.record_kind == faults::RecordKind::Empty) return 0;
    const std::uint64_t id =
        (std::uint64_t{site.stack} << 24) ^ (std::uint64_t{site.call} << 4) ^ static_cast<std::uint64_t>(site.record_kind);
    const auto [found, added] = keys_.try_emplace(id, 0);
    if (added) found->second = SiteKey(*journal_, site);
    return found->second;
  }

 private:
  const faults::JournalView* journal_;
  std::unordered_map<std::uint64_t, std::uint64_t> keys_;
};

// Collects findings that agree in rule, kind and both places, in order of first appearance.
class Groups {
 public:
  void Add(const TrialFinding& finding) {
    const auto [found, added] = index_.try_emplace({finding.rule, finding.kind, finding.acquired_key, finding.where_key}, findings_.size());
    if (added) {
      findings_.push_back(finding);
    } else {
      findings_[found->second].count += finding.count;
      findings_[found->second].bytes += finding.bytes;
    }
  }
  std::vector<TrialFinding> Take() { return std::move(findings_); }

 private:
  std::map<std::tuple<Rule, Kind, std::uint64_t, std::uint64_t>, std::size_t> index_;
  std::vector<TrialFinding> findings_;
};

// Nodes die with their graph, and an entry left on a context stack is reported by its own rule.
bool IsOwnLeak(const Object& object) {
  return object.state != State::Released && !object.driver_owned && driver::DiesWithOf(object.kind) != driver::DiesWith::Parent &&
         (object.kind != Kind::ContextStackEntry || object.state == State::ReleaseRefused);
}

struct Allowance {
  std::uint64_t live = 0;
  std::uint64_t orphaned = 0;
};
using Allowances = std::map<std::pair<Kind, std::uint64_t>, Allowance>;

Allowances AllowancesOf(const Evidence& rehearsal) {
  Allowances allowances;
  Keys keys(*rehearsal.journal);
  for (const Object& object : rehearsal.ledger->objects) {
    if (!IsOwnLeak(object)) continue;
    Allowance& allowance = allowances[{object.kind, keys.Of(object.acquired)}];
    ++(object.state == State::Orphaned ? allowance.orphaned : allowance.live);
  }
  return allowances;
}

bool Take(std::uint64_t* left) {
  if (*left == 0) return false;
  --*left;
  return true;
}

TrialFinding FindingOf(Rule rule, const Object& object, std::uint64_t key) {
  TrialFinding finding;
  finding.rule = rule;
  finding.kind = object.kind;
  finding.count = 1;
  finding.bytes = object.bytes;
  finding.acquired = object.acquired;
  finding.acquired_key = key;
  return finding;
}

}  // namespace

Leftovers CompareObjects(const Evidence* rehearsal, const Evidence& trial) {
  Allowances allowances;
  if (rehearsal != nullptr) allowances = AllowancesOf(*rehearsal);
  Keys keys(*trial.journal);
  struct Left {
    const Object* object;
    std::uint64_t key;
  };
  std::vector<Left> unmatched;
  Groups leaks;
  Groups refused;
  Groups lifetime;
  for (const Object& object : trial.ledger->objects) {
    if (!IsOwnLeak(object)) continue;
    const std::uint64_t key = keys.Of(object.acquired);
    if (object.state == State::ReleaseRefused) {
      TrialFinding finding = FindingOf(Rule::ReleaseRefused, object, key);
      finding.where = object.released;
      finding.where_key = keys.Of(object.released);
      refused.Add(finding);
      continue;
    }
    Allowance& allowance = allowances[{object.kind, key}];
    if (rehearsal == nullptr || Take(object.state == State::Orphaned ? &allowance.orphaned : &allowance.live)) {
      lifetime.Add(FindingOf(Rule::ProcessLifetime, object, key));
    } else {
      unmatched.push_back({&object, key});
    }
  }
  // The rehearsal may have lost the object to its context and the trial not, or the other way round: it is left behind in both.
  for (const Left& left : unmatched) {
    Allowance& allowance = allowances[{left.object->kind, left.key}];
    if (Take(&allowance.live) || Take(&allowance.orphaned)) {
      lifetime.Add(FindingOf(Rule::ProcessLifetime, *left.object, left.key));
      continue;
    }
    const bool orphaned = left.object->state == State::Orphaned;
    TrialFinding finding = FindingOf(orphaned ? Rule::Orphaned : Rule::Leak, *left.object, left.key);
    if (orphaned) {
      finding.where = left.object->released;
      finding.where_key = keys.Of(left.object->released);
    }
    leaks.Add(finding);
  }
  return {leaks.Take(), refused.Take(), lifetime.Take()};
}

std::vector<TrialFinding> CompareViolations(const Evidence* rehearsal, const Evidence& trial) {
  std::map<std::tuple<Rule, Kind, std::uint64_t>, std::uint64_t> allowed;
  if (rehearsal != nullptr) {
    Keys keys(*rehearsal->journal);
    for (const Violation& violation : rehearsal->ledger->violations) {
      ++allowed[{violation.rule, violation.kind, keys.Of(violation.where)}];
    }
  }
  Keys keys(*trial.journal);
  Groups groups;
  for (const Violation& violation : trial.ledger->violations) {
    const std::uint64_t where_key = keys.Of(violation.where);
    if (Take(&allowed[{violation.rule, violation.kind, where_key}])) continue;
    TrialFinding finding;
    finding.rule = violation.rule;
    finding.kind = violation.kind;
    finding.count = 1;
    finding.where = violation.where;
    finding.where_key = where_key;
    if (violation.object >= 0) {
      const Object& object = trial.ledger->objects[static_cast<std::size_t>(violation.object)];
      finding.bytes = object.bytes;
      finding.acquired = object.acquired;
      finding.acquired_key = keys.Of(object.acquired);
    }
    groups.Add(finding);
  }
  return groups.Take();
}

}  // namespace cuaudit::harness
