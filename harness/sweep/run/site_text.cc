// SPDX-License-Identifier: MIT
#include "harness/sweep/run/site_text.h"

#include <algorithm>
#include <map>

#include "faults/driver/call_id.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"
#include "reports/words/words.h"

namespace cuaudit::harness {

std::string CallName(const Site& site) {
  switch (site.record_kind) {
    case faults::RecordKind::Call:
      if (site.call >= driver::kCallCount) return {};
      return std::string(driver::Name(BaseOf(site)));
    case faults::RecordKind::Host:
      return site.call < faults::kHostCallCount ? faults::kHostCalls[site.call].text : std::string();
    case faults::RecordKind::Mark:
      if (site.call == static_cast<std::uint16_t>(faults::MarkKind::BlockOut)) return "cuaudit_block_out";
      if (site.call == static_cast<std::uint16_t>(faults::MarkKind::BlockBack)) return "cuaudit_block_back";
      return {};
    case faults::RecordKind::Stop:
      return site.call == 0 ? "(no driver call)" : words::SignalName(site.call);  // 0: a thread that hangs
    case faults::RecordKind::Empty:
    case faults::RecordKind::Argument:
    case faults::RecordKind::Process:
    case faults::RecordKind::Misuse:
      return {};
  }
  return {};
}

std::unordered_map<std::uint64_t, Site> SitesOf(const Evidence& run) {
  std::unordered_map<std::uint64_t, Site> sites;
  const auto& [memory, threads] = run.facts().asked;
  for (const std::vector<std::uint32_t>* const of : {&run.facts().calls, &memory, &threads}) {
    for (const std::uint32_t index : *of) {
      const Site site = SiteOf(run.record(index));
      sites.try_emplace(SiteKey(*run.journal, site), site);
    }
  }
  return sites;
}

void SiteTexts::MarkRuntimeOwned(const faults::JournalView& journal, Ledger* ledger) {
  std::map<std::pair<driver::Kind, std::uint32_t>, bool> known;  // by kind and stack
  for (Object& object : ledger->objects) {
    if (object.state == State::Released || !MayBeOfRuntime(object.kind)) continue;
    const auto [owned, fresh] = known.try_emplace({object.kind, object.acquired.stack});
    if (fresh) owned->second = IsOfRuntime(object.kind, symbolizer_.Whole(journal, object.acquired.stack));
    if (owned->second) object.library_kept = true;
  }
}

const PlaceText& SiteTexts::Text(const faults::JournalView& journal, const Site& site) {
  return Text(journal, site, SiteKey(journal, site));
}

const PlaceText& SiteTexts::Text(const faults::JournalView& journal, const Site& site, std::uint64_t key) {
  if (site.record_kind == faults::RecordKind::Empty) return nowhere_;
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  std::vector<report::Frame> stack = symbolizer_.Resolve(journal, site.stack);
  if (site.record_kind == faults::RecordKind::Stop) stack = WithoutRuntime(std::move(stack));
  // The program gave a function of the driver to pthread_create or atexit. Which function of the C library called it says nothing.
  if (site.record_kind == faults::RecordKind::Call && !stack.empty() && std::all_of(stack.begin(), stack.end(), IsStartCode)) {
    report::Frame library = {.module = "libc.so.6"};
    library.function = "the C library";
    stack = {library};
  }
  return known_.emplace(key, report::Acquired{CallName(site), std::move(stack)}).first->second;
}

std::vector<TrialFindingText> Texts(const std::vector<TrialFinding>& findings, const faults::JournalView& journal, SiteTexts* sites) {
  std::vector<TrialFindingText> texts;
  texts.reserve(findings.size());
  for (const TrialFinding& finding : findings) {
    TrialFindingText text;
    text.rule = finding.rule;
    text.kind = finding.kind;
    text.count = finding.count;
    text.bytes = finding.bytes;
    text.acquired_key = finding.acquired_key;
    text.where_key = finding.where_key;
    text.other_key = finding.other_key;
    text.detail = Words(finding.detail);
    text.acquired = sites->Text(journal, finding.acquired, finding.acquired_key);
    text.where = sites->Text(journal, finding.where, finding.where_key);
    text.other = sites->Text(journal, finding.other, finding.other_key);
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace cuaudit::harness
