// SPDX-License-Identifier: MIT
#include "harness/verdict/context/popped_contexts.h"

#include <algorithm>

#include "harness/ledger/arguments.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {

using driver::Effect;
using faults::Record;

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

}  // namespace cuaudit::harness
