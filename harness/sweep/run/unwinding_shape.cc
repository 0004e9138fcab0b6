// SPDX-License-Identifier: MIT
#include "harness/sweep/run/unwinding_shape.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "harness/sweep/plan/plan_file.h"
#include "harness/verdict/site_keys.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kTurns = 3;         // so many equal turns in a row are told apart
constexpr std::size_t kLongestTurn = 24;  // calls of a loop's turn; longer ones are not recognised

// Of each call since `from` what it released or orphaned, as a hash; several objects of one kind and site count once.
std::unordered_map<std::uint64_t, std::uint64_t> ReleasesSince(std::uint64_t from, const Ledger& ledger, SiteKeys* keys) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> releases;  // ticket of the call, what it released
  for (const Object& object : ledger.objects) {
    if (IsHost(object) || object.released.begin < from || object.released.record_kind == faults::RecordKind::Empty) continue;
    const std::uint64_t what = HashNumber(static_cast<std::uint64_t>(object.kind), HashNumber(keys->Of(object.acquired), kHashSeed));
    releases.emplace(object.released.begin, HashNumber(static_cast<std::uint64_t>(object.state), what));
  }
  std::unordered_map<std::uint64_t, std::uint64_t> by_call;
  for (const auto& [ticket, what] : releases) {
    std::uint64_t& hash = by_call.try_emplace(ticket, kHashSeed).first->second;
    hash = HashNumber(what, hash);
  }
  return by_call;
}

std::uint64_t HashOfLost(const Ledger& ledger, const std::vector<bool>& lost, SiteKeys* keys) {
  std::set<std::pair<driver::Kind, std::uint64_t>> what;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (lost[i]) what.emplace(ledger.objects[i].kind, keys->Of(ledger.objects[i].acquired));
  }
  std::uint64_t hash = kHashSeed;
  for (const auto& [kind, site] : what) hash = HashNumber(site, HashNumber(static_cast<std::uint64_t>(kind), hash));
  return hash;
}

bool Repeats(const std::vector<std::uint64_t>& sequence, std::size_t turn) {
  if (sequence.size() < (kTurns + 1) * turn) return false;
  const auto last = sequence.end() - static_cast<std::ptrdiff_t>(turn);
  for (std::size_t i = 1; i <= kTurns; ++i) {
    if (!std::equal(last, sequence.end(), last - static_cast<std::ptrdiff_t>(i * turn))) return false;
  }
  return true;
}

}  // namespace

std::vector<std::uint64_t> WithoutRepeats(std::span<const std::uint64_t> sequence) {
  std::vector<std::uint64_t> kept;
  for (const std::uint64_t one : sequence) {
    kept.push_back(one);
    for (std::size_t turn = 1; turn <= kLongestTurn && kept.size() >= (kTurns + 1) * turn; ++turn) {
      if (!Repeats(kept, turn)) continue;
      kept.resize(kept.size() - turn);
      break;
    }
  }
  return kept;
}

UnwindingShape ShapeOf(const Evidence& trial, std::span<const CallState* const> calls, const std::vector<bool>& lost) {
  UnwindingShape shape;
  if (calls.empty() || trial.facts().threaded) return shape;
  const auto incomparable = [](const CallState* call) { return call->site == 0 || call->record->stack == 0 || call->interpreted; };
  if (std::any_of(calls.begin(), calls.end(), incomparable)) return shape;
  SiteKeys keys(*trial.journal);
  const std::unordered_map<std::uint64_t, std::uint64_t> releases = ReleasesSince(calls.front()->record->begin, *trial.ledger, &keys);
  std::vector<std::uint64_t> sequence;
  std::unordered_map<std::uint64_t, std::uint64_t> times;
  for (const CallState* const call : calls) {
    const faults::Record& record = *call->record;
    const auto released = releases.find(record.begin);
    std::uint64_t step = HashNumber(released == releases.end() ? 0 : released->second, HashNumber(call->site, kHashSeed));
    step = HashNumber(static_cast<std::uint64_t>(record.phase), HashNumber(record.result == CUDA_SUCCESS ? 1 : 0, step));
    sequence.push_back(HashNumber((record.flags & faults::kInjected) != 0 ? 1 : 0, step));
    const std::uint64_t time = std::min<std::uint64_t>(++times[sequence.back()], kTurns);
    shape.steps.push_back(HashNumber(time, sequence.back()));
  }
  std::uint64_t hash = HashOfLost(*trial.ledger, lost, &keys);
  for (const std::uint64_t step : WithoutRepeats(sequence)) hash = HashNumber(step, hash);
  shape.shape = std::max<std::uint64_t>(hash, 1);
  return shape;
}

}  // namespace cuaudit::harness
