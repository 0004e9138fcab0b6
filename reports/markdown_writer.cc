// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/frames.h"
#include "reports/message.h"
#include "reports/text_page.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kCellBytes = 160;      // bytes of a name in a table or in a headline
constexpr std::size_t kSentenceBytes = 600;  // bytes of a sentence below it
constexpr std::size_t kLineBytes = 2000;     // bytes of a line in a fence
constexpr std::size_t kShownCommandBytes = 20000;
constexpr std::size_t kEndBytes = 200;  // bytes kept for the line that says what is missing

// A page that does not grow beyond a size. What does not fit is left out whole.
struct Sheet {
  std::string text;
  std::size_t most;
  std::size_t left_out = 0;  // blocks

  void Add(const std::string& block) {
    if (left_out == 0 && text.size() + block.size() + kEndBytes <= most) {
      text += block;
    } else {
      ++left_out;
    }
  }
};

std::string Code(std::string_view text) { return MarkdownCode(text, kCellBytes); }

std::string_view ChangeOf(const Defect& defect) {
  if (IsSuppressed(defect)) return "suppressed";
  return defect.change == Change::None ? std::string_view() : words::Row(defect.change).title;
}

void AppendComparison(const Audit& audit, Sheet* sheet) {
  if (!audit.comparison) return;
  const Comparison& comparison = *audit.comparison;
  if (comparison.gone.empty() && comparison.not_run.empty()) {
    sheet->Add("Compared with " + Code(comparison.base) + ": the base has no defect that this audit does not show.\n\n");
    return;
  }
  sheet->Add("Compared with " + Code(comparison.base) + ", which also has:\n\n| | case | defect | why |\n| --- | --- | --- | --- |\n");
  for (const Gone& gone : comparison.gone) {
    const std::string title = gone.title.empty() ? std::string(words::Row(gone.rule).title) : gone.title;
    sheet->Add(fmt::format("| {} | {} | {} | {} |\n", words::Row(gone.change).title, Code(gone.case_name), Code(title),
                           gone.because.empty() ? "" : Code(gone.because)));
  }
  for (const NotProved& one : Missing(audit)) {
    sheet->Add(fmt::format("| {} | {} | | {} |\n", words::Row(Change::NotRun).title, Code(NameOf(one)), Code(one.why)));
  }
  sheet->Add("\n");
}

std::string CoverageOf(const Run& run) {
  if (!run.coverage) return {};
  const std::uint64_t tenths = PerMille(*run.coverage);
  return fmt::format("{}.{} %", tenths / 10, tenths % 10);
}

void AppendCases(const Audit& audit, Sheet* sheet) {
  sheet->Add("| report | outcome | driver | calls | trials | coverage | defects | |\n| --- | --- | --- | --: | --: | --: | --: | --- |\n");
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      std::string outcome(OutcomeName(run));
      std::replace(outcome.begin(), outcome.end(), '_', ' ');
      sheet->Add(fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", Code(NameOf(one, run)), outcome, DriverInWords(run.driver.kind),
                             run.totals.calls, run.totals.trials, CoverageOf(run), run.defects.size(), Code(MessageLine(run))));
    }
    if (const std::string_view what = NotRun(one); !what.empty()) {
      sheet->Add(fmt::format("| {} | {} | | | | | | {} |\n", Code(one.name), what, Code(WhyNotRun(one))));
    }
  }
  sheet->Add("\n");
}

using Numbers = std::map<std::string_view, std::size_t>;  // fingerprint -> place in the list of defects

Numbers NumbersOf(const std::vector<Listed>& defects) {
  Numbers numbers;
  for (std::size_t i = 0; i < defects.size(); ++i) {
    if (!defects[i].defect->fingerprint.empty()) numbers.emplace(defects[i].defect->fingerprint, i);
  }
  return numbers;
}

// In the order in which the tables of the cases name them, so that a reader meets 1, 2, 3; in each table what is new comes first.
std::vector<Listed> AsTheCasesNameThem(const Audit& audit, const std::vector<Listed>& defects) {
  const Numbers numbers = NumbersOf(defects);
  std::set<std::size_t> left;
  for (std::size_t i = 0; i < defects.size(); ++i) left.insert(i);
  std::vector<Listed> ordered;
  const auto take = [&](const std::set<std::size_t>& places) {
    for (const std::size_t place : places) {
      if (left.erase(place) != 0) ordered.push_back(defects[place]);
    }
  };
  for (const Case& one : audit.cases) {
    std::set<std::size_t> places;
    for (const Run& run : one.runs) {
      for (const Defect& defect : run.defects) {
        if (const auto found = numbers.find(defect.fingerprint); found != numbers.end()) places.insert(found->second);
      }
    }
    take(places);
  }
  take(std::set<std::size_t>(left));
  return ordered;
}

