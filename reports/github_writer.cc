// SPDX-License-Identifier: MIT
#include "reports/github_writer.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/comparison_text.h"
#include "reports/defect_steps.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/message.h"
#include "reports/text_page.h"

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

void AddCases(const Audit& audit, Annotations* annotations) {
  const Level not_run = FailsOn(audit, Change::NotRun) ? kError : kWarning;
  for (const Case& one : audit.cases) {
    if (const std::string_view what = NotRun(one); !what.empty()) {
      annotations->Add(not_run, "cuaudit: " + std::string(what) + ": " + one.name, {}, Data(WhyNotRun(one), kMessageBytes));
    }
    for (const Run& run : one.runs) {
      if (const std::string cut = CutShort(run); !cut.empty())
        annotations->Add(kWarning, "cuaudit: " + NameOf(one, run) + ": cut short", {}, cut);
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
  if (audit.comparison) {
    for (const NotProved& one : Missing(audit)) {
      annotations->Add(not_run, "cuaudit: not run: " + NameOf(one), {}, Data("the base has it: " + one.why, kMessageBytes));
    }
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

}  // namespace cuaudit::report
