// SPDX-License-Identifier: MIT
#include "harness/verdict/context/counted_places.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "faults/journal/journal_view.h"
#include "faults/journal/record.h"
#include "harness/ledger/arguments.h"
#include "harness/ledger/ledger.h"
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

// Finds the pops by which a process takes off a context of its own, which it made and destroys later. Calls come in the order in which the
// program made them.
//
// Such a pop takes nothing from a caller. A pop that undoes a push, which failed or was undone already, takes off the same context when the
// maker of the context is its caller. Call stacks tell the two apart: the pop that undoes a push shares a caller with the push (the
// function that pushes and pops) that it does not share with the creation and the destruction of the context.
class PoppedContexts {
 public:
  struct Owned {
    std::size_t step = 0;
    Site created;
  };

  explicit PoppedContexts(const faults::JournalView& journal) : journal_(&journal) {}

  // Notes a call. `step` names it in ended() and owned() if it is a pop.
  void Take(const faults::Record& record, std::size_t step);

  // Pops of a context that the thread's next call destroys.
  const std::vector<std::size_t>& ended() const { return ended_; }
  // Pops of a context that the process created and destroys later, where its creation left it. The thread did not lack it meanwhile.
  const std::vector<Owned>& owned() const { return owned_; }

 private:
  struct Pop {
    std::size_t step = 0;
    std::uint64_t context = 0;
    std::uint32_t tid = 0;
    std::uint32_t stack = 0;
    std::size_t to_push = 0;  // distance to the nearest push before it
  };
  struct Made {
    Site created;
    std::int64_t pushed = 0;  // pushes whose pop has not come yet
    std::vector<Pop> pops;    // where the creation left it
  };
  struct Thread {
    std::optional<Pop> last;         // the last call, when it was a pop
    std::set<std::uint32_t> pushes;  // call stacks, also of pushes that failed
  };

  std::size_t ToPush(std::uint32_t stack, const Thread& thread) const;
  void TakeDestroy(const faults::Record& record, const std::optional<Pop>& last, const Thread& thread);

  const faults::JournalView* journal_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Made> made_;  // by process and handle
  std::map<std::uint32_t, Thread> threads_;
  std::vector<std::size_t> ended_;
  std::vector<Owned> owned_;
};

std::size_t PoppedContexts::ToPush(std::uint32_t stack, const Thread& thread) const {
  std::size_t nearest = journal_->Stack(stack).size();
  for (const std::uint32_t push : thread.pushes) nearest = std::min(nearest, CallerDistance(*journal_, stack, push));
  return nearest;
}

void PoppedContexts::TakeDestroy(const Record& record, const std::optional<Pop>& last, const Thread& thread) {
  const auto made = made_.find({record.pid, record.argument[0]});
  const auto to_maker = [&](std::uint32_t stack) {
    const std::size_t distance = CallerDistance(*journal_, stack, record.stack);
    return made == made_.end() ? distance : std::min(distance, CallerDistance(*journal_, stack, made->second.created.stack));
  };
  if (last.has_value() && last->context == record.argument[0] && to_maker(last->stack) <= ToPush(last->stack, thread))
    ended_.push_back(last->step);
  if (made == made_.end()) return;
  for (const Pop& pop : made->second.pops) {
    if (to_maker(pop.stack) <= pop.to_push) owned_.push_back({pop.step, made->second.created});
  }
  made_.erase(made);
}

void PoppedContexts::Take(const Record& record, std::size_t step) {
  const Effect effect = driver::EffectOf(BaseOf(record)).effect;
  const Answer answer = AnswerOf(record);
  Thread& thread = threads_[record.tid];
  const std::optional<Pop> last = std::exchange(thread.last, std::nullopt);
  // The thread lacks what its earlier pops took, so those pops were not in order.
  if (answer == Answer::Failed && record.result == CUDA_ERROR_INVALID_CONTEXT) {
    for (auto& [context, made] : made_) std::erase_if(made.pops, [&](const Pop& pop) { return pop.tid == record.tid; });
  }
  if (effect == Effect::DestroysContext) TakeDestroy(record, last, thread);
  if (effect == Effect::PushesContext) thread.pushes.insert(record.stack);
  if (answer != Answer::Succeeded) return;
  if (effect == Effect::CreatesContext) made_[{record.pid, record.argument[0]}] = {SiteOf(record), 0, {}};
  if (effect == Effect::PushesContext) {
    const auto made = made_.find({record.pid, record.argument[0]});
    if (made != made_.end()) ++made->second.pushed;
  }
  if (effect != Effect::PopsContext) return;
  thread.last = {step, record.context, record.tid, record.stack, 0};
  const auto made = made_.find({record.pid, record.context});
  if (made == made_.end()) return;
  if (made->second.pushed > 0) {
    --made->second.pushed;
  } else {
    made->second.pops.push_back(*thread.last);
    made->second.pops.back().to_push = ToPush(record.stack, thread);
  }
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
  if (grain == Grain::None) return 0;
  return grain == Grain::Stack ? SiteKey(journal, site) : CallerKey(journal, site);
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
