// SPDX-License-Identifier: MIT
#include "reports/gitlab_writer.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/defect_steps.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/json_text.h"
#include "reports/text_writer.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kDescriptionBytes = 1000;  // bytes

// A lost object is a major issue; a call that is wrong or a program that dies is a critical one.
std::string_view SeverityOf(const Finding& root, const Defect& defect) {
  if (IsSuppressed(defect)) return "info";
  return WasLost(root.rule) ? "major" : "critical";
}

Json Issue(const SourceRoot& root, const Listed& listed) {
  const Run& run = *listed.run;
  const Defect& defect = *listed.defect;
  const Finding& finding = RootOf(run, defect);
  const Frame* const frame = FrameOf(run, defect);
  std::string text = Sentence(run, defect) + InCases(listed);
  std::optional<SourcePlace> place = PlaceOf(root, run, defect);
  if (!place && frame != nullptr) text += " At " + Qualified(*frame) + ".";
  for (const TakenFor& one : defect.taken_for) text += " Compared: " + Describe(run, defect, one) + ".";
  if (!place) place = SourcePlace{frame == nullptr || frame->module.empty() ? "unknown" : frame->module, 1};
  if (defect.suppressed) text += " " + SuppressionOf(defect);
  return Json{{"description", Shortened(text, kDescriptionBytes)},
              {"check_name", words::Name(finding.rule)},
              {"fingerprint", defect.fingerprint.empty() ? Headline(run, defect) : defect.fingerprint},
              {"severity", SeverityOf(finding, defect)},
              {"location", {{"path", ForTerminal(place->path)}, {"lines", {{"begin", place->line}}}}}};
}

// Issues that a merge request does not show as fixed, or that say what was not looked at.
Json Aside(const std::string& text, std::string_view check, const std::string& fingerprint) {
  return Json{{"description", Shortened(text, kDescriptionBytes)},
              {"check_name", check},
              {"fingerprint", fingerprint},
              {"severity", "info"},
              {"location", {{"path", "unknown"}, {"lines", {{"begin", 1}}}}}};
}

Json Issue(const Gone& gone) {
  const std::string what = gone.title.empty() ? std::string(words::Row(gone.rule).title) : gone.title;
  std::string text = "Nobody looked for it: " + what + (gone.case_name.empty() ? "" : " (case " + gone.case_name + ")");
  if (!gone.because.empty()) text += ": " + gone.because;
  return Aside(text, words::Name(gone.rule), gone.fingerprint.empty() ? gone.case_name + ": " + what : gone.fingerprint);
}

std::vector<Json> IssuesOf(const Audit& audit, const SourceRoot& root) {
  std::vector<Json> issues;
  std::set<std::string> known;  // GitLab takes each fingerprint once
  const auto add = [&](Json issue) {
    if (known.insert(issue["fingerprint"].get<std::string>()).second) issues.push_back(std::move(issue));
  };
  for (const Listed& one : ListDefects(audit)) add(Issue(root, one));
  for (const Case& one : audit.cases) {
    const std::string_view what = NotRun(one);
    if (!what.empty())
      add(Aside("Case " + one.name + " was " + std::string(what) + ": " + WhyNotRun(one), "not_run", "cuaudit: not run: " + one.name));
    for (const Run& run : one.runs) {
      const std::string name = NameOf(one, run);
      if (const std::string cut = CutShort(run); !cut.empty()) add(Aside(name + ": " + cut, "cut_short", "cuaudit: cut short: " + name));
    }
  }
  if (audit.comparison) {
    for (const Gone& gone : audit.comparison->gone) {
      if (gone.change == Change::NotRun) add(Issue(gone));
    }
    for (const NotProved& one : audit.comparison->not_run) {
      add(Aside("The base has it, and it was not run: " + NameOf(one) + ": " + one.why, "not_run", "cuaudit: not run: " + NameOf(one)));
    }
  }
  return issues;
}

}  // namespace

bool WriteGitlab(const Audit& audit, const SourceRoot& root, std::ostream& out) {
  WriteEntries(
      IssuesOf(audit, root), [](const Json& one) { return one; }, "\n  ", "\n]", out);
  out << "\n";
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
