// SPDX-License-Identifier: MIT
#include "harness/ledger/kept_contexts.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>

namespace cuaudit::harness {

using driver::BaseId;
using driver::Kind;

namespace {

bool IsGenuine(const faults::JournalHeader& header) { return header.driver_kind.load() == faults::DriverKind::Genuine; }

// The kinds of the host that a driver takes for a context, as words.
constexpr std::pair<Kind, std::string_view> kOfContexts[] = {
    {Kind::FileDescriptor, "descriptor"}, {Kind::Thread, "thread"}, {Kind::HostMapping, "mapping"}};

bool IsOfContexts(Kind kind) {
  return std::any_of(std::begin(kOfContexts), std::end(kOfContexts), [&](const auto& one) { return one.first == kind; });
}

}  // namespace

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
  return IsGenuine(header) ? kOfEachContext * contexts : 0;
}

DriversOwn HeldByDriver(const Ledger& ledger, std::uint32_t pid) {
  DriversOwn own;
  for (const Object& object : ledger.objects) {
    const bool is_live = object.pid == pid && object.state == State::Live;
    if (is_live && object.driver_owned && IsOfContexts(object.kind)) ++own[object.kind];
  }
  return own;
}

DriversOwn HeldMore(const faults::JournalHeader& header, DriversOwn held, const DriversOwn& before) {
  if (!IsGenuine(header)) return {};
  for (const auto& [kind, count] : before) held[kind] -= std::min(held[kind], count);
  return held;
}

std::string InWords(const DriversOwn& own) {
  std::string words;
  for (const auto& [kind, word] : kOfContexts) {
    const auto held = own.find(kind);
    if (held == own.end() || held->second == 0) continue;
    words.append(words.empty() ? "" : ", ").append(std::to_string(held->second)).append(" ").append(word);
    if (held->second != 1) words.append("s");
  }
  return words;
}

UndestroyedContexts::UndestroyedContexts(const Ledger& ledger) {
  for (const Object& object : ledger.objects) {
    if (object.kind != Kind::Context || object.state != State::ReleaseRefused) continue;
    // The creator of a context that the program attached to is somebody else.
    if (BaseOf(object.acquired) == BaseId::CtxAttach) continue;
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

namespace {

bool MayStandOn(Kind above, Kind below) {
  if (above == Kind::Mapping) return below == Kind::AddressReservation;
  return below == Kind::HostHeap || below == Kind::HostMapping;
}

bool Overlap(const Object& one, const Object& other) {
  return one.handle - other.handle < other.bytes || other.handle - one.handle < one.bytes;
}

}  // namespace

KeptFoundations::KeptFoundations(const Ledger& ledger) {
  for (const Object& object : ledger.objects) {
    if (object.kind != Kind::Mapping && object.kind != Kind::HostRegistration) continue;
    // What lay there before has ended, whatever the program was told.
    std::erase_if(held_, [&](const Object* one) { return one->pid == object.pid && one->kind == object.kind && Overlap(*one, object); });
    if (object.state == State::ReleaseRefused || object.release_denied) held_.push_back(&object);
  }
}

const Site* KeptFoundations::HeldBy(const Object& object) const {
  const auto above = std::find_if(held_.begin(), held_.end(), [&](const Object* one) {
    return one->pid == object.pid && MayStandOn(one->kind, object.kind) && one->acquired.begin > object.acquired.begin &&
           Overlap(*one, object);
  });
  return object.state != State::Live || above == held_.end() ? nullptr : &(*above)->released;
}

}  // namespace cuaudit::harness
