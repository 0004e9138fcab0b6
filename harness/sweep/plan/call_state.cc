// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/call_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "faults/driver/call_id.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/host/driver_owned.h"

namespace cuaudit::harness {
namespace {

using faults::Record;
using faults::RecordKind;

constexpr std::uint64_t kMany = 3;  // only for coarse states

// An orphaned object is left, too: it was lost before its context ended. The end of the program's own context releases what lies in it.
bool IsLeft(const Object& object) {
  return object.state != State::Released && !(object.state == State::Orphaned && (object.own_context || object.ended_with_peer));
}

bool IsDriverObject(const Object& object) { return object.acquired.record_kind == RecordKind::Call; }

// Finds the call stacks that pass through an interpreter or through code that is in no file.
class InterpretedStacks {
 public:
  explicit InterpretedStacks(const faults::JournalView& journal) : journal_(&journal), interprets_(journal.modules().size()) {}
  bool Contain(std::uint32_t stack) {
    const auto [found, added] = known_.try_emplace(stack, false);
    if (!added) return found->second;
    for (const std::uint64_t frame : journal_->Stack(stack)) {
      const std::uint64_t module = faults::FrameModule(frame);
      found->second = found->second || module >= interprets_.size() || Interprets(module);
    }
    return found->second;
  }

 private:
  // Only few modules appear in any stack, so each module is checked when it is first met.
  bool Interprets(std::uint64_t module) {
    std::optional<bool>& known = interprets_[module];
    if (!known.has_value()) known = IsInterpreter(journal_->modules()[module].path);
    return *known;
  }

  const faults::JournalView* journal_;
  std::vector<std::optional<bool>> interprets_;  // by module number
  std::unordered_map<std::uint32_t, bool> known_;
};

std::vector<CallState> CallsInOrder(const Evidence& run) {
  std::vector<CallState> calls;
  const bool dropped = (run.flags() & faults::kStacksDropped) != 0;
  for (const std::uint32_t index : run.own_calls()) {
    const Record& record = run.record(index);
    CallState& call = calls.emplace_back();
    call.record = &record;
    call.declined = record.result != CUDA_SUCCESS;
    call.site = record.stack == 0 && dropped ? 0 : SiteKey(*run.journal, SiteOf(record));
  }
  if (run.facts().threaded) {
    const auto order = [](const CallState& one) { return std::make_tuple(driver::Index(BaseOf(*one.record)), one.record->occurrence); };
    std::stable_sort(calls.begin(), calls.end(), [&](const CallState& a, const CallState& b) { return order(a) < order(b); });
  }
  return calls;
}

// A hash of the live objects that is cheap to update: the sum, over all pairs of kind and site, of a hash of their count.
class LiveHash {
 public:
  explicit LiveHash(StatesAre states) : most_(states == StatesAre::Coarse ? kMany : std::uint64_t(-1)) {}
  std::uint64_t value() const { return sum_; }
  void Add(driver::Kind kind, std::uint64_t site, std::int64_t by) {
    std::uint64_t& count = counts_[{kind, site}];
    sum_ -= Term(kind, site, count);
    count = static_cast<std::uint64_t>(std::max<std::int64_t>(static_cast<std::int64_t>(count) + by, 0));
    sum_ += Term(kind, site, count);
  }

 private:
  std::uint64_t Term(driver::Kind kind, std::uint64_t site, std::uint64_t count) const {
    if (count == 0) return 0;
    return Scatter(HashNumber(std::min(count, most_), HashNumber(site, HashNumber(static_cast<std::uint64_t>(kind), kHashSeed))));
  }
  // Terms are added up, so terms of neighbouring counts must not differ by a small number, or two changes could cancel out. This is the
  // finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
  static std::uint64_t Scatter(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
  }
  std::map<std::pair<driver::Kind, std::uint64_t>, std::uint64_t> counts_;
  std::uint64_t sum_ = 0;
  const std::uint64_t most_;
};

struct Turn {
  std::uint64_t ticket = 0;
  std::size_t object = 0;
  bool gone = false;
};

// Acquisitions and releases in order. Objects that came and went before `from` are left out.
std::vector<Turn> TurnsOf(const Ledger& ledger, const std::vector<bool>& without, std::uint64_t from) {
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < ledger.objects.size(); ++i) {
    const Object& object = ledger.objects[i];
    if (!IsDriverObject(object) || (i < without.size() && without[i])) continue;
    const bool gone = (object.state == State::Released || object.state == State::Orphaned) && object.released.begin != 0;
    if (gone && object.released.begin < from && object.acquired.begin < from) continue;
    turns.push_back({object.acquired.begin, i, false});
    if (gone) turns.push_back({object.released.begin, i, true});
  }
  std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.ticket < b.ticket; });
  return turns;
}

