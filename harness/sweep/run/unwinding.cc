// SPDX-License-Identifier: MIT
#include "harness/sweep/run/unwinding.h"

#include <algorithm>
#include <set>
#include <utility>

#include "faults/driver/effects.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

using faults::Record;

constexpr std::uint64_t kOnTheWayBack = 1;

bool Acquired(const Record& record) {
  const driver::Effect effect = driver::EffectOf(BaseOf(record)).effect;
  return record.result == CUDA_SUCCESS && driver::IsAcquire(effect) && effect != driver::Effect::PushesContext;
}

// A state for programs with threads, whose turns change from run to run: only place and phase.
std::uint64_t PlaceOnly(const CallState& call) {
  if (call.record->stack == 0 || call.site == 0) return 0;
  return HashNumber(static_cast<std::uint64_t>(call.record->phase), HashNumber(call.site, kHashSeed));
}

bool SameThread(const Record& a, const Record& b) { return a.pid == b.pid && a.tid == b.tid; }

// The calls of the thread that was hit since the fault, in order, and then those of all other threads.
std::vector<const CallState*> CallsSince(const Record& fault, const CallStates& calls) {
  std::vector<const CallState*> since;
  for (const CallState& call : calls.calls) {
    if (call.record->begin > fault.begin) since.push_back(&call);
  }
  const auto others =
      std::stable_partition(since.begin(), since.end(), [&](const CallState* one) { return SameThread(*one->record, fault); });
  std::stable_sort(since.begin(), others, [](const CallState* a, const CallState* b) { return a->record->begin < b->record->begin; });
  return since;
}

// Hash of how a fault is addressed: by count or by call stack.
std::uint64_t AddressOf(std::uint64_t base_or_site, std::uint32_t occurrence) {
  return HashNumber(occurrence, HashNumber(base_or_site, kHashSeed));
}
std::uint64_t AddressOf(const faults::Fault& fault) {
  return AddressOf(fault.site != 0 ? fault.site : driver::Index(fault.base), fault.occurrence);
}

// Hash of the previous faults. Faults that come after equal hashes can stand for one another. With `lines` different calls always differ.
std::uint64_t OriginOf(std::span<const std::string> faults, const FirstFaults& first, bool lines) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& text : faults) {
    const std::optional<faults::Fault> fault = ParsedFault(text);
    if (!fault) continue;
    const std::uint32_t turn = lines || fault->follows ? 0 : first.TurnOf(*fault);
    hash = HashNumber(turn != 0 ? turn : AddressOf(*fault), HashNumber(turn != 0 ? 1 : 2, hash));
    hash = HashText(faults::WordsOf(text).how, hash);
  }
  return hash;
}

// The shape of the calls in the fault's cycle, with the ways in which the previous faults failed.
UnwindingShape ShapeInCycle(const Evidence& trial, std::span<const std::string> faults, std::vector<const CallState*> calls,
                            std::uint32_t cycle, const std::vector<bool>& lost) {
  std::erase_if(calls, [cycle](const CallState* call) { return call->record->cycle != cycle; });
  UnwindingShape shape = ShapeOf(trial, calls, lost);
  if (shape.shape == 0) return shape;
  for (const std::string& text : faults) shape.shape = HashText(faults::WordsOf(text).how, shape.shape);
  return shape;
}

// Number of final calls in the fault's cycle whose states equal those of the rehearsal.
std::size_t SameToTheEnd(const CallStates& calls, std::uint32_t cycle, std::span<const std::uint64_t> rehearsed) {
  std::size_t same = 0;
  for (auto call = calls.calls.rbegin(); call != calls.calls.rend() && same < rehearsed.size(); ++call) {
    if (call->record->cycle != cycle) continue;
    if (call->state == 0 || call->state != rehearsed[rehearsed.size() - 1 - same]) break;
    ++same;
  }
  return same;
}

constexpr std::size_t kTurns = 3;         // so many equal turns in a row are told apart
constexpr std::size_t kLongestTurn = 24;  // calls of a loop's turn; longer ones are not recognised

// What calls released or orphaned, as a hash for each ticket, in order.
using Releases = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