// One row for each defect of the case, with the number of its fold.
void AppendCase(const Case& one, const Numbers& numbers, Sheet* sheet) {
  const auto has_defects = [](const Run& run) { return !run.defects.empty(); };
  if (std::none_of(one.runs.begin(), one.runs.end(), has_defects)) return;
  if (!one.name.empty()) sheet->Add("### " + Code(one.name) + "\n\n");
  sheet->Add("| # | | rule | lost or wrong | who | trials |\n| --: | --- | --- | --- | --- | --: |\n");
  std::multimap<std::size_t, std::string> rows;  // the place in the list of defects, 0: it has none
  for (const Run& run : one.runs) {
    for (const Defect& defect : run.defects) {
      const auto found = numbers.find(defect.fingerprint);
      const std::size_t number = found == numbers.end() ? 0 : found->second + 1;
      const std::string amount = AmountOf(run, defect);
      rows.emplace(number, fmt::format("| {} | {} | {} | {} | {} | {} |\n", number == 0 ? "" : std::to_string(number), ChangeOf(defect),
                                       RulesOf(run, defect), Code(amount.empty() ? RootOf(run, defect).title : amount),
                                       Code(BlameOf(run, defect)), defect.trials));
    }
  }
  for (const auto& [number, row] : rows) sheet->Add(row);
  sheet->Add("\n");
}

void AppendLines(const Step& step, std::string* lines) {
  *lines += Shortened(step.says, kLineBytes) + "\n";
  for (const Frame& frame : ShownFrames(step.stack)) *lines += "  " + Shortened(Describe(frame), kLineBytes) + "\n";
}

std::string Fold(std::size_t number, const Listed& listed) {
  const Run& run = *listed.run;
  const Defect& defect = *listed.defect;
  const Finding& root = RootOf(run, defect);
  const std::string_view change = ChangeOf(defect);
  std::string text = fmt::format("<details><summary>{}. {}{}{}</summary>\n\nWhat: {}\n", number, change, change.empty() ? "" : ": ",
                                 MarkdownCode(Headline(run, defect), kCellBytes), MarkdownCode(Sentence(run, defect), kSentenceBytes));
  if (!defect.was.empty()) text += "\nIn the base: " + MarkdownCode(defect.was, kSentenceBytes) + "\n";
  for (const TakenFor& one : defect.taken_for) text += "\nCompared: " + MarkdownCode(Describe(run, defect, one), kSentenceBytes) + "\n";
  if (defect.suppressed) text += "\nSuppression: " + MarkdownCode(SuppressionOf(defect), kSentenceBytes) + "\n";
  std::string lines;
  for (const Step& step : StepsOf(run, defect)) {
    if (step.whole) AppendLines(step, &lines);
  }
  if (const std::optional<Step> release = ReleaseOf(run, defect)) AppendLines(*release, &lines);
  if (!lines.empty()) text += "\n" + MarkdownFence(lines, "text");
  if (!root.reproduce.empty()) text += "\nReproduce:\n\n" + MarkdownFence(Shortened(root.reproduce, kShownCommandBytes) + "\n", "sh");
  if (!defect.fingerprint.empty()) text += "\nFingerprint: " + Code(defect.fingerprint) + "\n";
  if (listed.cases.size() > 1) text += "\nCases: " + Code(CasesOf(listed)) + "\n";
  return text + "\n</details>\n\n";
}

void AppendSuppressions(const Audit& audit, Sheet* sheet) {
  if (audit.unused_suppressions.empty()) return;
  sheet->Add("Suppressions that no defect matches:\n\n");
  for (const std::string& entry : audit.unused_suppressions)
    sheet->Add("- <code>" + ForMarkdown(Shortened(entry, kCellBytes)) + "</code>\n");
  sheet->Add("\n");
}

}  // namespace

bool WriteMarkdown(const Audit& audit, std::ostream& out, const MarkdownOptions& options) {
  const std::vector<Listed> defects = AsTheCasesNameThem(audit, ListDefects(audit));
  const Numbers numbers = NumbersOf(defects);
  Sheet sheet{{}, options.most_bytes};
  sheet.Add("## cuaudit: " + Headline(audit, TallyOf(audit, defects)) + "\n\n");
  AppendComparison(audit, &sheet);
  AppendCases(audit, &sheet);
  AppendSuppressions(audit, &sheet);
  for (const Case& one : audit.cases) AppendCase(one, numbers, &sheet);
  for (std::size_t i = 0; i < defects.size(); ++i) sheet.Add(Fold(i + 1, defects[i]));
  if (sheet.left_out != 0) sheet.text += "\nThe rest is left out: the page would be too long.\n";
  out << sheet.text;
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
