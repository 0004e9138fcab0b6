// SPDX-License-Identifier: MIT
#include "reports/audit_defects.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "reports/audit.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/message.h"
#include "reports/text_page.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kNamedCases = 5;

int RankOf(const Defect& defect) {
  static constexpr std::array<Change, 4> kOrder = {Change::New, Change::Changed, Change::None, Change::Unchanged};
  const auto place = std::find(kOrder.begin(), kOrder.end(), defect.change);
  return static_cast<int>(place - kOrder.begin()) + (IsSuppressed(defect) ? static_cast<int>(kOrder.size()) + 1 : 0);
}

void Add(std::string_view between, std::size_t count, std::string_view word, std::string* text) {
  if (count == 0) return;
  *text += fmt::format("{}{} {}", text->empty() ? "" : between, count, word);
}

}  // namespace

std::vector<Listed> ListDefects(const Audit& audit) {
  std::vector<Listed> all;
  std::map<std::string_view, std::size_t> known;
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      for (const Defect& defect : run.defects) {
        std::size_t at = all.size();
        if (!defect.fingerprint.empty()) at = known.try_emplace(defect.fingerprint, at).first->second;
        if (at == all.size()) all.push_back({&one, &run, &defect, {}});
        Listed& listed = all[at];
        if (RankOf(defect) < RankOf(*listed.defect)) listed = {&one, &run, &defect, std::move(listed.cases)};
        if (!one.name.empty() && (listed.cases.empty() || listed.cases.back() != one.name)) listed.cases.push_back(one.name);
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) { return RankOf(*a.defect) < RankOf(*b.defect); });
  return all;
}

std::string WhyNothingProved(const Run& run) {
  if (Proves(run)) return {};
  if (!run.outcome) return "the report has no outcome";
  std::string line = MessageLine(run);
  if (run.outcome == Outcome::NotExercised || (run.outcome == Outcome::Interrupted && run.interrupted)) return line;  // it begins so
  std::string what(OutcomeName(run));
  std::replace(what.begin(), what.end(), '_', ' ');
  return what + (line.empty() ? "" : ": ") + line;
}

namespace {

// The same, and of a run that proves something why that is not all: "in part: 3 of 40 planned faults never fired: ...". Findings do not
// stand for what nobody saw (WhyInPart). Trials that --limit left out, or --budget after each place was tried once, are none of it: without
// findings such a run is clean.
std::string WhyNotAllProved(const Run& run) {
  std::string why = WhyNothingProved(run);
  return !why.empty() || ProvesAll(run) ? why : "in part: " + WhyInPart(run.message);
}

}  // namespace

std::vector<NotProved> Missing(const Audit& audit) {
  std::vector<NotProved> missing;
  if (!audit.comparison) return missing;
  std::set<std::string_view> told;
  for (const NotProved& one : audit.comparison->not_run) {
    const bool is_there =
        std::any_of(audit.cases.begin(), audit.cases.end(), [&one](const Case& now) { return now.name == one.case_name; });
    // A report of one program has no name that could stand for it.
    if (is_there || one.case_name.empty()) missing.push_back(one);
    else if (told.insert(one.case_name).second) missing.push_back({one.case_name, Mode::Unknown, one.why});
  }
  return missing;
}

std::vector<NotProved> NothingProved(const Audit& audit) {
  std::vector<NotProved> all;
  for (const Case& one : audit.cases) {
    if (!one.not_run.empty()) all.push_back({one.name, Mode::Unknown, one.not_run});
    for (const Run& run : one.runs) {
      std::string why = WhyNotAllProved(run);
      const bool of_case = (run.message.untried && one.not_run == kUntried) || run.message.told == one.not_run;
      const bool said = !one.not_run.empty() && !run.interrupted && of_case;
      if (!why.empty() && !said) all.push_back({one.name, run.mode, std::move(why)});
    }
  }
  for (NotProved& one : Missing(audit)) all.push_back(std::move(one));
  return all;
}

std::uint64_t Changes::Count(Change change) const {
  const auto found = defects.find(change);
  return found == defects.end() ? 0 : found->second;
}

Changes CountChanges(const Audit& audit) {
  Changes all;
  for (const CaseChanges& one : CountChangesOfCases(audit)) {
    for (const auto& [change, count] : one.changes.defects) all.defects[change] += count;
    all.suppressed += one.changes.suppressed;
    all.expired += one.changes.expired;
  }
  return all;
}