std::uint64_t ReleasedBy(const Releases& releases, std::uint64_t ticket) {
  const auto found = std::lower_bound(releases.begin(), releases.end(), std::pair(ticket, std::uint64_t{0}));
  return found == releases.end() || found->first != ticket ? 0 : found->second;
}

// Of each call since `from`; several objects of one kind and site count once.
Releases ReleasesSince(std::uint64_t from, const Evidence& run) {
  Releases releases;
  for (const Object& object : run.ledger->objects) {
    if (IsHost(object) || object.released.begin < from || object.released.record_kind == faults::RecordKind::Empty) continue;
    const std::uint64_t what =
        HashNumber(static_cast<std::uint64_t>(object.kind), HashNumber(SiteKey(*run.journal, object.acquired), kHashSeed));
    releases.emplace_back(object.released.begin, HashNumber(static_cast<std::uint64_t>(object.state), what));
  }
  std::sort(releases.begin(), releases.end());
  releases.erase(std::unique(releases.begin(), releases.end()), releases.end());
  Releases by_call;
  for (const auto& [ticket, what] : releases) {
    if (by_call.empty() || by_call.back().first != ticket) by_call.emplace_back(ticket, kHashSeed);
    by_call.back().second = HashNumber(what, by_call.back().second);
  }
  return by_call;
}

