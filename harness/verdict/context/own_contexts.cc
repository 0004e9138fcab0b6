// SPDX-License-Identifier: MIT
#include "harness/verdict/context/own_contexts.h"

namespace cuaudit::harness {

using driver::BaseId;
using driver::Kind;

UndestroyedContexts::UndestroyedContexts(const Ledger& ledger) {
  for (const Object& object : ledger.objects) {
    if (object.kind != Kind::Context || object.state != State::ReleaseRefused) continue;
    // The creator of a context that the program attached to is somebody else.
    if (driver::BaseOf(static_cast<driver::CallId>(object.acquired.call)) == BaseId::CtxAttach) continue;
    contexts_[{object.pid, object.handle}] = &object;
  }
}

const Site* UndestroyedContexts::EndOf(const Object& object) const {
  if (object.state != State::Live) return nullptr;
  auto found = contexts_.find({object.pid, object.context});
  // Peer access ends with either of its two contexts.
  if (found == contexts_.end() && object.kind == Kind::PeerAccess) found = contexts_.find({object.pid, object.parent});
  if (found == contexts_.end()) return nullptr;
  const Object& context = *found->second;
  const bool was_in_it = object.acquired.begin > context.acquired.begin && object.acquired.begin < context.released.begin;
  return was_in_it && object.cycle == context.cycle ? &context.released : nullptr;
}

}  // namespace cuaudit::harness
