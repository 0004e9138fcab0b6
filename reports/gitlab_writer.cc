// SPDX-License-Identifier: MIT
#include "reports/gitlab_writer.h"

#include <optional>
#include <string>
#include <string_view>
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
  if (!place) place = SourcePlace{frame == nullptr || frame->module.empty() ? "unknown" : frame->module, 1};
  if (defect.suppressed) text += " " + SuppressionOf(defect);
  return Json{{"description", Shortened(text, kDescriptionBytes)},
              {"check_name", words::Name(finding.rule)},
              {"fingerprint", defect.fingerprint.empty() ? Headline(run, defect) : defect.fingerprint},
              {"severity", SeverityOf(finding, defect)},
              {"location", {{"path", ForTerminal(place->path)}, {"lines", {{"begin", place->line}}}}}};
}

}  // namespace

bool WriteGitlab(const Audit& audit, const SourceRoot& root, std::ostream& out) {
  const std::vector<Listed> defects = ListDefects(audit);
  WriteEntries(
      defects, [&root](const Listed& one) { return Issue(root, one); }, "\n  ", "\n]", out);
  out << "\n";
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