std::uint64_t HashOfLost(const Evidence& run, const std::vector<bool>& lost) {
  const std::vector<Object>& objects = run.ledger->objects;
  std::set<std::pair<driver::Kind, std::uint64_t>> what;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (lost[i]) what.emplace(objects[i].kind, SiteKey(*run.journal, objects[i].acquired));
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

FirstFaults::FirstFaults(const CallStates& rehearsal, const PlannedFaults& plan) {
  std::unordered_map<std::uint64_t, std::uint32_t> turns;
  for (const CallState& call : rehearsal.calls) {
    states_[call.record->cycle].push_back(call.state);
    if (call.state == 0) continue;
    const std::uint32_t turn = ++turns[call.state];
    const auto base = driver::Index(BaseOf(*call.record));
    turns_.emplace(AddressOf(base, call.record->occurrence), turn);
    turns_.emplace(AddressOf(call.site, call.turn), turn);
  }
  for (const PlannedWay& one : plan.ways) {
    if (one.why_not == Reason::None && one.state != 0) ways_.insert(WayAt(one.way.fault, one.state));
  }
}

bool FirstFaults::Tried(const faults::Fault& fault, std::uint64_t state) const { return ways_.contains(WayAt(fault, state)); }

std::uint32_t FirstFaults::TurnOf(const faults::Fault& fault) const {
  const auto found = turns_.find(AddressOf(fault));
  return found == turns_.end() ? 0 : found->second;
}

std::span<const std::uint64_t> FirstFaults::StatesIn(std::uint32_t cycle) const {
  const auto found = states_.find(cycle);
  return found == states_.end() ? std::span<const std::uint64_t>() : std::span<const std::uint64_t>(found->second);
}

Unwinding FaultsWhileUnwinding(const Rehearsed& rehearsal, const FirstFaults& first, const Observation& trial,
                               std::span<const std::string> faults, Pruning prune, const Places* by_site, const Claimed& claimed) {
  Unwinding unwinding;
  const std::vector<bool> lost = LostBeyond(rehearsal, trial.evidence());
  CallStates calls = StatesOf(trial.evidence(), lost, StatesFor(prune));
  std::erase_if(calls.calls, [&](const CallState& call) { return call.record->begin > trial.armed_until; });
  const auto is_last = [&](const CallState& call) { return call.record->fault == faults.size(); };
  const auto hit = std::find_if(calls.calls.begin(), calls.calls.end(), is_last);
  if (hit == calls.calls.end()) return unwinding;
  const Record* const fault = hit->record;
  bool on_the_way_back = true;
  const bool dies = trial.ending.timed_out || trial.ending.signal != 0;
  const std::uint64_t origin = OriginOf(faults, first, false);
  const std::uint64_t origin_line = OriginOf(faults, first, true);
  const std::vector<const CallState*> calls_since = CallsSince(*fault, calls);
  auto left = static_cast<std::size_t>(
      std::count_if(calls_since.begin(), calls_since.end(), [&](const CallState* call) { return call->record->cycle == fault->cycle; }));
  const std::size_t same_to_the_end = SameToTheEnd(calls, fault->cycle, first.StatesIn(fault->cycle));
  UnwindingShape shape;
  if (prune != Pruning::None && !dies && !hit->interpreted) {
    shape = ShapeInCycle(trial.evidence(), faults, calls_since, fault->cycle, lost);
  }
  unwinding.shape = shape.shape;
  std::size_t in_cycle = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> since;  // calls of the thread that was hit, by place
  for (const CallState* const call : calls_since) {
    const Record& record = *call->record;
    const bool hit_thread = SameThread(record, *fault);
    if (hit_thread && by_site != nullptr) ++since[call->site];
    if (record.cycle != fault->cycle) continue;
    const std::uint64_t step = shape.shape == 0 ? 0 : shape.steps[in_cycle++];
    const bool same_from_here = left-- <= same_to_the_end;
    if ((record.flags & faults::kInjected) != 0) continue;
    // Calls of another thread in a place that no fault-free run reaches belong to an unwinding, too.
    const bool known_place = by_site == nullptr || call->site == 0 || by_site->contains(call->site);
    if (calls.threaded && !hit_thread && known_place) continue;
    const bool was_on_the_way_back = on_the_way_back || !hit_thread;
    if (hit_thread && Acquired(record)) on_the_way_back = false;
    const std::uint64_t state = calls.threaded ? PlaceOnly(*call) : call->state;
    const bool recovered = !calls.threaded && state != 0 && !was_on_the_way_back && (!call->interpreted || same_from_here);
    std::uint64_t key = state;
    if (state != 0 && was_on_the_way_back) key = HashNumber(kOnTheWayBack, key);
    if (state != 0 && prune == Pruning::Second && was_on_the_way_back && !calls.threaded) key = HashNumber(origin, key);
    if (state != 0 && call->interpreted) key = HashNumber(origin_line, key);
    if (state != 0 && calls.threaded && prune == Pruning::Second) key = HashNumber(hit->site, key);
    const Reason why_not = dies ? Reason::SecondKilled : prune != Pruning::None && state == 0 ? Reason::SecondNoStack : Reason::None;
    WaysBack ways = WaysWhileUnwinding(record);
    for (faults::Fault& way : ways.all()) {
      if (by_site != nullptr && hit_thread) AddressAfter(call->site, since[call->site], &way);
      if (by_site != nullptr && !hit_thread) AddressBySite(*call, &way);
      const NextFault next = {way, call->site, key, record.phase, was_on_the_way_back, step};
      if (prune != Pruning::None && recovered && first.Tried(next.fault, state)) {
        ++unwinding.pruned[Reason::SecondAsFirst];
      } else if (why_not != Reason::None) {
        unwinding.left_out.push_back({next, why_not});
      } else if (claimed && claimed(next)) {
        ++unwinding.pruned[Reason::SecondSameState];
      } else {
        unwinding.faults.push_back(next);
      }
    }
  }
  return unwinding;
}

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
  const Releases releases = ReleasesSince(calls.front()->record->begin, trial);
  std::vector<std::uint64_t> sequence;
  std::unordered_map<std::uint64_t, std::uint64_t> times;
  for (const CallState* const call : calls) {
    const faults::Record& record = *call->record;
    std::uint64_t step = HashNumber(ReleasedBy(releases, record.begin), HashNumber(call->site, kHashSeed));
    step = HashNumber(static_cast<std::uint64_t>(record.phase), HashNumber(record.result == CUDA_SUCCESS ? 1 : 0, step));
    sequence.push_back(HashNumber((record.flags & faults::kInjected) != 0 ? 1 : 0, step));
    const std::uint64_t time = std::min<std::uint64_t>(++times[sequence.back()], kTurns);
    shape.steps.push_back(HashNumber(time, sequence.back()));
  }
  std::uint64_t hash = HashOfLost(trial, lost);
  for (const std::uint64_t step : WithoutRepeats(sequence)) hash = HashNumber(step, hash);
  shape.shape = std::max<std::uint64_t>(hash, 1);
  return shape;
}

}  // namespace cuaudit::harness
