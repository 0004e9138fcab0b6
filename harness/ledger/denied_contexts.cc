// SPDX-License-Identifier: MIT
// denied_contexts.cc: what a call does to the contexts when the program is told that it failed, carried out or not.
#include <algorithm>

#include "harness/ledger/contexts.h"

namespace cuaudit::harness {

// Under `after` the driver counts a reference that the program does not know of.
void Contexts::DenyPrimary(const faults::Record& record) {
  if (record.argument[0] == 0) return;
  Primary& primary = PrimaryOf(record);
  if (primary.denied++ == 0) primary.denied_at = record.begin;
}

// The call has answered the context, and a program that cleans up by that gives back what the driver counts. What the driver declines is no
// such reference.
bool Contexts::GivesBackDenied(Primary& primary, const faults::Record& record, Answer answer) {
  if (primary.denied == 0 || answer == Answer::Failed) return false;
  BelieveUses(primary, record.pid);
  if (Releases(answer) && --primary.denied == 0) OrphanUnheld(primary, record);
  return true;
}

// By the count, the program's last release ended the context. The driver still held the denied reference, so the context lived on, and so
// did what was used in it.
void Contexts::BelieveUses(const Primary& primary, std::uint32_t pid) {
  for (Violation& violation : account_->books().ledger.violations) {
    const bool late = violation.rule == Rule::UseAfterRelease && violation.pid == pid && violation.other.begin > primary.denied_at;
    const bool ended = late && violation.object >= 0 && BaseOf(violation.other) == driver::BaseId::DevicePrimaryCtxRelease;
    if (ended && account_->books().object(violation.object).context == primary.context) violation.believed = true;
  }
}

// cuCtxDestroy ends all references to a context, so its refusal keeps all of them alive.
void Contexts::RefuseDestruction(std::int64_t newest, const faults::Record& record) {
  for (std::int64_t at = newest; at >= 0; at = account_->books().beneath[static_cast<std::size_t>(at)]) {
    Object& reference = account_->books().object(at);
    if (reference.state == State::Live) reference.released = SiteOf(record);
    if (reference.state == State::Live) reference.state = State::ReleaseRefused;
  }
}

void Contexts::DenyContext(std::uint64_t context, bool attached) {
  if (!attached) {
    denied_[context] = 1;
  } else if (const auto made = denied_.find(context); made != denied_.end()) {
    ++made->second;
  }
}

// True when the call has ended a context whose creation was denied: all that the driver counts have been given back.
bool Contexts::EndsDenied(std::uint64_t context, bool detaches) {
  const auto made = denied_.find(context);
  if (made == denied_.end() || (detaches && --made->second != 0)) return false;
  denied_.erase(made);
  return true;
}

void Contexts::DenyPush(const faults::Record& record) {
  Stack& stack = StackOf(record);
  TryPutBack(stack, record);
  Deny(stack, record);
}

void Contexts::Deny(Stack& stack, const faults::Record& record) {
  ++stack.denied;
  stack.denied_in = record.cycle;
}

void Contexts::DenySet(const faults::Record& record) {
  Stack& stack = StackOf(record);
  const std::uint64_t context = record.argument[0];
  TryPutBack(stack, record);
  if (record.context == 0) {
    if (context != 0) Deny(stack, record);
  } else if (stack.denied > 0) {
    if (context == 0) --stack.denied;
  } else if (context == 0) {
    NoteTaken(stack, record, false);
    ++stack.told_there;
    if (!stack.entries.empty()) TakeTop(stack, record, false);
  } else if (!stack.entries.empty()) {
    stack.entries.back().context = context;
  }
}

void Contexts::RefuseToSet(const faults::Record& record) {
  Stack& stack = StackOf(record);
  stack.refused = record.argument[0];
  TryPutBack(stack, record);
}

// The cycle may have popped the context. It has done what it could.
void Contexts::TryPutBack(Stack& stack, const faults::Record& record) {
  const auto same = std::find_if(stack.taken.rbegin(), stack.taken.rend(),
                                 [&](const Taken& taken) { return taken.context == record.argument[0] && taken.cycle == record.cycle; });
  if (same != stack.taken.rend()) same->owed = false;
}

// The context, when the program tried to destroy it and was refused.
const Object* Contexts::KeptByRefusal(std::uint64_t context) {
  const std::int64_t held = account_->Held(driver::Family::Context, context);
  const Object* const object = held < 0 ? nullptr : &account_->books().object(held);
  return object != nullptr && object->state == State::ReleaseRefused ? object : nullptr;
}

}  // namespace cuaudit::harness