std::vector<CaseChanges> CountChangesOfCases(const Audit& audit) {
  std::vector<CaseChanges> cases;
  std::map<std::string_view, std::size_t> places;
  const auto of = [&](const std::string& name) -> CaseChanges& {
    const auto [place, fresh] = places.try_emplace(name, cases.size());
    if (fresh) cases.push_back({name, {}, 0});
    return cases[place->second];
  };
  for (const Case& one : audit.cases) {
    CaseChanges& mine = of(one.name);
    for (const Run& run : one.runs) {
      for (const Defect& defect : run.defects) {
        if (IsSuppressed(defect)) ++mine.changes.suppressed;
        else ++mine.changes.defects[defect.change];
        if (defect.suppressed && defect.suppressed->expired) ++mine.changes.expired;
      }
    }
  }
  std::set<std::pair<std::string_view, Mode>> nothing_proved;
  const std::vector<NotProved> not_proved = NothingProved(audit);
  if (audit.comparison) {
    for (const Gone& gone : audit.comparison->gone) of(gone.case_name);
  }
  for (const NotProved& one : not_proved) {
    nothing_proved.emplace(one.case_name, one.mode);
    CaseChanges& mine = of(one.case_name);
    ++mine.not_proved;
    ++mine.changes.defects[Change::NotRun];
  }
  if (audit.comparison) {
    for (const Gone& gone : audit.comparison->gone) {
      const bool counted = gone.change == Change::NotRun && (nothing_proved.contains({gone.case_name, Mode::Unknown}) ||
                                                             nothing_proved.contains({gone.case_name, gone.mode}));
      if (!counted) ++of(gone.case_name).changes.defects[gone.change];
    }
  }
  return cases;
}

Tally TallyOf(const Audit& audit, const std::vector<Listed>& defects) {
  Tally tally;
  std::set<std::string_view> cases;
  for (const Listed& listed : defects) {
    const Defect& defect = *listed.defect;
    if (IsSuppressed(defect)) {
      ++tally.suppressed;
      continue;
    }
    ++tally.defects;
    cases.insert(listed.cases.begin(), listed.cases.end());
    if (defect.change == Change::New) ++tally.fresh;
    if (defect.change == Change::Changed) ++tally.changed;
    if (defect.change == Change::Unchanged) ++tally.unchanged;
    if (defect.suppressed) ++tally.expired;
  }
  if (audit.comparison) {
    const Changes changes = CountChanges(audit);
    tally.fixed = changes.Count(Change::Fixed);
    tally.not_run = changes.Count(Change::NotRun);
  }
  for (const Case& one : audit.cases) {
    if (!NotRun(one).empty() || !std::all_of(one.runs.begin(), one.runs.end(), Proves)) ++tally.unproved;
    for (const Run& run : one.runs) {
      const LeftOut left_out = LeftOutOf(run);
      tally.left_out.over_budget = Plus(tally.left_out.over_budget, left_out.over_budget);
      tally.left_out.beyond_limit = Plus(tally.left_out.beyond_limit, left_out.beyond_limit);
    }
  }
  tally.cases = cases.size();
  return tally;
}

std::string Headline(const Audit& audit, const Tally& tally) {
  std::string compared;
  if (audit.comparison) {
    Add(", ", tally.fresh, "new", &compared);
    Add(", ", tally.changed, "changed", &compared);
    Add(", ", tally.unchanged, "unchanged", &compared);
  }
  std::string text = tally.defects == 0 ? "no defects" : Plural(tally.defects, "defect");
  if (tally.cases > 1) text += fmt::format(" in {} cases", tally.cases);
  if (!compared.empty()) text += ": " + compared;
  std::string beside;
  Add("; ", tally.expired, tally.expired == 1 ? "suppression has expired" : "suppressions have expired", &beside);
  Add("; ", tally.suppressed, "suppressed", &beside);
  std::string gone;
  Add(", ", tally.fixed, "fixed", &gone);
  Add(", ", tally.not_run, "not run", &gone);
  if (!beside.empty()) text += "; " + beside;
  if (!gone.empty()) text += "; " + gone;
  // A comparison has them in what was not run.
  if (tally.unproved != 0 && !audit.comparison) text += fmt::format("; {} proved nothing", Plural(tally.unproved, "case"));
  if (const std::string cut = Describe(tally.left_out); !cut.empty()) text += "; " + cut;
  return text;
}

