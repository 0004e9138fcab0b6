// SPDX-License-Identifier: MIT
#include "harness/verdict/context/counted_places.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "harness/ledger/arguments.h"
#include "harness/verdict/context/popped_contexts.h"
#include "harness/verdict/context/put_back_calls.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

using driver::Effect;
using driver::Kind;
using faults::Record;
using faults::RecordKind;

bool IsPeerAccess(const Record& record) { return driver::EffectOf(BaseOf(record)).kind == Kind::PeerAccess; }

// True when the driver found nothing to take. Other errors do not tell whether there was something.
bool Declined(const Record& record, Answer answer) {
  return answer == Answer::Failed &&
         record.result == (IsPeerAccess(record) ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_ERROR_INVALID_CONTEXT);
}

// Joins places that take and give back the same things. Each root is one group.
class Union {
 public:
  explicit Union(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t RootOf(std::size_t one) {
    while (parent_[one] != one) one = parent_[one] = parent_[parent_[one]];
    return one;
  }
  void Join(std::size_t one, std::size_t other) { parent_[RootOf(one)] = RootOf(other); }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

CountedPlaces::Steps CountedPlaces::StepsOf(const Evidence& run) {
  Steps all;
  PoppedContexts popped(*run.journal);
  std::set<Thing> told_failed;        // given back, though the program was told that the call failed
  std::set<std::uint32_t> popped_on;  // threads
  for (const std::uint32_t index : run.facts().calls) {
    const Record& record = run.record(index);
    const Effect effect = EffectOfCall(record);
    popped.Take(record, all.steps.size());
    const Answer answer = AnswerOf(record);
    if (effect == Effect::PopsContext) popped_on.insert(record.tid);
    // Where no context is current, cuCtxSetCurrent puts an entry on the stack: the other half of an earlier pop.
    const bool refills = effect == Effect::SetsContext && answer == Answer::Succeeded && record.argument[0] != 0 && record.context == 0 &&
                         popped_on.count(record.tid) != 0;
    const bool entry = effect == Effect::PushesContext || effect == Effect::PopsContext || refills;
    const bool takes_off = effect == Effect::SetsContext && record.argument[0] == 0 && record.context != 0;
    if (takes_off && answer == Answer::After) told_failed.insert({Kind::ContextStackEntry, 0});
    const bool reference = effect == Effect::RetainsPrimary || effect == Effect::ReleasesPrimary;
    if (effect == Effect::CreatesContext && answer == Answer::Succeeded) all.created.push_back(SiteOf(record));
    const bool access = IsPeerAccess(record);
    if (!entry && !reference && !access) continue;
    Step step;
    step.kind = entry ? Kind::ContextStackEntry : reference ? Kind::PrimaryContext : Kind::PeerAccess;
    step.gives = effect == Effect::PopsContext || effect == Effect::ReleasesPrimary || effect == Effect::Releases;
    step.of = reference ? record.argument[step.gives ? 0 : 1] : 0;
    step.site = SiteOf(record);
    step.declined = step.gives && Declined(record, answer);
    const Thing thing(step.kind, step.of);
    if (step.gives && answer == Answer::After) told_failed.insert(thing);
    if (!step.gives && answer == Answer::After) ++all.denied[thing];
    // The program tries again in good faith. The driver has nothing left, however often it is asked.
    const bool in_good_faith = step.declined && told_failed.count(thing) != 0;
    if (answer == Answer::Succeeded || (step.declined && !in_good_faith)) all.steps.push_back(step);
  }
  for (const std::size_t step : popped.ended()) all.steps[step].ended = true;
  for (const PoppedContexts::Owned& one : popped.owned()) {
    all.steps[one.step].owned = true;
    all.steps[one.step].created = one.created;
  }
  return all;
}

// Notes which step gives back what which other step took. The ledger pairs them.
void CountedPlaces::Pair(const Ledger& ledger, Steps* steps) {
  std::map<std::uint64_t, std::size_t> by_ticket;
  for (std::size_t i = 0; i < steps->steps.size(); ++i) by_ticket[steps->steps[i].site.begin] = i;
  for (const Object& object : ledger.objects) {
    if (!IsCountedByPlace(object.kind) || object.state != State::Released) continue;
    const auto taken = by_ticket.find(object.acquired.begin);
    const auto given = by_ticket.find(object.released.begin);
    if (taken == by_ticket.end() || given == by_ticket.end()) continue;
    steps->steps[taken->second].partner = given->second;
    steps->steps[given->second].partner = taken->second;
  }
}

std::uint64_t CountedPlaces::KeyOf(Grain grain, const faults::JournalView& journal, const Site& site) {
  switch (grain) {
    case Grain::Stack:
      return SiteKey(journal, site);
    case Grain::Caller:
      return CallerKey(journal, site);
    case Grain::None:
      break;
  }
  return 0;
}

CountedPlaces::Level CountedPlaces::LevelOf(Grain grain, const Evidence& run, const Steps& steps) {
  Level level;
  std::vector<Place> places;
  const auto number = [&](const Place& place) {
    const auto [found, fresh] = level.group_of.try_emplace(place, places.size());
    if (fresh) places.push_back(place);
    return found->second;
  };
  for (const Step& step : steps.steps) number({step.kind, step.of, KeyOf(grain, *run.journal, step.site)});
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const Object& object : run.ledger->objects) {
    if (!IsCountedByPlace(object.kind) || object.acquired.record_kind != RecordKind::Call ||
        object.released.record_kind != RecordKind::Call)
      continue;
    const std::uint64_t of = object.kind == Kind::PrimaryContext ? object.handle : 0;
    pairs.emplace_back(number({object.kind, of, KeyOf(grain, *run.journal, object.acquired)}),
                       number({object.kind, of, KeyOf(grain, *run.journal, object.released)}));
  }
  Union joined(places.size());
  for (const auto& [taken, given] : pairs) joined.Join(taken, given);
  level.groups.resize(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    level.groups[i].thing = ThingOf(places[i]);
    level.group_of[places[i]] = joined.RootOf(i);
  }
  for (const Step& step : steps.steps) {
    if (grain == Grain::None && step.ended) continue;
    Group& group = level.groups[level.group_of[{step.kind, step.of, KeyOf(grain, *run.journal, step.site)}]];
    ++(step.gives ? group.given : group.taken);
    group.ahead = std::max(group.ahead, group.given - group.taken);
  }
  return level;
}

CountedPlaces::CountedPlaces(const Evidence& fault_free) {
  const Steps steps = StepsOf(fault_free);
  for (const Site& site : steps.created) creations_.insert(SiteKey(*fault_free.journal, site));
  for (const Grain grain : kGrains) levels_[static_cast<std::size_t>(grain)] = LevelOf(grain, fault_free, steps);
}

bool CountedPlaces::Compare(Grain grain, const Evidence& trial, Steps* steps, std::vector<Excess>* excess) const {
  const Level& level = levels_[static_cast<std::size_t>(grain)];
  std::vector<std::size_t> group_of(steps->steps.size(), kNowhere);
  std::vector<std::int64_t> taken(level.groups.size());
  std::vector<std::int64_t> given(level.groups.size());
  std::map<Thing, std::int64_t> cover = steps->denied;  // given back, and explained by something else
  bool strange = false;
  for (std::size_t i = 0; i < steps->steps.size(); ++i) {
    Step& step = steps->steps[i];
    if ((grain == Grain::None && step.ended) || (step.owned && (step.strange || step.instead))) continue;
    const auto found = level.group_of.find({step.kind, step.of, KeyOf(grain, *trial.journal, step.site)});
    if (found != level.group_of.end()) {
      group_of[i] = found->second;
      ++(step.gives ? given : taken)[found->second];
    } else if (step.gives) {
      strange = step.strange = true;
    } else {
      step.strange = true;
    }
  }
  // What a strange place took covers something, unless another strange place gives the same thing back.
  for (std::size_t i = 0; i < steps->steps.size(); ++i) {
    const Step& step = steps->steps[i];
    if (step.gives || group_of[i] != kNowhere) continue;
    if (step.partner == kNowhere || group_of[step.partner] != kNowhere) ++cover[{step.kind, step.of}];
  }
  std::map<Thing, std::int64_t> claims;
  std::vector<std::int64_t> owes(level.groups.size());
  std::vector<std::int64_t> left(level.groups.size());  // what the group may still give back
  for (std::size_t g = 0; g < level.groups.size(); ++g) {
    const Group& before = level.groups[g];
    const std::int64_t own = taken[g] - given[g] + before.ahead;
    left[g] = before.ahead;
    owes[g] = std::max<std::int64_t>(0, -own);
    if (owes[g] != 0) claims[before.thing] += owes[g];
    if (owes[g] != 0) continue;
    // What the fault-free run leaves is no explanation, unless the trial did not take it.
    const std::int64_t not_taken = std::max<std::int64_t>(0, before.taken - taken[g]);
    const std::int64_t stays = std::max<std::int64_t>(0, before.taken - before.given - not_taken);
    cover[before.thing] += std::max<std::int64_t>(0, taken[g] - given[g] - stays);
  }
  const bool claimed = !claims.empty();
  for (auto& [thing, count] : claims) count -= cover[thing];
  // Without places there is one group. A call from a place that the fault-free run does not have is likelier to be wrong than one that it
  // has.
  const auto is_strange = [&](const Step& step) {
    return step.gives && step.strange && (step.partner == kNowhere || !steps->steps[step.partner].strange);
  };
  const auto unusual = [&](const Thing& thing) {
    return grain == Grain::None && std::any_of(steps->steps.begin(), steps->steps.end(),
                                               [&](const Step& step) { return is_strange(step) && Thing(step.kind, step.of) == thing; });
  };
  for (std::size_t i = 0; i < steps->steps.size(); ++i) {
    const Step& step = steps->steps[i];
    if (group_of[i] == kNowhere) continue;
    const std::size_t g = group_of[i];
    left[g] += step.gives ? -1 : 1;
    const auto count = claims.find({step.kind, step.of});
    if (!step.gives || count == claims.end() || count->second <= 0 || owes[g] == 0) continue;
    if (unusual(count->first) ? !is_strange(step) : left[g] >= 0) continue;
    left[g] = std::max<std::int64_t>(0, left[g]);
    --owes[g];
    --count->second;
    excess->push_back({step.kind, step.site, step.declined, grain == Grain::None});
  }
  return !excess->empty() || (!strange && !claimed);
}

std::vector<Excess> CountedPlaces::Beyond(const Evidence& trial) const {
  std::vector<Excess> excess;
  Steps steps = StepsOf(trial);
  const bool any = std::any_of(steps.steps.begin(), steps.steps.end(), [](const Step& step) { return step.gives; });
  if (any) Pair(*trial.ledger, &steps);
  for (Step& step : steps.steps) step.instead = step.owned && creations_.count(SiteKey(*trial.journal, step.created)) == 0;
  for (const Grain grain : kGrains) {
    if (!any || Compare(grain, trial, &steps, &excess)) break;
  }
  return excess;
}

bool GivesMoreThanItTakes(const Evidence& run) {
  std::int64_t entries = 0;
  std::int64_t references = 0;
  std::int64_t access = 0;
  for (const std::uint32_t index : run.facts().calls) {
    const Record& record = run.record(index);
    const Effect effect = EffectOfCall(record);
    const Answer answer = AnswerOf(record);
    const bool took = answer == Answer::Succeeded;
    const bool gave = Releases(answer) || Declined(record, answer);
    if (effect == Effect::PushesContext && took) ++entries;
    if (effect == Effect::PopsContext && gave) --entries;
    if (effect == Effect::RetainsPrimary && took) ++references;
    if (effect == Effect::ReleasesPrimary && gave) --references;
    if (!IsPeerAccess(record)) continue;
    if (effect == Effect::Releases ? gave : took) access += effect == Effect::Releases ? -1 : 1;
  }
  return entries < 0 || references < 0 || access < 0;
}

}  // namespace cuaudit::harness
