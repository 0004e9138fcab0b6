// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/html/page_parts.h"
#include "reports/html/place_table.h"
#include "reports/message.h"
#include "reports/reasons_json.h"
#include "reports/run.h"

namespace cuaudit::report::html {
namespace {

using Json = nlohmann::ordered_json;

Json PairsOf(const InWords& counts) {
  Json rows = Json::array();
  for (const auto& [text, count] : counts) rows.push_back(Json::array({text, count}));
  return rows;
}

Json DriverOf(const Driver& driver) {
  return Json{{"kind", Name(driver.kind)}, {"version", driver.version}, {"path", driver.path},
              {"device", driver.device},   {"runtime", driver.runtime}, {"world", driver.world}};
}

Json TotalsOf(const Totals& totals) {
  return Json{{"calls", totals.calls},
              {"sites", totals.sites},
              {"trials", totals.trials},
              {"fired", totals.fired},
              {"verdicts", PairsOf(Words(totals.verdicts))},
              {"skipped", PairsOf(Words(totals.skipped))},
              {"pruned", PairsOf(Words(totals.pruned))}};
}

Json CoverageOf(const Coverage& coverage, PlaceTable* places) {
  Json rows = Json::array();
  for (const NotReached& row : coverage.not_reached) {
    rows.push_back(Json{{"call", row.call},
                        {"code", row.code},
                        {"how", row.how},
                        {"phase", row.phase},
                        {"unwinding", row.unwinding},
                        {"why", Words(row)},
                        {"stack", places->Stack(row.stack)}});
  }
  return Json{{"reachable", coverage.reachable}, {"percent", static_cast<double>(PerMille(coverage)) / 10}, {"rows", std::move(rows)}};
}

Json CyclesOf(const Run& run, PlaceTable* places) {
  Json rows = Json::array();
  for (const CycleRow& row : run.cycle_rows) {
    rows.push_back(Json{{"kind", row.kind},
                        {"place", Json::array({row.acquired.call, places->Stack(row.acquired.stack)})},
                        {"live", row.live},
                        {"trend", Name(row.course.trend)},
                        {"words", Describe(row.course)},
                        {"least", row.course.least},
                        {"most", row.course.most}});
  }
  return Json{{"counts", run.cycle_counts}, {"rows", std::move(rows)}};
}

Json MetersOf(const Meters& meters) {
  Json rows = Json::array();
  for (const Meter& row : meters.rows) {
    rows.push_back(Json{{"name", row.name},
                        {"grows", row.grows},
                        {"per_cycle", row.per_cycle},
                        {"detectable", row.detectable},
                        {"noise", row.noise},
                        {"false_alarms", row.false_alarms},
                        {"windows", row.windows}});
  }
  Json absent = Json::array();
  for (const auto& [name, why] : meters.absent)
    absent.push_back(Json::array({name == kAllMeters ? "memory meters" : name, words::Words(why)}));
  return Json{{"rows", std::move(rows)}, {"absent", std::move(absent)}};
}

Json SequenceOf(const Sequence& sequence, PlaceTable* places) {
  Json at = Json::array();
  for (const CallPlace& place : sequence.places) {
    at.push_back(Json::array({place.call, place.at ? Json(places->Row(*place.at)) : Json(-1)}));
  }
  Json json = SequenceToJson(sequence);
  json["places"] = std::move(at);
  return json;
}

Json FaultOf(const Fault& fault, PlaceTable* places) { return Json::array({fault.text, places->Stack(fault.stack)}); }

// [call, stack]; null when nothing is known of the place.
Json PlaceOf(const Acquired& place, PlaceTable* places) {
  if (place.call.empty() && place.stack.empty()) return nullptr;
  return Json::array({place.call, places->Stack(place.stack)});
}

Json FindingOf(const Finding& finding, PlaceTable* places) {
  Json faults = Json::array();
  if (finding.fault) faults.push_back(FaultOf(*finding.fault, places));
  for (const Fault& fault : finding.then) faults.push_back(FaultOf(fault, places));
  return Json{{"rule", words::Name(finding.rule)},
              {"title", finding.title},
              {"detail", finding.detail},
              {"kind", finding.kind},
              {"count", finding.count},
              {"bytes", finding.bytes},
              {"faults", std::move(faults)},
              {"shrunk", finding.shrunk_from},
              {"acquired", PlaceOf(finding.acquired, places)},
              {"where", PlaceOf({finding.where, finding.where_stack}, places)},
              {"other", PlaceOf(finding.other, places)},
              {"other_is", words::OtherCallOf(finding.rule).is},
              {"fingerprint", finding.fingerprint},
              {"reproduce", finding.reproduce},
              {"trials", finding.trials}};
}

Json RunOf(const Run& run, PlaceTable* places) {
  Json notes = Json::array();
  for (const Finding& note : run.notes) notes.push_back(FindingOf(note, places));
  Json json = {{"mode", Name(run.mode)},           {"outcome", OutcomeName(run)},    {"message", MessageLine(run)},
               {"command", ForShell(run.command)}, {"driver", DriverOf(run.driver)}, {"totals", TotalsOf(run.totals)},
               {"cycles", CyclesOf(run, places)},  {"live", LiveToJson(run.live)},   {"notes", std::move(notes)}};
  if (run.coverage) json["coverage"] = CoverageOf(*run.coverage, places);
  if (run.meters) json["meters"] = MetersOf(*run.meters);
  if (run.sequence) json["sequence"] = SequenceOf(*run.sequence, places);
  return json;
}

Json BlameFunction(const Defect& defect, PlaceTable* places) {
  return defect.blame ? Json(places->Row(defect.blame->function)) : Json(nullptr);
}

// `run` is the number of the report, `first` that of its first finding among all findings of the page.
Json DefectOf(const Run& run, const Defect& defect, std::size_t number, std::size_t first, PlaceTable* places) {
  Json members = Json::array();
  Json rules = Json::array();
  for (const Member& member : defect.members) {
    const Finding& shows = run.findings[member.findings.front()];
    Json findings = Json::array();
    for (const std::size_t finding : member.findings) findings.push_back(first + finding);
    members.push_back(Json{{"count", member.count}, {"bytes", member.bytes}, {"findings", std::move(findings)}});
    const std::string_view rule = words::Name(shows.rule);
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
  }
  Json json = {{"run", number},
               {"fingerprint", defect.fingerprint},
               {"change", words::Name(defect.change)},
               {"was", defect.was},
               {"rules", std::move(rules)},
               {"amount", AmountOf(run, defect)},
               {"blame", BlameOf(run, defect)},
               {"blamed", BlameFunction(defect, places)},
               {"released", PlaceOf(defect.released, places)},
               {"trials", defect.trials},
               {"members", std::move(members)}};
  for (const TakenFor& one : defect.taken_for) json["taken_for"].push_back(Describe(run, defect, one));
  if (defect.suppressed) json["suppressed"] = SuppressedToJson(*defect.suppressed);
  if (defect.unwinding) json["unwinding"] = UnwindingToJson(*defect.unwinding);
  return json;
}

// Title, explanation and advice of each row of a table of words.
template <typename Rows>
Json WordsOf(const Rows& rows) {
  Json json = Json::object();
  for (const auto& row : rows) json[std::string(row.name)] = Json::array({row.title, row.explanation, row.advice});
  return json;
}

// What ends the element, begins a comment in it, or is no ASCII, is written as \uXXXX. Those characters are only in strings.
std::string ForScriptElement(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char one : text) {
    switch (one) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      case '\x7f':
        safe += "\\u007f";
        break;
      default:
        safe += one;
    }
  }
  return safe;
}

}  // namespace

