// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "harness/defect/reference_pairs.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;
using faults::Record;
using faults::RecordKind;

constexpr std::size_t kMostReferences = 128;  // to one handle at a time; above that the ledger's pairs remain

bool WasGiven(const Object& object) {
  return (object.state == State::Released || object.state == State::ReleaseRefused) && object.released.record_kind != RecordKind::Empty;
}

// Gives `to` what a release, or none, has done to `from`.
void GiveEnd(const Object& from, Object* to) {
  to->state = from.state;
  to->released = from.released;
  to->retried = from.retried;
  to->told_alive = from.told_alive;
  to->release_denied = from.release_denied;
  to->died_with_context = from.died_with_context;
}

using References = std::vector<std::size_t>;  // indices of objects: references to one handle, in the order of their acquisition

// References that overlap in time, from several places. A handle whose references were all released begins anew.
std::vector<References> HeldAtOnce(const Ledger& ledger) {
  std::map<std::tuple<std::uint32_t, Kind, std::uint64_t, std::uint64_t>, std::vector<References>> handles;
  std::map<const std::vector<References>*, std::uint64_t> until;
  for (std::size_t i = 0; i < ledger.objects.size(); ++i) {
    const Object& object = ledger.objects[i];
    if (!IsReferenceCounted(object.kind) || object.driver_owned || object.library_kept) continue;
    std::vector<References>& groups = handles[{object.pid, object.kind, object.handle, object.parent}];
    std::uint64_t& last = until[&groups];
    if (groups.empty() || object.acquired.begin > last) groups.emplace_back();
    groups.back().push_back(i);
    last = std::max(last, WasGiven(object) ? object.released.begin : ~std::uint64_t{0});
  }
  std::vector<References> held;
  for (auto& [handle, groups] : handles) {
    for (References& group : groups) {
      const auto stack = [&](std::size_t i) { return ledger.objects[i].acquired.stack; };
      const bool places = std::any_of(group.begin(), group.end(), [&](std::size_t i) { return stack(i) != stack(group.front()); });
      const bool ended = std::all_of(group.begin(), group.end(), [&](std::size_t i) {
        const Object& object = ledger.objects[i];
        return WasGiven(object) ? object.released.begin > object.acquired.begin : object.state == State::Live;
      });
      if (places && ended && group.size() <= kMostReferences) held.push_back(std::move(group));
    }
  }
  return held;
}

// Settles one group anew. Answers whether anything changed.
bool Settle(const faults::JournalView& journal, const References& group, std::span<const KnownPair> known,
            std::span<const FailedCall> failed, SiteTexts* sites, Ledger* ledger, std::vector<SettledReference>* settled) {
  const auto text = [&](const Site& site) -> const Stack& { return sites->Text(journal, site)->stack; };
  std::vector<ReferenceTaken> taken;
  std::vector<ReferenceGiven> given;
  std::vector<Object> ended;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Object& object = ledger->objects[group[i]];
    taken.push_back({text(object.acquired), SiteKey(journal, object.acquired), object.acquired.begin});
    if (!WasGiven(object)) continue;
    given.push_back({text(object.released), SiteKey(journal, object.released), object.released.begin, i});
    ended.push_back(object);
  }
  const std::vector<ReferencePair> pairs = PairReferences(taken, given, known, failed);
  bool changed = false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    changed = changed || pairs[i].taken != given[i].taken;
    const Object& object = ledger->objects[group[pairs[i].taken]];
    if (settled != nullptr) settled->push_back({object.acquired, ended[i].released, pairs[i].sure});
  }
  if (!changed) return false;
  for (const std::size_t i : group) GiveEnd(Object(), &ledger->objects[i]);
  for (std::size_t i = 0; i < pairs.size(); ++i) GiveEnd(ended[i], &ledger->objects[group[pairs[i].taken]]);
  return true;
}

}  // namespace

void SettleReferences(const faults::JournalView& journal, SiteTexts* sites, Ledger* ledger) {
  for (const References& group : HeldAtOnce(*ledger)) Settle(journal, group, {}, {}, sites, ledger, &ledger->settled);
}

std::optional<Ledger> SettledAsRehearsed(const Evidence& rehearsal, const Evidence& trial, SiteTexts* sites) {
  if (rehearsal.ledger->settled.empty()) return std::nullopt;
  const std::vector<References> groups = HeldAtOnce(*trial.ledger);
  if (groups.empty()) return std::nullopt;
  std::vector<KnownPair> known;
  const faults::JournalView& journal = *rehearsal.journal;
  std::set<std::tuple<std::uint64_t, std::uint64_t, bool>> seen;
  for (const SettledReference& pair : rehearsal.ledger->settled) {
    const std::uint64_t acquired = SiteKey(journal, pair.acquired);
    const std::uint64_t released = SiteKey(journal, pair.released);
    if (!seen.emplace(acquired, released, pair.sure).second) continue;
    known.push_back({acquired, sites->Text(journal, pair.released, released)->stack, pair.sure});
  }
  std::vector<FailedCall> failed;
  for (std::size_t i = 0; i < faults::kMaxFaults; ++i) {
    if (const Record* const hit = trial.hit(i)) failed.push_back({sites->Text(*trial.journal, SiteOf(*hit))->stack, hit->begin});
  }
  Ledger settled = *trial.ledger;
  bool changed = false;
  for (const References& group : groups) {
    changed = Settle(*trial.journal, group, known, failed, sites, &settled, nullptr) || changed;
  }
  return changed ? std::optional<Ledger>(std::move(settled)) : std::nullopt;
}

}  // namespace cuaudit::harness