constexpr std::uint32_t kRounds = 3;

struct Visits {
  std::uint32_t least = 0;             // in any run
  std::uint32_t threads = 0;           // threads that come here, in the run with the most of them
  std::vector<std::size_t> rows = {};  // of the turns in the runs looked at so far
};

using VisitsBySite = std::unordered_map<std::uint64_t, Visits>;

VisitsBySite CountVisits(std::span<const CallStates> runs) {
  VisitsBySite visits;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::unordered_map<std::uint64_t, std::uint32_t> now;
    std::unordered_map<std::uint64_t, std::set<std::pair<std::uint32_t, std::uint32_t>>> threads;
    for (const CallState& call : runs[run].calls) {
      ++now[call.site];
      threads[call.site].emplace(call.record->pid, call.record->tid);
    }
    for (const auto& [site, count] : now) {
      const auto [known, fresh] = visits.try_emplace(site);
      if (fresh) known->second.least = run == 0 ? count : 0;
      known->second.threads = std::max(known->second.threads, static_cast<std::uint32_t>(threads[site].size()));
    }
    for (auto& [site, known] : visits) {
      const auto seen = now.find(site);
      known.least = std::min(known.least, seen == now.end() ? 0 : seen->second);
    }
  }
  return visits;
}

}  // namespace

CallStates StatesOf(const Evidence& run, const std::vector<bool>& without, StatesAre are) {
  const Ledger& ledger = *run.ledger;
  CallStates states = {.calls = CallsInOrder(run), .threaded = run.facts().threaded};
  std::unordered_map<std::uint64_t, std::uint32_t> turns_at;
  InterpretedStacks interpreted(*run.journal);
  for (CallState& call : states.calls) {
    call.turn = ++turns_at[call.site];
    call.interpreted = interpreted.Contain(call.record->stack);
  }
  if (states.threaded) return states;
  const std::vector<Turn> turns = TurnsOf(ledger, without, states.calls.empty() ? 0 : states.calls.front().record->begin);
  LiveHash live(are);
  std::size_t next = 0;
  for (CallState& call : states.calls) {
    for (; next < turns.size() && turns[next].ticket < call.record->begin; ++next) {
      const Object& object = ledger.objects[turns[next].object];
      live.Add(object.kind, SiteKey(*run.journal, object.acquired), turns[next].gone ? -1 : 1);
    }
    if (call.record->stack == 0 || call.site == 0) continue;
    std::uint64_t hash = HashNumber(static_cast<std::uint64_t>(call.record->phase), HashNumber(call.site, kHashSeed));
    if (are == StatesAre::Exact) hash = HashNumber(call.record->cycle, hash);
    call.state = std::max<std::uint64_t>(HashNumber(live.value(), hash), 1);
  }
  return states;
}

std::vector<bool> LostBeyond(const Rehearsed& rehearsal, const Evidence& trial) {
  const Ledger& tried = *trial.ledger;
  Remainder allowed(&rehearsal.driver_objects_left());
  std::vector<bool> lost(tried.objects.size(), false);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    const Object& object = tried.objects[i];
    if (!IsDriverObject(object) || !IsLeft(object)) continue;
    std::uint64_t& left = allowed[{object.kind, SiteKey(*trial.journal, object.acquired)}];
    if (left > 0) {
      --left;
    } else {
      lost[i] = true;
    }
  }
  return lost;
}

CallStates SitedCalls(std::span<const CallStates> runs) {
  CallStates sited;
  VisitsBySite visits = CountVisits(runs);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    sited.threaded = sited.threaded || runs[run].threaded;
    for (const CallState& call : runs[run].calls) {
      if (call.site == 0 && run != 0) continue;
      Visits& known = visits.at(call.site);
      if (call.turn <= known.rows.size()) {
        bool& declined = sited.calls[known.rows[call.turn - 1]].declined;
        declined = declined && call.declined;
        continue;
      }
      known.rows.push_back(sited.calls.size());
      CallState& one = sited.calls.emplace_back(call);
      const std::uint32_t sure = std::max<std::uint32_t>(known.least, 1);
      one.unsure = call.site != 0 && call.turn > sure;
      one.again = call.site != 0 && call.turn > kRounds * known.threads + 1 && call.turn != sure;
    }
  }
  if (!sited.threaded) {
    for (CallState& call : sited.calls) call.again = false;  // the state of the call is a better test
    return sited;
  }
  const auto order = [](const CallState& one) {
    const auto base = BaseOf(*one.record);
    return std::make_tuple(driver::Index(base), one.site, one.turn);
  };
  std::stable_sort(sited.calls.begin(), sited.calls.end(), [&](const CallState& a, const CallState& b) { return order(a) < order(b); });
  for (CallState& call : sited.calls) call.state = 0;
  return sited;
}

}  // namespace cuaudit::harness
