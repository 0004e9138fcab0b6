// SPDX-License-Identifier: MIT
#include "harness/ledger/rules.h"
#include "harness/sweep/findings/aggregate.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

std::uint64_t HashStack(const std::vector<report::Frame>& stack, std::uint64_t hash) {
  for (const report::Frame& frame : stack) {
    hash = HashText(frame.module, hash);
    hash = HashText(frame.function, hash);
  }
  return HashNumber(stack.size(), hash);
}

std::uint64_t HashWhat(const TrialFindingText& finding) {
  return HashText(finding.apart.empty() ? KindName(finding) : std::string_view(finding.apart), HashText(Name(finding.rule)));
}

std::uint64_t HashPlace(const report::Acquired& place, std::uint64_t hash) { return HashStack(place.stack, HashText(place.call, hash)); }

std::uint64_t CoreOf(const TrialFindingText& finding) {
  return IsLoss(finding.rule) ? HashNumber(finding.acquired_key, HashText(KindName(finding))) : GroupKey(finding);
}

}  // namespace

std::uint64_t GroupKey(const TrialFindingText& finding) {
  const std::uint64_t hash = HashWhat(finding);
  // A collision is identified by its two calls, whichever object they collide in.
  if (finding.other_key != 0 && OtherCallOf(finding.rule).tells_apart)
    return HashNumber(finding.other_key, HashNumber(finding.where_key, hash));
  // A violation is identified by where it shows: two uses of one dead object are two findings.
  return HashNumber(finding.where_key, HashNumber(finding.acquired_key, hash));
}

std::uint64_t CommonCall(const TrialFindingText& finding) {
  if (finding.acquired_key == 0) return 0;
  if (OtherCallOf(finding.rule).released) return finding.other_key == 0 ? 0 : HashNumber(finding.other_key, finding.acquired_key);
  const bool refuses = finding.rule == Rule::WrongContext || finding.rule == Rule::UnknownHandle;
  if (!refuses && SortOf(finding.rule) != RuleSort::Lost) return 0;
  const std::uint64_t refused = finding.rule == Rule::Orphaned ? finding.other_key : finding.where_key;
  return refused == 0 ? 0 : HashNumber(refused, HashText("refused", finding.acquired_key));
}

const TrialFindingText* FindSame(const TrialResult& trial, const TrialFindingText& finding) {
  const std::uint64_t core = CoreOf(finding);
  const auto same =
      std::find_if(trial.findings.begin(), trial.findings.end(), [core](const TrialFindingText& one) { return CoreOf(one) == core; });
  return trial.fired && same != trial.findings.end() ? &*same : nullptr;
}

std::uint64_t AddFault(std::uint64_t key, const report::Fault& fault, std::uint64_t fault_key) {
  const std::uint64_t hash = HashNumber(fault_key, HashText(fault.call, key));
  return HashText(fault.how, HashText(fault.code, hash));
}

std::string Fingerprint(const TrialFindingText& finding, const std::optional<report::Fault>& fault,
                        const std::vector<report::Fault>& then) {
  std::uint64_t hash = HashWhat(finding);
  const bool collides = !finding.other->call.empty() && OtherCallOf(finding.rule).tells_apart;
  if (!collides) hash = HashPlace(finding.acquired, hash);
  hash = HashPlace(finding.where, hash);
  if (collides) hash = HashPlace(finding.other, hash);
  const auto add = [&hash](const report::Fault& one) {
    hash = HashText(one.how, HashText(one.code, HashStack(one.stack, HashText(one.call, hash))));
  };
  if (fault.has_value()) add(*fault);
  for (const report::Fault& one : then) add(one);
  return "v1-" + Hex(hash);
}

std::string FingerprintSet::Claim(const std::string& fingerprint) {
  const std::size_t number = ++claimed_[fingerprint];
  return number == 1 ? fingerprint : fingerprint + "-" + std::to_string(number);
}

}  // namespace cuaudit::harness
