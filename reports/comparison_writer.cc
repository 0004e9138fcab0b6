// SPDX-License-Identifier: MIT
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/frames.h"
#include "reports/message.h"
#include "reports/reasons_json.h"
#include "reports/text_page.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

// "player, sweep: "
std::string Within(const std::string& case_name, Mode mode) {
  std::string within = case_name;
  if (mode != Mode::Unknown) within += (within.empty() ? "" : ", ") + std::string(Name(mode));
  return ForTerminal(within);
}

void AppendCompared(const Run& run, const Defect& defect, const std::string& within, std::size_t number, Page* page) {
  const Finding& root = RootOf(run, defect);
  const std::string amount = AmountOf(run, defect);
  page->Line("");
  page->Line("{:>3}. {} {}{} ({})", number, page->Paint(kRed, words::Row(defect.change).title), RulesOf(run, defect),
             amount.empty() ? "" : ": " + ForTerminal(amount), within);
  const bool seen = root.acquired.call.empty();
  const Acquired place = seen ? Acquired{root.where, root.where_stack} : root.acquired;
  if (!place.call.empty()) {
    const std::string origin = DescribeOrigin(place.stack);
    page->Line("     {} {}{}", seen ? "seen at" : "acquired by", ForTerminal(place.call),
               origin.empty() ? "" : " < " + ForTerminal(origin));
  }
  if (const std::string blame = BlameOf(run, defect); !blame.empty()) page->Line("     {}", page->Paint(kBold, ForTerminal(blame)));
  if (!defect.was.empty()) page->Line("     was: {}", ForTerminal(defect.was));
  for (const TakenFor& one : defect.taken_for) page->Line("     {}", ForTerminal(Describe(run, defect, one)));
  if (defect.suppressed) {
    const Suppressed& one = *defect.suppressed;
    page->Line("     {}", ForTerminal(one.expired ? fmt::format("its suppression expired on {}: {}, {} ({})", one.until, one.owner,
                                                                one.reason, one.entry)
                                                  : SuppressionOf(defect)));
  }
  if (!root.reproduce.empty()) page->Line("     reproduce {}", ForTerminal(root.reproduce));
  if (!defect.fingerprint.empty()) page->Line("     {}", page->Paint(kDim, "fingerprint " + ForTerminal(defect.fingerprint)));
}

// The defects that are asked for.
template <typename Are>
void AppendThose(const Audit& audit, const Are& are, std::size_t* number, Page* page) {
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      for (const Defect& defect : run.defects) {
        if (are(defect)) AppendCompared(run, defect, Within(one.name, run.mode), ++*number, page);
      }
    }
  }
}

// Numbers for each case, as in the first line. One case has that line for its own.
void AppendCounts(const std::vector<CaseChanges>& cases, Page* page) {
  constexpr std::size_t kNameBytes = 40;
  if (cases.size() < 2) return;
  std::size_t width = 4;
  for (const CaseChanges& one : cases) width = std::max(width, std::min(one.case_name.size(), kNameBytes));
  page->Line("");
  page->Line("  {:<{}}  {:>6}  {:>7}  {:>7}  {:>6}  {:>9}  {:>10}  {:>7}", "case", width, "new", "changed", "not run", "fixed", "unchanged",
             "suppressed", "expired");
  for (const CaseChanges& one : cases) {
    const auto number = [&one](Change change) { return one.changes.Count(change); };
    page->Line("  {:<{}}  {:>6}  {:>7}  {:>7}  {:>6}  {:>9}  {:>10}  {:>7}", Shortened(one.case_name, kNameBytes), width,
               number(Change::New), number(Change::Changed), number(Change::NotRun), number(Change::Fixed), number(Change::Unchanged),
               one.changes.suppressed, one.changes.expired);
  }
}

