// SPDX-License-Identifier: MIT
#include "harness/verdict/context/restored_entries.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "harness/ledger/arguments.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

using driver::Effect;
using faults::Record;

using Contexts = std::vector<std::uint64_t>;

void Add(std::uint64_t context, Contexts* to) {
  if (context != 0 && std::find(to->begin(), to->end(), context) == to->end()) to->push_back(context);
}

bool Holds(const Contexts& held, std::uint64_t context) { return std::find(held.begin(), held.end(), context) != held.end(); }

// An entry that nobody has to pop, or, without a maker, one that was pushed.
struct Slot {
  const Record* made = nullptr;
  Contexts held;  // the contexts that it has held
};

// Where such an entry was taken off.
struct Vacancy {
  const Record* made = nullptr;
  const Record* taken = nullptr;
  Contexts held;
};

struct FollowedStack {
  std::vector<Slot> entries;
  std::map<std::size_t, std::vector<Vacancy>> vacant;  // by the number of entries below
  std::vector<const Record*> below;                    // pops that took what no record put there
  Contexts unknown;                                    // contexts that such entries have held

  void Take(const Record* by) {
    Slot top = std::move(entries.back());
    entries.pop_back();
    vacant.erase(vacant.upper_bound(entries.size()), vacant.end());
    if (by == nullptr || top.made == nullptr) return;
    std::vector<Vacancy>& here = vacant[entries.size()];
    std::erase_if(here, [&](const Vacancy& one) {
      return one.taken->cycle != by->cycle || (one.made->stack == top.made->stack && one.taken->stack == by->stack);
    });
    here.push_back({top.made, by, std::move(top.held)});
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
    const bool moves = driver::MovesContext(effect);
    const Answer answer = AnswerOf(record);
    if (!moves || (answer != Answer::Succeeded && answer != Answer::After)) continue;
    FollowedStack& stack = stacks[{record.pid, record.tid}];
    const std::uint64_t context = record.argument[0];
    const bool sets = effect == Effect::SetsContext;
    if (effect == Effect::CreatesContext) {
      stack.entries.push_back({&record, {context}});
    } else if (effect == Effect::DestroysContext) {
      if (context == record.context && !stack.entries.empty()) stack.Take(nullptr);
    } else if (sets && context != 0 && record.context != 0) {
      Contexts& held = stack.entries.empty() ? stack.unknown : stack.entries.back().held;
      Add(record.context, &held);
      Add(context, &held);
    } else if (effect == Effect::PushesContext || (sets && context != 0)) {
      if (!stack.below.empty()) {
        put_back_.insert(stack.below.back()->begin);
        if (Holds(stack.unknown, context)) {
          stack.below.pop_back();
          continue;
        }
      }
      if (sets && !stack.entries.empty()) continue;
      std::vector<Vacancy>& vacant = stack.vacant[stack.entries.size()];
      Restored restored = Restored::No;
      const auto filled = std::find_if(vacant.rbegin(), vacant.rend(), [&](const Vacancy& one) {
        const Restored by_it = RestoredBy(run, one, record);
        // The function put a context back, though perhaps another one.
        if (by_it == Restored::Yes) put_back_.insert(one.taken->begin);
        if (Holds(one.held, context)) restored = by_it;
        return restored != Restored::No;
      });
      if (filled == vacant.rend()) {
        stack.entries.push_back({sets ? &record : nullptr, {context}});
        continue;
      }
      if (!sets) pushes_[record.begin] = restored;
      stack.entries.push_back({filled->made, std::move(filled->held)});
      vacant.erase(std::next(filled).base());
    } else if (effect == Effect::PopsContext || sets) {
      const bool known = !stack.entries.empty();
      if (!known && sets) continue;
      if (!known || stack.entries.back().made != nullptr) takings_.insert(record.begin);
      const std::uint64_t off = record.context != 0 || sets ? record.context : context;
      Add(off, known ? &stack.entries.back().held : &stack.unknown);
      if (known) stack.Take(&record);
      if (!known) stack.below.push_back(&record);
    }
  }
}

Restored RestoredEntries::Of(const Site& push) const {
  const auto found = pushes_.find(push.begin);
  return found == pushes_.end() ? Restored::No : found->second;
}

}  // namespace cuaudit::harness
