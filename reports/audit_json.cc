// SPDX-License-Identifier: MIT
#include "reports/audit_json.h"

#include <nlohmann/json.hpp>

#include "reports/message.h"

namespace cuaudit::report {
namespace {

using Json = nlohmann::ordered_json;

Json OfCase(const IndexedCase& one) {
  Json row = {{"name", one.name}, {"tags", one.tags}, {"reports", one.reports}};
  if (!one.trials.empty()) row["trials"] = one.trials;
  if (!one.not_run.empty()) row["not_run"] = one.not_run;
  if (!one.left_out.empty()) row["left_out"] = one.left_out;
  return row;
}

Json OfComparison(const Comparison& comparison) {
  Json gone = Json::array();
  for (const Gone& one : comparison.gone) {
    Json row = {{"change", words::Name(one.change)}};
    if (!one.because.empty()) row["because"] = one.because;
    row["case"] = one.case_name;
    row["mode"] = Name(one.mode);
    row["fingerprint"] = one.fingerprint;
    row["rule"] = words::Name(one.rule);
    row["title"] = one.title;
    gone.push_back(std::move(row));
  }
  Json not_run = Json::array();
  for (const NotProved& one : comparison.not_run) {
    not_run.push_back({{"case", one.case_name}, {"mode", Name(one.mode)}, {"because", one.why}});
  }
  Json fail_on = Json::array();
  for (const Change change : comparison.fail_on) fail_on.push_back(words::Name(change));
  Json json{{"base", comparison.base},
            {"base_guid", comparison.base_guid},
            {"fail_on", std::move(fail_on)},
            {"gone", std::move(gone)},
            {"not_run", std::move(not_run)}};
  if (!comparison.warnings.empty()) json["warnings"] = comparison.warnings;
  return json;
}

}  // namespace

std::string ReportFile(const std::string& case_name, Mode mode) { return case_name + "." + std::string(Name(mode)) + ".json"; }

std::string TrialsFile(const std::string& case_name) { return case_name + ".trials.jsonl"; }

bool WriteAuditIndex(const AuditIndex& index, std::ostream& out) {
  Json cases = Json::array();
  for (const IndexedCase& one : index.cases) cases.push_back(OfCase(one));
  Json root = {{"schema", kAuditSchema}, {"cases", std::move(cases)}};
  if (index.comparison.has_value()) root["comparison"] = OfComparison(*index.comparison);
  root["unused_suppressions"] = index.unused_suppressions;
  root["header"] = {{"generated", index.generated}, {"tool_version", index.tool_version}};
  if (!index.project.empty()) root["header"]["project"] = index.project;
  out << root.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return out.good();
}

}  // namespace cuaudit::report