void AppendGone(const Comparison& comparison, const std::vector<NotProved>& not_proved, Page* page) {
  const bool some =
      std::any_of(comparison.gone.begin(), comparison.gone.end(), [](const Gone& gone) { return gone.change == Change::NotRun; });
  if (!some && not_proved.empty()) return;
  page->Line("");
  page->Line("{}:", page->Paint(kYellow, words::Row(Change::NotRun).title));
  for (const NotProved& one : not_proved) page->Line("  {}: {}", Within(one.case_name, one.mode), ForTerminal(one.why));
  for (const Gone& gone : comparison.gone) {
    if (gone.change != Change::NotRun) continue;
    page->Line("  {}: {}", Within(gone.case_name, gone.mode), ForTerminal(gone.title));
    page->Line("     {}", ForTerminal(gone.because));
    page->Line("     {}", page->Paint(kDim, "fingerprint " + ForTerminal(gone.fingerprint)));
  }
}

// They make no comparison fail, as they make no audit fail, and nobody shall take them for tried.
void AppendLeftOut(const Audit& audit, Page* page) {
  bool first = true;
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      const std::string cut = Describe(LeftOutOf(run));
      if (cut.empty() || !ProvesAll(run)) continue;
      if (first) page->Line("");
      if (first) page->Line("{}:", page->Paint(kYellow, "cut short"));
      page->Line("  {}: {}", Within(one.name, run.mode), cut);
      first = false;
    }
  }
}

// Unchanged defects are only counted, but for those that are known by a guess: a person can check it.
void AppendTaken(const Audit& audit, Page* page) {
  constexpr std::size_t kMost = 20;
  std::size_t count = 0;
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      for (const Defect& defect : run.defects) {
        const bool told = defect.change != Change::Unchanged || (defect.suppressed && defect.suppressed->expired);
        if (told || defect.taken_for.empty() || ++count > kMost) continue;
        if (count == 1) page->Line("");
        if (count == 1) page->Line("unchanged, by another fingerprint:");
        page->Line("  {}: {} {}", Within(one.name, run.mode), ForTerminal(Headline(run, defect)),
                   page->Paint(kDim, ForTerminal(defect.fingerprint)));
        for (const TakenFor& base : defect.taken_for) page->Line("     {}", ForTerminal(Describe(run, defect, base)));
      }
    }
  }
  if (count > kMost) page->Line("  … and {} more (--format json has all)", count - kMost);
}

void AppendFixed(const Comparison& comparison, Page* page) {
  constexpr std::size_t kMost = 20;
  std::size_t count = 0;
  for (const Gone& gone : comparison.gone) {
    if (gone.change != Change::Fixed || ++count > kMost) continue;
    if (count == 1) page->Line("");
    if (count == 1) page->Line("{}:", page->Paint(kGreen, words::Row(Change::Fixed).title));
    page->Line("  {}: {}", Within(gone.case_name, gone.mode), ForTerminal(gone.title));
  }
  if (count > kMost) page->Line("  … and {} more", count - kMost);
}

}  // namespace

bool WriteComparisonText(const Audit& audit, std::ostream& out, bool colour) {
  Page page;
  page.colour = colour;
  const Comparison none;
  const Comparison& comparison = audit.comparison ? *audit.comparison : none;
  const Changes changes = CountChanges(audit);
  const std::vector<NotProved> not_proved = NothingProved(audit);
  std::string counts;
  for (const Change change : {Change::New, Change::Changed, Change::NotRun, Change::Fixed, Change::Unchanged}) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", changes.Count(change), words::Row(change).title);
  }
  if (changes.suppressed != 0) counts += fmt::format(", {} suppressed", changes.suppressed);
  if (changes.expired != 0)
    counts += fmt::format(", {} {} expired", changes.expired, changes.expired == 1 ? "suppression has" : "suppressions have");
  page.Line("cuaudit compare: {}", counts);
  page.Line("  base     {}", ForTerminal(comparison.base));
  for (const std::string& warning : comparison.warnings) page.Line("  warning  {}", ForTerminal(warning));
  AppendCounts(CountChangesOfCases(audit), &page);
  std::size_t number = 0;
  const auto changed_to = [](Change change) {
    return [change](const Defect& defect) { return defect.change == change && !IsSuppressed(defect); };
  };
  AppendThose(audit, changed_to(Change::New), &number, &page);
  AppendThose(audit, changed_to(Change::Changed), &number, &page);
  const auto expired = [](const Defect& defect) {  // the new and the changed ones are told already
    return defect.change != Change::New && defect.change != Change::Changed && defect.suppressed && defect.suppressed->expired;
  };
  AppendThose(audit, expired, &number, &page);
  AppendGone(comparison, not_proved, &page);
  AppendLeftOut(audit, &page);
  AppendFixed(comparison, &page);
  AppendTaken(audit, &page);
  out << page.text;
  out.flush();
  return out.good();
}

