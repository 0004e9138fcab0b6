// SPDX-License-Identifier: MIT
#include "reports/json_writer.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/course_words.h"
#include "reports/defect_words.h"
#include "reports/message.h"
#include "reports/sequence_json.h"

namespace cuaudit::report {
namespace {

using Json = nlohmann::ordered_json;

Json Growth(double value) {
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53
  if (std::isfinite(value) && std::fabs(value) < kExactBelow && std::trunc(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

Json Counts(const InWords& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Json Stack(const std::vector<Frame>& frames) {
  Json json = Json::array();
  for (const Frame& frame : frames) {
    json.push_back(
        Json{{"module", frame.module}, {"function", frame.function}, {"file", frame.file}, {"line", frame.line}, {"offset", frame.offset}});
    if (frame.start != 0) json.back()["start"] = frame.start;
  }
  return json;
}

Json Place(const Acquired& acquired) { return Json{{"call", acquired.call}, {"stack", Stack(acquired.stack)}}; }

Json PlaceOrNull(const Acquired& place) { return place.call.empty() && place.stack.empty() ? Json(nullptr) : Place(place); }

Json FaultOrNull(const std::optional<Fault>& fault) {
  if (!fault) return nullptr;
  return Json{{"call", fault->call}, {"occurrence", fault->occurrence}, {"how", fault->how}, {"code", fault->code},
              {"text", fault->text}, {"stack", Stack(fault->stack)}};
}

// Adds the keys that most findings do not need, when they have a value.
void AddRare(const Finding& finding, Json* json) {
  if (!finding.then.empty()) {
    Json then = Json::array();
    for (const Fault& fault : finding.then) then.push_back(FaultOrNull(fault));
    (*json)["then"] = std::move(then);
  }
  if (!finding.shrunk_from.empty()) (*json)["shrunk_from"] = finding.shrunk_from;
  if (!finding.detail.empty()) (*json)["detail"] = finding.detail;
}

Json ToJson(const Finding& finding) {
  const std::optional<Verdict> verdict = words::VerdictOf(finding.rule);
  Json json{{"rule", words::Name(finding.rule)},
            {"title", finding.title},
            {"kind", finding.kind},
            {"count", finding.count},
            {"bytes", finding.bytes},
            {"verdict", verdict ? words::Name(*verdict) : std::string_view()},
            {"fault", FaultOrNull(finding.fault)},
            {"acquired", Place(finding.acquired)},
            {"where", finding.where},
            {"where_stack", Stack(finding.where_stack)},
            {"other", PlaceOrNull(finding.other)},
            {"fingerprint", finding.fingerprint},
            {"reproduce", finding.reproduce},
            {"trials", finding.trials}};
  AddRare(finding, &json);
  return json;
}

Json FrameOf(const Frame& frame) { return Stack({frame}).front(); }

Json Fingerprints(const Run& run, const Member& member) {
  Json json = Json::array();
  for (const std::size_t finding : member.findings) json.push_back(run.findings[finding].fingerprint);
  return json;
}

Json ToJson(const Run& run, const Defect& defect) {
  const Finding& root = RootOf(run, defect);
  Json members = Json::array();
  for (const Member& member : defect.members) {
    const Finding& first = run.findings[member.findings.front()];
    members.push_back(Json{{"rule", words::Name(first.rule)},
                           {"kind", first.kind},
                           {"count", member.count},
                           {"bytes", member.bytes},
                           {"findings", Fingerprints(run, member)}});
  }
  Json blame = nullptr;
  if (defect.blame) blame = Json{{"function", FrameOf(defect.blame->function)}, {"because", Name(defect.blame->because)}};
  Json json = {{"fingerprint", defect.fingerprint},
               {"rule", words::Name(root.rule)},
               {"title", root.title},
               {"blame", std::move(blame)},
               {"says", BlameOf(run, defect)},
               {"acquired", Place(root.acquired)},
               {"released", PlaceOrNull(defect.released)},
               {"trials", defect.trials},
               {"members", std::move(members)},
               {"reproduce", root.reproduce}};
  if (defect.unwinding) json["unwinding"] = UnwindingToJson(*defect.unwinding);
  return json;
}

std::string OnOneLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A list that may be long has one entry on each line. Only one entry at a time is in memory as a document.
template <typename Entries, typename ToEntry>
void WriteList(std::string_view name, const Entries& entries, const ToEntry& entry, std::ostream& out) {
  out << ",\n  \"" << name << "\": [";
  const char* before = "\n    ";
  for (const auto& one : entries) {
    out << before << OnOneLine(entry(one));
    before = ",\n    ";
  }
  out << (entries.empty() ? "]" : "\n  ]");
}

Json ToJson(const Coverage& coverage) {
  Json rows = Json::array();
  for (const NotReached& row : coverage.not_reached) {
    rows.push_back(Json{{"call", row.call},
                        {"code", row.code},
                        {"how", row.how},
                        {"phase", row.phase.empty() ? "any" : row.phase},
                        {"unwinding", row.unwinding},
                        {"why", Words(row)},
                        {"stack", Stack(row.stack)}});
  }
  return Json{{"reachable", coverage.reachable},
              {"reached", coverage.reached},
              {"pruned", coverage.pruned},
              {"percent", static_cast<double>(PerMille(coverage)) / 10},
              {"codes_tried", coverage.codes_tried},
              {"codes_documented", coverage.codes_documented},
              {"not_reached", rows}};
}

Json ToJson(const Course& course) {
  Json json = {{"trend", Name(course.trend)}, {"cycles", course.cycles}, {"most_alive", course.plateau}, {"after", course.reached}};
  if (course.trend == Trend::Growth) {
    json["least_per_cycle"] = Growth(course.least);
    json["most_per_cycle"] = Growth(course.most);
  }
  if (course.trend == Trend::Undecided) json["needed_cycles"] = course.needed;
  return json;
}

Json Cycles(const Run& run) {
  Json rows = Json::array();
  for (const CycleRow& row : run.cycle_rows) {
    rows.push_back(Json{{"kind", row.kind},
                        {"acquired", Place(row.acquired)},
                        {"live", row.live},
                        {"per_cycle", Growth(row.per_cycle)},
                        {"bytes_per_cycle", row.bytes_per_cycle}});
    if (row.course.trend != Trend::Steady) rows.back()["course"] = ToJson(row.course);
  }
  return Json{{"counts", run.cycle_counts}, {"rows", rows}};
}

Json MetersOf(const Meters& meters) {
  Json rows = Json::array();
  for (const Meter& row : meters.rows) {
    rows.push_back(Json{
        {"name", row.name},
        {"cycles", row.cycles},
        {"grows", row.grows},
        {"bytes_per_cycle", Growth(row.per_cycle)},
        {"detectable_bytes_per_cycle", row.detectable},
        {"noise_bytes", row.noise},
        {"control",
         Json{{"cycles", row.control_cycles}, {"drift_bytes", row.drift}, {"false_alarms", row.false_alarms}, {"windows", row.windows}}}});
  }
  Json absent = Json::object();
  for (const auto& [name, why] : meters.absent) absent[name] = words::Words(why);
  return Json{{"warm_up", meters.warm_up},
              {"asked_bytes_per_cycle", meters.asked},
              {"of_runs", meters.of_runs},
              {"rows", rows},
              {"absent", absent}};
}

Json FaultsOf(const Run& run) {
  Json rows = Json::array();
  for (const Replayed& fault : run.faults) rows.push_back(Json{{"text", fault.text}, {"code_chosen", fault.code_chosen}});
  return rows;
}

Json Live(const Run& run) {
  Json rows = Json::array();
  for (const LiveRow& row : run.live) {
    rows.push_back(
        Json{{"kind", row.kind}, {"acquired", row.acquired}, {"released", row.released}, {"live", row.live}, {"bytes", row.bytes}});
    if (row.orphaned != 0) rows.back()["orphaned"] = row.orphaned;
  }
  return rows;
}

}  // namespace

bool WriteJson(const Run& run, std::ostream& out) {
  Json json = Json::object();
  json["schema"] = kJsonSchema;
  json["mode"] = Name(run.mode);
  json["driver"] =
      Json{{"kind", Name(run.driver.kind)}, {"version", run.driver.version}, {"path", run.driver.path}, {"device", run.driver.device}};
  if (!run.driver.runtime.empty()) json["driver"]["runtime"] = run.driver.runtime;
  json["driver"]["world"] = run.driver.world;
  if (const auto& kernels = run.driver.kernels) {
    json["driver"]["kernels"] = Json{{"hosted", kernels->hosted}, {"idle", kernels->idle}, {"mismatched", kernels->mismatched}};
  }
  json["outcome"] = OutcomeName(run);
  if (const std::string message = MessageLine(run); !message.empty()) json["message"] = message;
  if (const auto& one = run.interrupted) {
    json["interrupted"] = Json{{"signal", one->signal}, {"done", one->done}, {"planned", one->planned}};
    if (one->more) json["interrupted"]["more"] = true;
  }
  json["command"] = run.command;
  if (!run.faults.empty()) json["faults"] = FaultsOf(run);
  json["scope"] = run.scope;
  Json left_out = Json::object();
  for (const auto& [probe, why] : run.host.left_out) left_out[probe] = words::Words(why);
  json["host"] = Json{{"probes", run.host.probes}, {"left_out", left_out}};
  json["totals"] = Json{{"calls", run.totals.calls},
                        {"sites", run.totals.sites},
                        {"trials", run.totals.trials},
                        {"fired", run.totals.fired},
                        {"verdicts", Counts(Words(run.totals.verdicts))},
                        {"skipped", Counts(Words(run.totals.skipped))}};
  if (!run.totals.pruned.empty()) json["totals"]["pruned"] = Counts(Words(run.totals.pruned));
  if (run.totals.recovered != 0) json["totals"]["recovery_checked"] = run.totals.recovered;
  if (run.totals.shrinking != 0) json["totals"]["shrinking_runs"] = run.totals.shrinking;
  if (!run.totals.isolation.empty()) json["totals"]["isolation"] = Counts(Words(run.totals.isolation));
  if (run.totals.forced != 0) json["totals"]["forced_progress"] = run.totals.forced;
  Json per_cycle = Json::object();
  for (const auto& [kind, growth] : run.per_cycle) per_cycle[kind] = Growth(growth);
  json["per_cycle"] = per_cycle;
  json["cycles"] = Cycles(run);
  if (run.meters) json["meters"] = MetersOf(*run.meters);
  json["live"] = Live(run);
  if (run.coverage) json["coverage"] = ToJson(*run.coverage);
  std::string head = json.dump(2, ' ', false, Json::error_handler_t::replace);
  head.resize(head.rfind('\n'));  // the lists go in before the closing brace
  out << head;
  if (run.sequence) out << ",\n  \"sequence\": " << OnOneLine(SequenceToJson(*run.sequence));
  const auto finding = [](const Finding& one) { return ToJson(one); };
  WriteList(
      "defects", run.defects, [&run](const Defect& one) { return ToJson(run, one); }, out);
  WriteList("findings", run.findings, finding, out);
  WriteList("notes", run.notes, finding, out);
  out << ",\n  \"header\": " << OnOneLine(Json{{"generated", run.generated}, {"tool_version", run.tool_version}}) << "\n}\n";
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
