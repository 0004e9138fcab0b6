// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "reports/comparison_text.h"
#include "reports/defect_words.h"
#include "reports/json_findings.h"
#include "reports/message.h"
#include "reports/text_writer.h"

namespace cuaudit::report {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered CountsOf(const Changes& changes, std::uint64_t not_proved) {
  Ordered counts = Ordered::object();
  for (const Change change : {Change::New, Change::Changed, Change::Unchanged, Change::Fixed, Change::NotRun}) {
    const auto found = changes.defects.find(change);
    counts[std::string(words::Name(change))] = found == changes.defects.end() ? 0 : found->second;
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
  if (!defect.was.empty()) json["was"] = defect.was;
  if (!defect.taken_for.empty()) json["taken_for"] = TakenForToJson(defect.taken_for);
  if (const auto& one = defect.suppressed) {
    json["suppressed"] =
        Ordered{{"reason", one->reason}, {"owner", one->owner}, {"until", one->until}, {"expired", one->expired}, {"entry", one->entry}};
  }
  return json;
}

Ordered OfGone(const Gone& gone) {
  Ordered json{{"change", words::Name(gone.change)}};
  if (!gone.because.empty()) json["because"] = gone.because;
  json["case"] = gone.case_name;
  json["mode"] = Name(gone.mode);
  json["fingerprint"] = gone.fingerprint;
  json["rule"] = words::Name(gone.rule);
  json["title"] = gone.title;
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
    for (const Gone& gone : audit.comparison->gone) json["gone"].push_back(OfGone(gone));
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