namespace {

using Ordered = nlohmann::ordered_json;

Ordered CountsOf(const Changes& changes, std::uint64_t not_proved) {
  Ordered counts = Ordered::object();
  for (const Change change : {Change::New, Change::Changed, Change::Unchanged, Change::Fixed, Change::NotRun}) {
    counts[std::string(words::Name(change))] = changes.Count(change);
  }
  counts["suppressed"] = changes.suppressed;
  counts["expired"] = changes.expired;
  counts["not_proved"] = not_proved;
  return counts;
}

Ordered Compared(const std::string& case_name, const Run& run, const Defect& defect) {
  const Finding& root = RootOf(run, defect);
  const bool seen = root.acquired.call.empty();
  Ordered json{{"change", words::Name(defect.change)},
               {"case", case_name},
               {"mode", Name(run.mode)},
               {"fingerprint", defect.fingerprint},
               {"rule", words::Name(root.rule)},
               {"amount", AmountOf(run, defect)},
               {"call", seen ? root.where : root.acquired.call},
               {"place", DescribeOrigin(seen ? root.where_stack : root.acquired.stack)},
               {"blame", BlameOf(run, defect)},
               {"reproduce", root.reproduce}};
  AddJudged(defect, &json);
  return json;
}

}  // namespace

bool WriteComparisonJson(const Audit& audit, std::ostream& out) {
  const std::vector<NotProved> not_proved = NothingProved(audit);
  Ordered json{{"schema", kComparisonSchema}, {"base", audit.comparison ? audit.comparison->base : ""}};
  json["counts"] = CountsOf(CountChanges(audit), not_proved.size());
  json["cases"] = Ordered::array();
  for (const CaseChanges& one : CountChangesOfCases(audit)) {
    json["cases"].push_back({{"case", one.case_name}, {"counts", CountsOf(one.changes, one.not_proved)}});
  }
  json["fail_on"] = Ordered::array();
  if (audit.comparison) {
    for (const Change change : audit.comparison->fail_on) json["fail_on"].push_back(words::Name(change));
  }
  json["defects"] = Ordered::array();
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      for (const Defect& defect : run.defects) json["defects"].push_back(Compared(one.name, run, defect));
    }
  }
  json["gone"] = Ordered::array();
  if (audit.comparison) {
    for (const Gone& gone : audit.comparison->gone) json["gone"].push_back(GoneToJson(gone));
  }
  if (audit.comparison && !audit.comparison->warnings.empty()) json["warnings"] = audit.comparison->warnings;
  json["not_proved"] = Ordered::array();
  for (const NotProved& one : not_proved) {
    json["not_proved"].push_back(Ordered{{"case", one.case_name}, {"mode", Name(one.mode)}, {"why", one.why}});
  }
  json["header"] = Ordered{{"generated", audit.generated}, {"tool_version", audit.tool_version}};
  out << json.dump(2, ' ', false, Ordered::error_handler_t::replace) << "\n";
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
