// SPDX-License-Identifier: MIT
#include "harness/ledger/kept_contexts.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace cuaudit::harness {

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

}  // namespace cuaudit::harness
