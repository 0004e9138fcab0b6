// SPDX-License-Identifier: MIT
#include "harness/verdict/restored_entries.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/site_keys.h"

namespace cuaudit::harness {
namespace {

using driver::Effect;
using faults::Record;

// An entry that nobody has to pop, or, without a maker, one that was pushed.
struct Slot {
  const Record* made = nullptr;
};

// Where such an entry was taken off.
struct Vacancy {
  const Record* made = nullptr;
  const Record* taken = nullptr;
};

struct FollowedStack {
  std::vector<Slot> entries;
  std::map<std::size_t, Vacancy> vacant;  // by the number of entries below
  std::vector<const Record*> below;       // pops that took what no record put there

  void Put(Slot entry) {
    vacant.erase(entries.size());
    entries.push_back(entry);
  }
  void Take(const Record* by) {
    const Slot top = entries.back();
    entries.pop_back();
    vacant.erase(vacant.upper_bound(entries.size()), vacant.end());
    if (by != nullptr && top.made != nullptr) vacant[entries.size()] = {top.made, by};
  }
};

Restored RestoredBy(const Evidence& run, const Vacancy& vacancy, const Record& push) {
  if (vacancy.taken->cycle != push.cycle) return Restored::No;
  const std::size_t to_push = CallerDistance(*run.journal, vacancy.taken->stack, push.stack);
  const std::size_t to_maker = CallerDistance(*run.journal, vacancy.taken->stack, vacancy.made->stack);
  if (to_push == to_maker) return Restored::Perhaps;
  return to_push < to_maker ? Restored::Yes : Restored::No;
}

}  // namespace

RestoredEntries::RestoredEntries(const Evidence& run) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, FollowedStack> stacks;
  for (const std::uint32_t index : run.facts().calls) {
    const Record& record = run.record(index);
    const Effect effect = driver::EffectOf(BaseOf(record)).effect;
    const bool moves = effect == Effect::CreatesContext || effect == Effect::DestroysContext || effect == Effect::PushesContext ||
                       effect == Effect::PopsContext || effect == Effect::SetsContext;
    const Outcome outcome = OutcomeOf(record);
    if (!moves || (outcome != Outcome::Succeeded && outcome != Outcome::After)) continue;
    FollowedStack& stack = stacks[{record.pid, record.tid}];
    const std::uint64_t context = record.argument[0];
    if (effect == Effect::CreatesContext) {
      stack.Put({&record});
    } else if (effect == Effect::DestroysContext) {
      if (context == record.context && !stack.entries.empty()) stack.Take(nullptr);
    } else if (effect == Effect::PushesContext || (effect == Effect::SetsContext && context != 0 && record.context == 0)) {
      if (!stack.below.empty()) {
        put_back_.insert(stack.below.back()->begin);
        stack.below.pop_back();
        continue;
      }
      const bool sets = effect == Effect::SetsContext;
      if (sets && !stack.entries.empty()) continue;
      const auto vacant = stack.vacant.find(stack.entries.size());
      const Vacancy vacancy = vacant == stack.vacant.end() ? Vacancy{} : vacant->second;
      const Restored restored = vacancy.made == nullptr ? Restored::No : RestoredBy(run, vacancy, record);
      if (restored == Restored::Yes) put_back_.insert(vacancy.taken->begin);
      if (restored != Restored::No && !sets) pushes_[record.begin] = restored;
      stack.Put({restored != Restored::No ? vacancy.made : sets ? &record : nullptr});
    } else if (effect == Effect::PopsContext || (effect == Effect::SetsContext && context == 0)) {
      const bool known = !stack.entries.empty();
      if (!known && effect == Effect::SetsContext) continue;
      if (!known || stack.entries.back().made != nullptr) takings_.insert(record.begin);
      if (known) stack.Take(&record);
      if (!known) stack.below.push_back(&record);
    }
  }
}

Restored RestoredEntries::Of(const Site& push) const {
  const auto found = pushes_.find(push.begin);
  return found == pushes_.end() ? Restored::No : found->second;
}

std::uint64_t RestoredEntries::PerhapsLeft(const Ledger& ledger) const {
  const auto left = std::count_if(ledger.violations.begin(), ledger.violations.end(), [this](const Violation& one) {
    return one.rule == Rule::ContextStack && Of(one.where) == Restored::Perhaps;
  });
  return static_cast<std::uint64_t>(left);
}

}  // namespace cuaudit::harness
