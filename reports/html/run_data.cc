// SPDX-License-Identifier: MIT
#include "reports/html/run_data.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reports/course_words.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/message.h"
#include "reports/sequence_json.h"

namespace cuaudit::report::html {
namespace {

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
  for (const auto& [name, why] : meters.absent) absent.push_back(Json::array({name, words::Words(why)}));
  return Json{{"rows", std::move(rows)}, {"absent", std::move(absent)}};
}

Json LiveOf(const std::vector<LiveRow>& live) {
  Json rows = Json::array();
  for (const LiveRow& row : live) {
    rows.push_back(
        Json{{"kind", row.kind}, {"acquired", row.acquired}, {"released", row.released}, {"live", row.live}, {"bytes", row.bytes}});
  }
  return rows;
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

}  // namespace

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
              {"other_is", OtherIs(finding.rule)},
              {"fingerprint", finding.fingerprint},
              {"reproduce", finding.reproduce},
              {"trials", finding.trials}};
}

Json RunOf(const Run& run, PlaceTable* places) {
  Json notes = Json::array();
  for (const Finding& note : run.notes) notes.push_back(FindingOf(note, places));
  Json json = {{"mode", Name(run.mode)},           {"outcome", OutcomeName(run)},    {"message", MessageLine(run)},
               {"command", ForShell(run.command)}, {"driver", DriverOf(run.driver)}, {"totals", TotalsOf(run.totals)},
               {"cycles", CyclesOf(run, places)},  {"live", LiveOf(run.live)},       {"notes", std::move(notes)}};
  if (run.coverage) json["coverage"] = CoverageOf(*run.coverage, places);
  if (run.meters) json["meters"] = MetersOf(*run.meters);
  if (run.sequence) json["sequence"] = SequenceOf(*run.sequence, places);
  return json;
}

}  // namespace cuaudit::report::html