std::string PageData(const Audit& audit, const SourceRoot* root) {
  PlaceTable places(root);
  Json cases = Json::array();
  Json runs = Json::array();
  Json findings = Json::array();
  Json defects = Json::array();
  for (const Case& one : audit.cases) {
    Json mine = Json::array();
    for (const Run& run : one.runs) {
      mine.push_back(runs.size());
      Json row = RunOf(run, &places);
      row["case"] = cases.size();
      row["cut_short"] = CutShort(run);
      row["first_defect"] = defects.size();
      const std::size_t first = findings.size();
      for (const Finding& finding : run.findings) findings.push_back(FindingOf(finding, &places));
      for (const Defect& defect : run.defects) defects.push_back(DefectOf(run, defect, runs.size(), first, &places));
      runs.push_back(std::move(row));
    }
    cases.push_back(Json{{"name", one.name},
                         {"tags", one.tags},
                         {"not_run", NotRun(one).empty() ? "" : std::string(NotRun(one)) + ": " + WhyNotRun(one)},
                         {"runs", std::move(mine)}});
  }
  Json gone = Json::array();
  if (audit.comparison) {
    for (const Gone& one : audit.comparison->gone) {
      gone.push_back(GoneToJson(one));
      gone.back()["because"] = one.because;
    }
  }
  Json missing = Json::array();
  for (const NotProved& one : Missing(audit)) missing.push_back(Json{{"name", NameOf(one)}, {"because", one.why}});
  Json json = {{"tool", audit.tool_version}, {"generated", audit.generated}};
  json["base"] = audit.comparison ? Json(audit.comparison->base) : Json(nullptr);
  json["words"] = Json{{"rule", WordsOf(words::kRules)},
                       {"verdict", WordsOf(words::kVerdicts)},
                       {"change", WordsOf(words::kChanges)},
                       {"outcome", WordsOf(words::kOutcomes)}};
  json["summary"] = Headline(audit, TallyOf(audit, ListDefects(audit)));
  json["cases"] = std::move(cases);
  json["runs"] = std::move(runs);
  json["defects"] = std::move(defects);
  json["findings"] = std::move(findings);
  json["gone"] = std::move(gone);
  json["missing"] = std::move(missing);
  json["unused"] = audit.unused_suppressions;
  json["frames"] = places.Frames();
  json["stacks"] = places.Stacks();
  json["sources"] = places.Sources();
  return ForScriptElement(json);
}

}  // namespace cuaudit::report::html
