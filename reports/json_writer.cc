// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/defect_words.h"
#include "reports/json_text.h"
#include "reports/message.h"
#include "reports/reasons_json.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

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

std::string FrameText(const Frame& frame) {
  JsonLine line;
  line.Add("module", frame.module).Add("function", frame.function).Add("file", frame.file).Add("line", frame.line);
  line.Add("offset", frame.offset);
  if (frame.start != 0) line.Add("start", frame.start);
  return line.Take();
}

std::string StackText(const std::vector<Frame>& frames) { return ListText(frames, FrameText); }

std::string PlaceText(const Acquired& acquired) {
  return JsonLine().Add("call", acquired.call).AddRaw("stack", StackText(acquired.stack)).Take();
}

std::string PlaceOrNullText(const Acquired& place) { return place.call.empty() && place.stack.empty() ? "null" : PlaceText(place); }

std::string FaultText(const Fault& fault) {
  JsonLine line;
  line.Add("call", fault.call).Add("occurrence", fault.occurrence).Add("how", fault.how).Add("code", fault.code).Add("text", fault.text);
  return line.AddRaw("stack", StackText(fault.stack)).Take();
}

std::string FindingText(const Finding& finding) {
  const std::optional<Verdict> verdict = words::VerdictOf(finding.rule);
  JsonLine line;
  line.Add("rule", words::Name(finding.rule)).Add("title", finding.title).Add("kind", finding.kind).Add("count", finding.count);
  line.Add("bytes", finding.bytes).Add("verdict", verdict ? words::Name(*verdict) : std::string_view());
  line.AddRaw("fault", finding.fault ? FaultText(*finding.fault) : "null").AddRaw("acquired", PlaceText(finding.acquired));
  line.Add("where", finding.where).AddRaw("where_stack", StackText(finding.where_stack)).AddRaw("other", PlaceOrNullText(finding.other));
  line.Add("fingerprint", finding.fingerprint).Add("reproduce", finding.reproduce).Add("trials", finding.trials);
  // What most findings do not need.
  if (!finding.then.empty()) line.AddRaw("then", ListText(finding.then, FaultText));
  if (!finding.shrunk_from.empty()) line.AddRaw("shrunk_from", OnOneLine(finding.shrunk_from));
  if (!finding.detail.empty()) line.Add("detail", finding.detail);
  return line.Take();
}

Json Stack(const std::vector<Frame>& frames) { return Json::parse(StackText(frames)); }

Json Place(const Acquired& acquired) { return Json::parse(PlaceText(acquired)); }

Json PlaceOrNull(const Acquired& place) { return Json::parse(PlaceOrNullText(place)); }

Json FrameOf(const Frame& frame) { return Json::parse(FrameText(frame)); }

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
  Json json{{"fingerprint", defect.fingerprint},
            {"rule", words::Name(root.rule)},
            {"title", root.title},
            {"blame", std::move(blame)},
            {"says", BlameOf(run, defect)},
            {"acquired", Place(root.acquired)},
            {"released", PlaceOrNull(defect.released)},
            {"trials", defect.trials},
            {"members", std::move(members)},
            {"reproduce", root.reproduce}};
  if (defect.change != Change::None) json["change"] = words::Name(defect.change);
  AddJudged(defect, &json);
  if (defect.unwinding) json["unwinding"] = UnwindingToJson(*defect.unwinding);
  return json;
}

Json ToJson(const Coverage& coverage) {
  Json rows = Json::array();
  for (const NotReached& row : coverage.not_reached) {
    rows.push_back(
        Json{{"call", row.call},
             {"code", row.code},
             {"how", row.how},
             {"phase", row.phase.empty() ? "any" : row.phase},
             {"unwinding", row.unwinding},
             {"why", Words(row)},
             {row.why == Reason::None ? "missed" : "reason", row.why == Reason::None ? words::Name(row.missed) : words::Name(row.why)},
             {"stack", Stack(row.stack)}});
  }
  Json json{{"reachable", coverage.reachable},
            {"reached", coverage.reached},
            {"pruned", coverage.pruned},
            {"percent", static_cast<double>(PerMille(coverage)) / 10},
            {"codes_tried", coverage.codes_tried},
            {"codes_documented", coverage.codes_documented},
            {"not_reached", rows}};
  for (const Tried& one : coverage.tried) {
    json["tried"].push_back(Json{{"call", one.call},
                                 {"code", one.code},
                                 {"how", one.how},
                                 {"unwinding", one.unwinding},
                                 {"function", one.function},
                                 {"places", one.places}});
  }
  return json;
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
  return Json{{"warm_up", meters.warm_up}, {"asked_bytes_per_cycle", meters.asked},       {"of_runs", meters.of_runs}, {"rows", rows},
              {"absent", absent},          {"absent_by_id", ReasonsToJson(meters.absent)}};
}