std::string CutShort(const Run& run) {
  constexpr std::size_t kMost = 600;
  std::string text = Describe(LeftOutOf(run));
  if (!Proves(run) || ProvesAll(run)) return text;
  return text + (text.empty() ? "" : "; ") + Shortened(ForTerminal(WhyInPart(run.message)), kMost);
}

bool ProvesAll(const Run& run) { return Proves(run) && WhyInPart(run.message).empty(); }

std::string_view NotRun(const Case& one) {
  if (one.runs.empty()) return "not run";
  return one.not_run.empty() ? "" : "not all run";
}

std::string WhyNotRun(const Case& one) {
  if (!one.not_run.empty()) return one.not_run;
  return one.runs.empty() ? "it has no report" : "";
}

bool FailsOn(const Audit& audit, Change change) {
  static const Comparison by_default;
  return (audit.comparison ? *audit.comparison : by_default).fail_on.contains(change);
}

bool Fails(const Audit& audit, const Defect& defect) {
  if (IsSuppressed(defect)) return false;
  if (defect.change == Change::None || FailsOn(audit, defect.change)) return true;
  return defect.suppressed && (!audit.comparison || !audit.comparison->fail_on.empty());
}

bool Proves(const Run& run) { return run.outcome == Outcome::Clean || run.outcome == Outcome::Findings || run.outcome == Outcome::Left; }

std::string NameOf(const Case& one, const Run& run) {
  if (one.name.empty()) return std::string(Name(run.mode));
  return one.runs.size() == 1 ? one.name : one.name + ", " + std::string(Name(run.mode));
}

std::string NameOf(const NotProved& one) {
  std::string name = one.case_name;
  if (one.mode != Mode::Unknown) name += (name.empty() ? "" : ", ") + std::string(Name(one.mode));
  return name.empty() ? "the report" : name;
}

std::string CasesOf(const Listed& listed) {
  std::string text;
  const std::size_t end = std::min(listed.cases.size(), kNamedCases);
  for (std::size_t i = 0; i < end; ++i) text += (i == 0 ? "" : ", ") + listed.cases[i];
  if (end < listed.cases.size()) text += fmt::format(" and {} more", listed.cases.size() - end);
  return text;
}

std::string InCases(const Listed& listed) {
  if (listed.cases.empty()) return {};
  return (listed.cases.size() == 1 ? " (case " : " (cases ") + CasesOf(listed) + ")";
}

namespace {

// FNV-1a of 64 bits, from another seed for each half of the identifier.
void Hash(std::string_view text, std::uint64_t* hash) {
  constexpr std::uint64_t kPrime = 1099511628211U;
  for (const char c : text) *hash = (*hash ^ static_cast<unsigned char>(c)) * kPrime;
  *hash = (*hash ^ 0x100U) * kPrime;  // no byte: "ab", "c" is not "a", "bc"
}

}  // namespace

std::set<ResultKey> ResultKeysOf(const Audit& audit) {
  std::set<ResultKey> keys;
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      const std::string mode(Name(run.mode));
      if (Proves(run)) keys.emplace(one.name, mode, "");
      for (const Defect& defect : run.defects) keys.emplace(one.name, mode, defect.fingerprint);
    }
  }
  return keys;
}

std::string GuidOf(const std::set<ResultKey>& keys) {
  std::uint64_t high = 14695981039346656037U;
  std::uint64_t low = 0x9e3779b97f4a7c15U;
  for (const auto& [name, mode, fingerprint] : keys) {
    for (const std::string& part : {name, mode, fingerprint}) {
      Hash(part, &high);
      Hash(part, &low);
    }
  }
  char text[100];
  const auto bits = [](std::uint64_t value, unsigned shift, std::uint64_t mask) {
    return static_cast<unsigned long long>((value >> shift) & mask);
  };
  std::snprintf(text, sizeof(text), "%08llx-%04llx-5%03llx-%04llx-%012llx", bits(high, 32, 0xffffffff), bits(high, 16, 0xffff),
                bits(high, 0, 0xfff), bits(low, 48, 0x3fff) | 0x8000U, bits(low, 0, 0xffffffffffff));
  return text;
}

}  // namespace cuaudit::report
