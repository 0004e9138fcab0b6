// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/sited_calls.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "faults/driver/call_id.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint32_t kRounds = 3;

struct Visits {
  std::uint32_t least = 0;    // in any run
  std::uint32_t most = 0;     // in the runs looked at so far
  std::uint32_t threads = 0;  // threads that come here, in the run with the most of them
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

CallStates SitedCalls(std::span<const CallStates> runs) {
  CallStates sited;
  VisitsBySite visits = CountVisits(runs);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    sited.threaded = sited.threaded || runs[run].threaded;
    for (const CallState& call : runs[run].calls) {
      if (call.site == 0 && run != 0) continue;
      Visits& known = visits.at(call.site);
      if (call.turn <= known.most) continue;
      known.most = call.turn;
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
    const auto base = driver::BaseOf(static_cast<driver::CallId>(one.record->call));
    return std::make_tuple(driver::Index(base), one.site, one.turn);
  };
  std::stable_sort(sited.calls.begin(), sited.calls.end(), [&](const CallState& a, const CallState& b) { return order(a) < order(b); });
  for (CallState& call : sited.calls) call.state = 0;
  return sited;
}

}  // namespace cuaudit::harness
