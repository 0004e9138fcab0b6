// SPDX-License-Identifier: MIT
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/json_text.h"
#include "reports/message.h"
#include "reports/text_page.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kMostAnnotations = 10;  // annotations of one level in one step
constexpr std::size_t kTitleBytes = 200;      // bytes
constexpr std::size_t kMessageBytes = 1000;
constexpr std::size_t kCommandBytes = 4000;

enum Level : std::uint8_t { kError, kWarning, kNotice, kLevels };
constexpr std::array<std::string_view, kLevels> kLevelWords = {"error", "warning", "notice"};

// Text of a command: control characters are gone, so only '%' is left to escape. Of a property, ':' and ',' as well.
std::string PercentEscaped(std::string_view text, std::string_view also) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    if (c == '%' || also.find(c) != std::string_view::npos) {
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Data(std::string_view text, std::size_t most) { return PercentEscaped(Shortened(text, most), ""); }
std::string Property(std::string_view text, std::size_t most) { return PercentEscaped(Shortened(text, most), ":,"); }

struct Annotations {
  std::array<std::vector<std::string>, kLevels> lines;
  std::array<std::size_t, kLevels> all{};

  // `lines_of_text` are escaped and may be joined by %0A.
  void Add(Level level, std::string_view title, const std::optional<SourcePlace>& place, std::string_view text) {
    if (++all[level] > kMostAnnotations) return;
    std::string line = "::" + std::string(kLevelWords[level]) + " ";
    if (place) line += "file=" + Property(place->path, kCommandBytes) + ",line=" + std::to_string(place->line) + ",";
    line += "title=" + Property(title, kTitleBytes) + "::" + std::string(text);
    lines[level].push_back(std::move(line));
  }
};

// `fails`: it makes the comparison fail.
void AddDefect(const SourceRoot& root, const Listed& listed, bool fails, Annotations* annotations) {
  const Run& run = *listed.run;
  const Defect& defect = *listed.defect;
  std::string title = "cuaudit";
  if (defect.change != Change::None) title += ", " + std::string(words::Row(defect.change).title);
  title += ": " + RulesOf(run, defect);
  if (const std::string amount = AmountOf(run, defect); !amount.empty()) title += ": " + amount;
  std::string text = Data(Sentence(run, defect) + InCases(listed), kMessageBytes);
  const std::optional<SourcePlace> place = PlaceOf(root, run, defect);
  const Frame* const frame = FrameOf(run, defect);
  if (!place && frame != nullptr) text += "%0Aat " + Data(Qualified(*frame), kMessageBytes);
  for (const TakenFor& one : defect.taken_for) text += "%0A" + Data(Describe(run, defect, one), kMessageBytes);
  if (defect.suppressed) text += "%0A" + Data(SuppressionOf(defect), kMessageBytes);
  if (const std::string& command = RootOf(run, defect).reproduce; !command.empty()) text += "%0Areproduce: " + Data(command, kCommandBytes);
  annotations->Add(fails ? kError : kNotice, title, place, text);
}

// The trials that --limit or --budget left out are no reproach. Anything else that was not seen is one.
const char* HowCut(const Run& run) { return Proves(run) && !ProvesAll(run) ? "in part" : "cut short"; }

void AddCases(const Audit& audit, Annotations* annotations) {
  const Level not_run = FailsOn(audit, Change::NotRun) ? kError : kWarning;
  for (const Case& one : audit.cases) {
    if (const std::string_view what = NotRun(one); !what.empty()) {
      annotations->Add(not_run, "cuaudit: " + std::string(what) + ": " + one.name, {}, Data(WhyNotRun(one), kMessageBytes));
    }
    for (const Run& run : one.runs) {
      if (const std::string cut = CutShort(run); !cut.empty())
        annotations->Add(audit.comparison && Proves(run) && !ProvesAll(run) ? not_run : kWarning,
                         "cuaudit: " + NameOf(one, run) + ": " + HowCut(run), {}, Data(cut, kMessageBytes));
      if (Proves(run)) continue;
      annotations->Add(run.outcome == Outcome::Error ? kError : not_run, "cuaudit: " + NameOf(one, run) + ": nothing is proved", {},
                       Data(MessageLine(run), kMessageBytes));
    }
  }
  if (audit.comparison) {
    for (const Gone& gone : audit.comparison->gone) {
      if (gone.change == Change::Fixed) {
        if (FailsOn(audit, Change::Fixed))
          annotations->Add(kError, "cuaudit: fixed: " + gone.fingerprint, {}, Data(gone.title, kMessageBytes));
        continue;
      }
      annotations->Add(not_run, "cuaudit: not run: " + gone.fingerprint, {},
                       Data("the base has it, and nobody looked for it: " + gone.title + (gone.because.empty() ? "" : ": " + gone.because),
                            kMessageBytes));
    }
  }
  for (const NotProved& one : Missing(audit)) {
    annotations->Add(not_run, "cuaudit: not run: " + NameOf(one), {}, Data("the base has it: " + one.why, kMessageBytes));
  }
  for (const std::string& entry : audit.unused_suppressions) {
    annotations->Add(kWarning, "cuaudit: unused suppression", {}, Data(entry + ": no defect matches it", kMessageBytes));
  }
}

}  // namespace

bool WriteGithub(const Audit& audit, const SourceRoot& root, std::ostream& out) {
  Annotations annotations;
  const std::vector<Listed> defects = ListDefects(audit);
  for (const Listed& listed : defects) {
    if (!IsSuppressed(*listed.defect)) AddDefect(root, listed, Fails(audit, *listed.defect), &annotations);
  }
  AddCases(audit, &annotations);
  std::size_t missing = 0;
  for (std::size_t level = 0; level < kLevels; ++level) missing += annotations.all[level] - annotations.lines[level].size();
  std::vector<std::string>& notices = annotations.lines[kNotice];
  const std::string headline = Headline(audit, TallyOf(audit, defects));
  if (missing != 0 && notices.size() == kMostAnnotations) {  // the last place is for the line that says so
    notices.pop_back();
    ++missing;
  }
  for (const std::vector<std::string>& lines : annotations.lines) {
    for (const std::string& line : lines) out << line << "\n";
  }
  if (missing != 0)
    out << "::notice title=cuaudit::" << Data(headline, kMessageBytes) << "; " << missing << " more are in the step summary\n";
  out.flush();
  return out.good();
}

namespace {

constexpr std::size_t kDescriptionBytes = 1000;  // bytes

// A lost object is a major issue; a call that is wrong or a program that dies is a critical one.
std::string_view SeverityOf(const Finding& root, const Defect& defect) {
  if (IsSuppressed(defect)) return "info";
  return words::IsLoss(root.rule) ? "major" : "critical";
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
      if (const std::string cut = CutShort(run); !cut.empty())
        add(Aside(name + ": " + cut, "cut_short", std::string("cuaudit: ") + HowCut(run) + ": " + name));
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
  WriteEntries(IssuesOf(audit, root), OnOneLine, "\n  ", "\n]", out);
  out << "\n";
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
