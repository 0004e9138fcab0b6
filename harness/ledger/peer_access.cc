// SPDX-License-Identifier: MIT
// How peer access ends, other than by a successful cuCtxDisablePeerAccess: with the context whose memory could be used, or earlier than the
// program believes.
#include "harness/ledger/process_fold.h"

namespace cuaudit::harness {

using driver::EffectRow;
using driver::Family;

void Account::EndPeerAccess(std::uint64_t context, const Site& site) {
  const auto found = by_peer_.find(context);
  if (found == by_peer_.end()) return;
  for (const std::int64_t index : found->second) {
    Object& access = books_->object(index);
    if (access.state != State::Live && access.state != State::ReleaseRefused) continue;
    const bool refused = access.state == State::ReleaseRefused;
    Close(index, refused ? State::ReleaseRefused : State::Orphaned, refused ? access.released : site);
    access.ended_with_peer = true;
    access.died_with_context = refused;
  }
  by_peer_.erase(found);
}

// True for a cuCtxDisablePeerAccess that cannot end anything:
// - The peer was destroyed, which CheckUses has reported.
// - The plan refused the call that was to make the right context current. That is a refused release of the access there.
// - The access ended with the peer's reset.
// - The driver says that there is no such access, or no such peer. It ended with the peer, as with a primary context whose last reference
//   went. The records do not tell whether that was the last one, so only the answer does.
bool ProcessFold::SettleDeclinedPeerAccess(const faults::Record& record, Answer answer) {
  const HandleEntry* const peer = account_.Find(Family::Context, record.argument[0]);
  if (peer != nullptr && peer->top < 0 && peer->last >= 0 && !peer->borrowed) return true;
  const EffectRow& row = driver::EffectOf(BaseOf(record));
  const std::int64_t named = account_.Ended(Family::PeerAccess, ObjectHandle(record, row));
  if (named >= 0 && account_.books().object(named).ended_with_peer) {
    Object& ended = account_.books().object(named);
    if (ended.state == State::Orphaned) ended.released = SiteOf(record);
    if (ended.state == State::Orphaned) ended.state = State::Released;
    return true;
  }
  if (answer != Answer::Failed && answer != Answer::Refused) return false;
  const auto access_of = [&](std::uint64_t context) {
    faults::Record meant = record;
    meant.context = context;
    return account_.Held(Family::PeerAccess, ObjectHandle(meant, row));
  };
  const std::int64_t here = access_of(record.context);
  const std::uint64_t refused = contexts_.RefusedTo(record.tid);
  const std::int64_t there = refused == 0 ? -1 : access_of(refused);
  if (here < 0 && there >= 0) {
    Object& access = account_.books().object(there);
    access.state = State::ReleaseRefused;
    access.released = SiteOf(record);
    return true;
  }
  const bool gone = record.result == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED || record.result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (here < 0 || answer == Answer::Refused || !gone) return false;
  account_.Close(here, State::Released, SiteOf(record));
  return true;
}

}  // namespace cuaudit::harness
