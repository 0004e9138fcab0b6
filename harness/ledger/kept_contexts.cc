// SPDX-License-Identifier: MIT
#include "harness/ledger/kept_contexts.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace cuaudit::harness {

using driver::BaseId;
using driver::Kind;

std::vector<KeptContexts> KeptContextsOf(const Ledger& ledger, const std::function<bool(const Object&)>& kept) {
  std::vector<KeptContexts> all;
  std::set<std::tuple<std::uint32_t, Kind, std::uint64_t>> known;
  for (const Object& object : ledger.objects) {
    auto own = std::find_if(all.begin(), all.end(), [&](const KeptContexts& one) { return one.pid == object.pid; });
    if (own == all.end()) own = all.insert(all.end(), {object.pid, 0, nullptr});
    if ((object.kind != Kind::Context && object.kind != Kind::PrimaryContext) || !kept(object)) continue;
    if (known.emplace(object.pid, object.kind, object.handle).second) ++own->count;
    if (own->context == nullptr || object.state == State::ReleaseRefused) own->context = &object;
  }
  return all;
}

std::uint64_t DescriptorsOf(const faults::JournalHeader& header, std::size_t contexts) {
  constexpr std::uint64_t kOfEachContext = 4;
  const bool genuine = header.driver_kind.load() == static_cast<std::uint32_t>(faults::DriverKind::Genuine);
  return genuine ? kOfEachContext * contexts : 0;
}

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
