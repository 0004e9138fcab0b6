// SPDX-License-Identifier: MIT
// denied_contexts.cc: what a call does to the contexts when the program is told that it failed, carried out or not.
#include <algorithm>

#include "harness/ledger/contexts.h"

namespace cuaudit::harness {

// Under `after` the driver counts a reference that the program does not know of.
void Contexts::DenyPrimary(const faults::Record& record) {
  if (record.argument[0] != 0) ++PrimaryOf(record).denied;
}

// The call has answered the context, and a program that cleans up by that gives back what the driver counts. What the driver declines is no
// such reference.
bool Contexts::GivesBackDenied(Primary& primary, const faults::Record& record, Answer answer) {
  if (primary.denied == 0 || answer == Answer::Failed) return false;
  if (Releases(answer) && --primary.denied == 0) OrphanUnheld(primary, record);
  return true;
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
  const HandleEntry* const entry = account_->Find(driver::Family::Context, context);
  const Object* const object = entry == nullptr || entry->top < 0 ? nullptr : &account_->books().object(entry->top);
  return object != nullptr && object->state == State::ReleaseRefused ? object : nullptr;
}

}  // namespace cuaudit::harness