Json FaultsOf(const Run& run) {
  Json rows = Json::array();
  for (const Replayed& fault : run.faults) rows.push_back(Json{{"text", fault.text}, {"code_chosen", fault.code_chosen}});
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
  json["why"] = MessageToJson(run.message);
  if (const auto& one = run.interrupted) {
    json["interrupted"] = Json{{"signal", one->signal}, {"done", one->done}, {"planned", one->planned}};
    if (one->more) json["interrupted"]["more"] = true;
  }
  json["command"] = run.command;
  if (!run.lifecycle.empty()) json["lifecycle"] = run.lifecycle;
  if (!run.faults.empty()) json["faults"] = FaultsOf(run);
  json["scope"] = run.scope;
  if (!run.settings.empty()) json["settings"] = run.settings;
  Json left_out = Json::object();
  for (const auto& [probe, why] : run.host.left_out) left_out[probe] = words::Words(why);
  json["host"] = Json{{"probes", run.host.probes}, {"left_out", left_out}, {"left_out_by_id", ReasonsToJson(run.host.left_out)}};
  json["totals"] = Json{{"calls", run.totals.calls},
                        {"sites", run.totals.sites},
                        {"trials", run.totals.trials},
                        {"fired", run.totals.fired},
                        {"verdicts", Counts(Words(run.totals.verdicts))},
                        {"skipped", Counts(Words(run.totals.skipped))},
                        {"skipped_by_id", ReasonsToJson(run.totals.skipped)}};
  if (!run.totals.pruned.empty()) {
    json["totals"]["pruned"] = Counts(Words(run.totals.pruned));
    json["totals"]["pruned_by_id"] = ReasonsToJson(run.totals.pruned);
  }
  if (run.totals.recovered != 0) json["totals"]["recovery_checked"] = run.totals.recovered;
  if (run.totals.shrinking != 0) json["totals"]["shrinking_runs"] = run.totals.shrinking;
  if (!run.totals.isolation.empty()) {
    json["totals"]["isolation"] = Counts(Words(run.totals.isolation));
    json["totals"]["isolation_by_id"] = IsolationToJson(run.totals.isolation);
  }
  if (run.totals.forced != 0) json["totals"]["forced_progress"] = run.totals.forced;
  Json per_cycle = Json::object();
  for (const auto& [kind, growth] : run.per_cycle) per_cycle[kind] = Growth(growth);
  json["per_cycle"] = per_cycle;
  json["cycles"] = Cycles(run);
  if (run.meters) json["meters"] = MetersOf(*run.meters);
  json["live"] = LiveToJson(run.live);
  if (run.coverage) json["coverage"] = ToJson(*run.coverage);
  std::string head = json.dump(2, ' ', false, Json::error_handler_t::replace);
  head.resize(head.rfind('\n'));  // the lists go in before the closing brace
  out << head;
  if (run.sequence) out << ",\n  \"sequence\": " << OnOneLine(SequenceToJson(*run.sequence));
  const auto write_list = [&out](std::string_view name, const auto& entries, const auto& text) {
    out << ",\n  \"" << name << "\": ";
    WriteEntries(entries, text, "\n    ", "\n  ]", out);
  };
  write_list("defects", run.defects, [&run](const Defect& one) { return OnOneLine(ToJson(run, one)); });
  write_list("findings", run.findings, FindingText);
  write_list("notes", run.notes, FindingText);
  out << ",\n  \"header\": " << OnOneLine(Json{{"generated", run.generated}, {"tool_version", run.tool_version}}) << "\n}\n";
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
