// SPDX-License-Identifier: MIT
#include "harness/sweep/run/after_fault.h"

#include <algorithm>
#include <tuple>

#include "harness/sweep/plan/plan_file.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

using faults::Record;

// So many calls are shown; a reader looks at a screen of them.
constexpr std::size_t kMostSteps = 100;
constexpr std::size_t kMostHeld = 200;

void TellSteps(const Observation& trial, const Record& hit, SiteTexts* sites, AfterFault* after) {
  const Evidence evidence = trial.evidence();
  const auto tell = [&](const Record& record, std::int32_t result) {
    after->steps.push_back({sites->Text(trial.journal, SiteOf(record)), result});
  };
  if (hit.kind != faults::RecordKind::Call) tell(hit, CUDA_ERROR_OUT_OF_MEMORY);  // a request of the host
  for (const std::uint32_t index : evidence.own_calls()) {
    const Record& record = evidence.record(index);
    // Other threads go on as they did.
    if (evidence.facts().threaded && (record.tid != hit.tid || record.pid != hit.pid)) continue;
    if (record.begin < hit.begin || record.cycle != hit.cycle || record.begin > trial.armed_until) continue;
    if (after->steps.size() == kMostSteps) {
      ++after->more;
      continue;
    }
    tell(record, record.result);
  }
}

void TellHeld(std::span<const FaultFreeCalls::Release> held, std::span<const TrialFindingText> findings, AfterFault* after) {
  std::map<std::pair<driver::Kind, std::uint64_t>, std::uint64_t> lost;
  for (const TrialFindingText& finding : findings) {
    const bool stays = IsLoss(finding.rule) || SortOf(finding.rule) == RuleSort::Entry;
    if (stays && finding.kind != driver::Kind::None) lost[{finding.kind, finding.acquired_key}] += finding.count;
  }
  for (const FaultFreeCalls::Release& release : held) {
    const auto left = lost.find({release.kind, release.acquired_key});
    const bool missing = left != lost.end() && left->second > 0;
    if (missing) --left->second;
    // What is missing is shown even where the list is long.
    if (after->held.size() >= kMostHeld && (!missing || after->missing.size() >= kMostHeld)) continue;
    if (after->held.empty() || after->held.back() != release.call) after->held.push_back(release.call);
    if (missing && (after->missing.empty() || after->missing.back() != release.call)) after->missing.push_back(release.call);
  }
}

}  // namespace

std::shared_ptr<const AfterFault> AfterFaults::Share(AfterFault after) {
  std::uint64_t hash = HashNumber(after.more, kHashSeed);
  for (const AfterFault::Step& step : after.steps) {
    hash = HashNumber(static_cast<std::uint64_t>(step.result), HashNumber(reinterpret_cast<std::uintptr_t>(&*step.place), hash));
  }
  for (const std::uint32_t call : after.held) hash = HashNumber(call, hash);
  for (const std::uint32_t call : after.missing) hash = HashNumber(call, hash);
  const auto same_step = [](const AfterFault::Step& a, const AfterFault::Step& b) {
    return &*a.place == &*b.place && a.result == b.result;
  };
  const auto [from, to] = known_.equal_range(hash);
  for (auto known = from; known != to; ++known) {
    const AfterFault& other = *known->second;
    const bool same = std::equal(after.steps.begin(), after.steps.end(), other.steps.begin(), other.steps.end(), same_step);
    if (same && after.more == other.more && after.held == other.held && after.missing == other.missing) return known->second;
  }
  return known_.emplace(hash, std::make_shared<const AfterFault>(std::move(after)))->second;
}

FaultFreeCalls::FaultFreeCalls(const Rehearsed& rehearsal) : run_(rehearsal.run()) {
  const std::span<const std::uint32_t> calls = run_.own_calls();
  calls_.assign(calls.begin(), calls.end());
  if (run_.facts().threaded) {
    const auto order = [this](std::uint32_t index) {
      const Record& record = run_.record(index);
      return std::tuple(driver::Index(BaseOf(record)), SiteKey(*run_.journal, SiteOf(record)), record.cycle, record.phase);
    };
    std::stable_sort(calls_.begin(), calls_.end(), [&](std::uint32_t a, std::uint32_t b) { return order(a) < order(b); });
  }
  std::map<std::uint64_t, std::uint32_t> turns;
  for (std::uint32_t number = 0; number < calls_.size(); ++number) {
    const Record& record = run_.record(calls_[number]);
    by_begin_.emplace(record.begin, number);
    by_name_.emplace(std::pair(driver::Index(BaseOf(record)), record.occurrence), number);
    const std::uint64_t site = SiteKey(*run_.journal, SiteOf(record));
    by_site_.emplace(std::pair(site, ++turns[site]), number);
  }
}

std::optional<std::uint32_t> FaultFreeCalls::Hit(const std::string& text) const {
  const std::optional<faults::Fault> parsed = ParsedFault(text);
  if (!parsed || parsed->follows || faults::HostFaultOf(parsed->base) != nullptr) return std::nullopt;
  const faults::Fault& fault = *parsed;
  if (fault.phase != faults::Phase::Any) {
    std::uint32_t turn = 0;
    for (std::uint32_t number = 0; number < calls_.size(); ++number) {
      const Record& record = run_.record(calls_[number]);
      const bool same = BaseOf(record) == fault.base && record.phase == fault.phase &&
                        (fault.site == 0 || SiteKey(*run_.journal, SiteOf(record)) == fault.site);
      if (same && ++turn == fault.occurrence) return number;
    }
    return std::nullopt;
  }
  const auto& table = fault.site != 0 ? by_site_ : by_name_;
  const auto found = table.find({fault.site != 0 ? fault.site : driver::Index(fault.base), fault.occurrence});
  return found == table.end() ? std::nullopt : std::optional<std::uint32_t>(found->second);
}

std::vector<FaultFreeCalls::Release> FaultFreeCalls::HeldAt(std::uint32_t call) const {
  const std::uint64_t when = run_.record(calls_[call]).begin;
  std::vector<Release> releases;
  for (const Object& object : run_.ledger->objects) {
    const bool was_released = object.state == State::Released && object.released.record_kind != faults::RecordKind::Empty;
    if (IsHost(object) || !was_released || object.acquired.begin >= when || object.released.begin < when) continue;
    const auto by = by_begin_.find(object.released.begin);
    if (by == by_begin_.end()) continue;
    releases.push_back({by->second, object.kind, SiteKey(*run_.journal, object.acquired)});
  }
  std::stable_sort(releases.begin(), releases.end(), [](const Release& a, const Release& b) { return a.call < b.call; });
  return releases;
}

std::optional<AfterFault> TellAfterFault(const FaultFreeCalls& calls, const Observation& trial, std::span<const std::string> faults,
                                         std::span<const TrialFindingText> findings, SiteTexts* sites) {
  const Record* const hit = trial.evidence().last_hit();
  if (hit == nullptr || faults.empty()) return std::nullopt;
  AfterFault after;
  TellSteps(trial, *hit, sites, &after);
  if (const std::optional<std::uint32_t> call = calls.Hit(faults.front())) TellHeld(calls.HeldAt(*call), findings, &after);
  return after;
}

}  // namespace cuaudit::harness
