// SPDX-License-Identifier: MIT
#include "harness/ledger/contexts.h"

#include <algorithm>
#include <iterator>

namespace cuaudit::harness {

using driver::Family;
using driver::Kind;

void Contexts::See(const faults::Record& record) {
  if (record.context == last_current_) return;
  last_current_ = record.context;
  if (record.context != 0) current_.insert(record.context);
}

Contexts::Primary& Contexts::PrimaryOf(const faults::Record& record) {
  const std::uint64_t context = record.argument[0];
  Primary& primary = primaries_[record.argument[1]];
  if (!primary.seen) {
    primary.seen = true;
    primary.held_elsewhere = current_.count(context) != 0;
  }
  primary.context = context;
  return primary;
}

void Contexts::RetainPrimary(const faults::Record& record) {
  Primary& primary = PrimaryOf(record);
  Object reference = {.kind = Kind::PrimaryContext, .handle = record.argument[1], .context = primary.context};
  primary.denied_releases.BeginAnew();
  primary.references.push_back(account_->Retain(reference, record));
}

// The newest reference of the same thread, else the newest one. References whose release was refused come last (see Account::Release).
std::size_t Contexts::ReferenceToRelease(const Primary& primary, std::uint32_t tid) {
  constexpr std::size_t kLookBack = 64;
  const std::size_t count = primary.references.size();
  std::size_t best = count - 1;
  int best_rank = -1;
  for (std::size_t back = 1; back <= std::min(count, kLookBack); ++back) {
    const std::size_t i = count - back;
    const Object& reference = account_->books().object(primary.references[i]);
    const int rank = (reference.state == State::Live ? 2 : 0) + (reference.tid == tid ? 1 : 0);
    if (rank > best_rank) {
      best = i;
      best_rank = rank;
    }
    if (rank == 3) break;
  }
  return best;
}

void Contexts::ReleasePrimary(const faults::Record& record, Answer answer) {
  const std::uint64_t device = record.argument[0];
  Primary& primary = primaries_[device];
  if (primary.references.empty()) {
    if (GivesBackDenied(primary, record, answer)) return;
    if (account_->Inherited(Family::PrimaryContext, device)) return;
    const std::int64_t last = account_->Ended(Family::PrimaryContext, device);
    if (last >= 0 && account_->books().object(last).told_alive) return;
    account_->books().Violate(Rule::OverReleasedPrimary, Kind::PrimaryContext, record, device, last).believed =
        primary.denied_releases.Excuse(record, answer == Answer::Succeeded, last < 0 ? Site{} : account_->books().object(last).released);
    return;
  }
  const std::size_t chosen = ReferenceToRelease(primary, record.tid);
  const std::int64_t index = primary.references[chosen];
  if (answer == Answer::Refused) {
    Object& reference = account_->books().object(index);
    reference.state = State::ReleaseRefused;
    reference.released = SiteOf(record);
    return;
  }
  if (!Releases(answer)) return;
  primary.references.erase(primary.references.begin() + static_cast<std::ptrdiff_t>(chosen));
  Object& reference = account_->books().object(index);
  const Site first = FirstTry(reference, record);
  account_->Close(index, State::Released, SiteOf(record));
  reference.told_alive = reference.release_denied = answer == Answer::After;
  if (reference.release_denied) primary.denied_releases.Add(first);
  OrphanUnheld(primary, record);
}

// A denied reference does not count. The context ends for the program when the program has released its own last reference.
void Contexts::OrphanUnheld(const Primary& primary, const faults::Record& record) {
  if (runtime_exits_ || !primary.references.empty() || primary.greens != 0 || primary.held_elsewhere) return;
  account_->Orphan(primary.context, SiteOf(record));
}

// The CUDA Driver API says: "Resetting the primary context does not release it". The children end; the references stay.
void Contexts::ResetPrimary(const faults::Record& record, Answer answer) {
  const auto found = primaries_.find(record.argument[0]);
  if (found == primaries_.end() || !Releases(answer)) return;
  account_->Orphan(found->second.context, SiteOf(record));
  account_->EndPeerAccess(found->second.context, SiteOf(record));
}

void Contexts::Create(const faults::Record& record) {
  Object context = {.kind = Kind::Context, .handle = record.argument[0]};
  Stack& stack = StackOf(record);
  stack.entries.push_back({context.handle, -1, Origin::Created, false, record.cycle});
  stack.refused = 0;
  account_->Acquire(context, record);
  made_[context.handle] = account_->Held(Family::Context, context.handle);
}

void Contexts::Destroy(const faults::Record& record, Answer answer) {
  const std::uint64_t handle = record.argument[0];
  const bool detaches = BaseOf(record) == driver::BaseId::CtxDetach;
  const std::int64_t held = account_->Held(Family::Context, handle);
  const bool attached = held >= 0 && BaseOf(account_->books().object(held).acquired) == driver::BaseId::CtxAttach;
  account_->Release(Kind::Context, handle, 1, record, answer);
  if (answer == Answer::Refused && !detaches) RefuseDestruction(held, record);
  Stack& stack = StackOf(record);
  const bool current = !stack.entries.empty() && stack.entries.back().context == handle;
  const auto made = made_.find(handle);
  if (answer == Answer::Refused && current && !detaches && !IsKept(stack.entries.back())) Keep(stack.entries.back(), record);
  if (!Releases(answer)) return;
  if (held >= 0) {
    const HandleEntry& entry = account_->Entry(Family::Context, handle);
    while (!detaches && entry.top >= 0) account_->Close(entry.top, State::Released, SiteOf(record));
    if (entry.top >= 0) return;
    // The last attach is undone. The context itself has another owner: it is a primary context, or a parent process created it.
    if (detaches && attached && made == made_.end()) return account_->Borrow(Family::Context, handle);
  } else {
    const bool ended = EndsDenied(handle, detaches);
    if (!ended && (detaches || answer != Answer::Succeeded)) return;
  }
  // Without an owner the context has another creator: a parent process, or a call under `after` that the program believes failed.
  const bool ours = held >= 0 && made != made_.end();
  account_->Orphan(handle, SiteOf(record), ours ? &account_->books().object(made->second) : nullptr);
  if (ours) made_.erase(made);
  account_->EndPeerAccess(handle, SiteOf(record));
  if (current) TakeTop(stack, record, true);
}

Contexts::Stack& Contexts::StackOf(const faults::Record& record) {
  const auto [found, added] = stack_of_thread_.try_emplace(record.tid, stacks_.size());
  if (added) {
    stacks_.emplace_back();
    stacks_.back().tid = record.tid;
  }
  return stacks_[found->second];
}

const Contexts::Stack* Contexts::KnownStack(std::uint32_t tid) const {
  const auto found = stack_of_thread_.find(tid);
  return found == stack_of_thread_.end() ? nullptr : &stacks_[found->second];
}

std::uint64_t Contexts::CurrentOf(std::uint32_t tid) const {
  const Stack* const stack = KnownStack(tid);
  return stack == nullptr || stack->entries.empty() ? 0 : stack->entries.back().context;
}

void Contexts::Push(const faults::Record& record) {
  Stack& stack = StackOf(record);
  stack.pushed = true;
  const std::optional<Taken> former = PutBack(stack, record.argument[0]);
  if (!stack.below.empty()) {  // the push puts back what an earlier pop took
    stack.below.pop_back();
    return;
  }
  if (former && !former->pushed) {  // nobody owes a pop for the entry that stands there again
    stack.entries.push_back({record.argument[0], -1, Origin::SetCurrent, false, former->from});
    return;
  }
  Object object = {.kind = Kind::ContextStackEntry, .handle = record.argument[0], .context = record.argument[0]};
  stack.entries.push_back({record.argument[0], account_->Retain(object, record), Origin::Pushed, false, record.cycle});
  if (!former) return;
  stack.entries.back().restores = former->cycle == record.cycle;
  stack.entries.back().cycle = former->from;
}

// A refused pop leaves one entry too many. Later pops of the program then take one entry higher than intended, so the refused mark moves
// down the stack until an extra pop settles it or it reaches the bottom. The destruction of a context takes the entry itself away.
// cuCtxSetCurrent(NULL) is no pop: the entry that it takes off in place of one below still owes its pop.
void Contexts::TakeTop(Stack& stack, const faults::Record& record, bool destroyed) {
  const StackEntry taken = stack.entries.back();
  stack.entries.pop_back();
  Site refused = taken.refused;
  if (taken.object >= 0) {
    const Object before = account_->books().object(taken.object);
    account_->Close(taken.object, State::Released, SiteOf(record));
    if (before.state == State::ReleaseRefused) refused = before.released;
    if (before.state == State::ReleaseRefused) account_->books().object(taken.object).retried = Site{};  // not settled, or by no pop
  }
  if (destroyed || refused == Site{}) return;
  const auto below =
      std::find_if(stack.entries.rbegin(), stack.entries.rend(), [this](const StackEntry& one) { return one.object >= 0 && !IsKept(one); });
  const bool last = below == stack.entries.rend();
  const bool pops = BaseOf(record) != driver::BaseId::CtxSetCurrent;
  if (last && (taken.object < 0 || (!pops && stack.entries.empty()))) return;
  Object& owing = account_->books().object(last ? taken.object : below->object);
  (last && pops ? owing.retried : owing.released) = refused;
  if (!last || !pops) owing.state = State::ReleaseRefused;
}

// The plan refused what was to take the entry off the stack.
void Contexts::Keep(StackEntry& entry, const faults::Record& record) {
  if (entry.object < 0) {
    entry.refused = SiteOf(record);
    return;
  }
  Object& kept = account_->books().object(entry.object);
  kept.state = State::ReleaseRefused;
  kept.released = SiteOf(record);
}

// True when the top of the stack is older than the cycle and was not left there by a refused pop.
bool Contexts::IsOlder(const Stack& stack, std::uint32_t cycle) const {
  if (stack.entries.empty()) return true;
  const StackEntry& top = stack.entries.back();
  return top.cycle != cycle && (top.object < 0 || account_->books().object(top.object).state == State::Live);
}

bool Contexts::IsKept(const StackEntry& entry) const {
  return entry.object < 0 ? entry.refused != Site{} : account_->books().object(entry.object).state != State::Live;
}

void Contexts::Pop(const faults::Record& record, Answer answer) {
  Stack& stack = StackOf(record);
  if (answer == Answer::Succeeded && stack.entries.empty() && stack.told_there == 0 && stack.denied > 0) {
    if (stack.denied_in != record.cycle) NoteTaken(stack, record, false);
    --stack.denied;
    return;
  }
  if (answer == Answer::Refused) {
    // Each refused pop leaves one entry too many, so a second one marks the next entry below.
    const auto entry = std::find_if(stack.entries.rbegin(), stack.entries.rend(), [this](const StackEntry& one) { return !IsKept(one); });
    if (entry != stack.entries.rend()) Keep(*entry, record);
    return;
  }
  if (answer == Answer::TornDown && !stack.entries.empty()) TakeTop(stack, record, false);  // by an exit handler
  const bool nothing_left = answer == Answer::Succeeded && stack.entries.empty() && stack.told_there == 0;
  if (nothing_left || (answer == Answer::Failed && record.result == CUDA_ERROR_INVALID_CONTEXT)) Miss(stack, SiteOf(record));
  if (!Releases(answer) || answer == Answer::TornDown) return;
  if (answer == Answer::After || (answer == Answer::Succeeded && stack.told_there == 0))
    NoteTaken(stack, record, answer == Answer::Succeeded);
  if (answer == Answer::After) ++stack.told_there;
  if (!stack.entries.empty()) {
    TakeTop(stack, record, false);
  } else if (answer != Answer::After && stack.told_there > 0) {
    --stack.told_there;  // a second pop of an entry that the program believes is still there
  } else {
    stack.below.push_back(SiteOf(record));
  }
}

// A marked cycle takes off an entry from before the cycle. `owed`: it has to come back.
void Contexts::NoteTaken(Stack& stack, const faults::Record& record, bool owed) const {
  if (record.cycle == 0) return;
  Taken taken = {.context = record.context, .site = SiteOf(record), .cycle = record.cycle};
  if (stack.entries.empty()) {
    if (stack.set_cycle == record.cycle) taken.context = stack.older;
    stack.set_cycle = 0;
  } else {
    const StackEntry& top = stack.entries.back();
    const bool is_older = IsOlder(stack, record.cycle);
    if (!is_older && top.older == 0) return;
    if (is_older) taken.from = top.cycle;
    if (!is_older) taken.context = top.older;
    owed = owed && is_older;
    taken.pushed = top.object >= 0;
  }
  taken.owed = owed;
  stack.taken.push_back(taken);
}

// The thread chose a context. When a pop of this cycle or of an earlier one had taken it, it is on the stack again. Answers that pop.
std::optional<Contexts::Taken> Contexts::PutBack(Stack& stack, std::uint64_t context) {
  stack.refused = 0;
  if (context == 0) return std::nullopt;
  for (std::vector<Taken>* const pops : {&stack.taken, &stack.owed}) {
    const auto same = std::find_if(pops->rbegin(), pops->rend(), [&](const Taken& taken) { return taken.context == context; });
    if (same == pops->rend()) continue;
    const Taken taken = *same;
    pops->erase(std::next(same).base());
    if (pops == &stack.owed) stack.returned = true;
    return taken;
  }
  return std::nullopt;
}

void Contexts::Set(const faults::Record& record) {
  Stack& stack = StackOf(record);
  const std::uint64_t context = record.argument[0];
  const std::optional<Taken> former = PutBack(stack, context);
  if (context == 0) {
    if (!stack.entries.empty()) NoteTaken(stack, record, false);
    if (!stack.entries.empty()) TakeTop(stack, record, false);
  } else if (!stack.entries.empty()) {
    StackEntry& top = stack.entries.back();
    if (top.cycle != record.cycle) top.older = top.context;
    top.context = context;
    top.cycle = record.cycle;
  } else if (!stack.below.empty()) {
    stack.below.pop_back();
  } else if (record.context == 0) {
    stack.entries.push_back({context, -1, Origin::SetCurrent, false, former ? former->from : record.cycle});
    if (stack.told_there > 0) --stack.told_there;  // the program sets the entry that it believes is still there
  } else if (stack.set_cycle != record.cycle) {
    stack.set_cycle = record.cycle;
    stack.older = record.context;
  }
}

bool Contexts::Destroyed(std::uint64_t context) { return account_->Ended(Family::Context, context) >= 0; }

void Contexts::Report(StackEntry& entry) {
  if (entry.reported || entry.object < 0 || account_->books().object(entry.object).state != State::Live) return;
  if (Destroyed(entry.context)) {
    account_->Close(entry.object, State::Released, Site{});
    return;
  }
  Object& object = account_->books().object(entry.object);
  if (const Object* const kept = KeptByRefusal(entry.context); kept != nullptr) {  // it would have gone with its context
    object.state = State::ReleaseRefused;
    object.released = kept->released;
    return;
  }
  entry.reported = true;
  Violate(object.acquired, object.handle, entry.object);
}

void Contexts::Violate(const Site& where, std::uint64_t handle, std::int64_t object) {
  account_->books().ledger.violations.push_back({Rule::ContextStack, Kind::ContextStackEntry, account_->pid(), handle, where, object});
}

// The other half of a push finds nothing, because a cycle has popped what was pushed.
void Contexts::Miss(Stack& stack, const Site& pop) {
  const auto taken = std::find_if(stack.owed.rbegin(), stack.owed.rend(), [](const Taken& one) { return one.pushed; });
  if (taken == stack.owed.rend()) return;
  taken->pushed = false;
  taken->missed = pop;
}

void Contexts::ReportTaken(Stack& stack, const Taken& taken) {
  if (Destroyed(taken.context) || account_->parent() != nullptr) return;
  Violate(taken.site);
  std::erase(stack.below, taken.site);  // already reported
  std::erase(stack.below, taken.missed);
}

void Contexts::BeginCycle(const faults::Record& record) {
  if (KnownStack(record.tid) == nullptr) return;
  Stack& stack = StackOf(record);
  for (const Taken& taken : stack.owed) ReportTaken(stack, taken);
  stack.owed.clear();
  stack.taken.clear();
  stack.refused = 0;
}

void Contexts::EndCycle(const faults::Record& record) {
  if (record.cycle == 0 || KnownStack(record.tid) == nullptr) return;
  Stack& stack = StackOf(record);
  for (StackEntry& entry : stack.entries) {
    if (entry.restores) continue;
    if (entry.object >= 0 && account_->books().object(entry.object).cycle == record.cycle) Report(entry);
  }
  for (const Taken& taken : stack.taken) {
    if (taken.cycle == record.cycle && taken.owed) stack.owed.push_back(taken);
  }
  stack.taken.clear();
}

void Contexts::Finish() {
  for (Stack& stack : stacks_) {
    for (StackEntry& entry : stack.entries) Report(entry);
    for (const Taken& taken : stack.owed) {
      if (!taken.pushed && (!stack.returned || taken.missed != Site{})) ReportTaken(stack, taken);
    }
    if (!stack.pushed || account_->parent() != nullptr) continue;
    for (const Site& site : stack.below) Violate(site);
  }
}

}  // namespace cuaudit::harness
