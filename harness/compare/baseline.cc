// SPDX-License-Identifier: MIT
#include "harness/compare/baseline.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "reports/json_node.h"
#include "reports/json_reader.h"
#include "reports/message.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

using Json = nlohmann::ordered_json;
using report::JsonNode;

constexpr std::string_view kBegin = "cuaudit baseline ";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kFirstLine = "cuaudit baseline 2";
constexpr std::string_view kFirstLineBefore = "cuaudit baseline 1";  // its files have defects only

auto OrderOf(const KnownDefect& defect) { return std::tie(defect.case_name, defect.mode, defect.fingerprint); }

Json ToJson(const FailingWay& way) {
  Json json{{"call", way.call}, {"code", way.code}, {"how", way.how}};
  if (way.unwinding) json["unwinding"] = true;
  if (!way.function.empty()) json["function"] = way.function;
  if (way.places != 1) json["places"] = way.places;
  return json;
}

Json ToJson(const ShownBy& shown) {
  Json json = Json::object();
  if (!shown.driver.empty()) json["driver"] = shown.driver;
  if (!shown.world.empty()) json["world"] = shown.world;
  if (!shown.scope.empty()) json["scope"] = shown.scope;
  if (!shown.probes.empty()) json["probes"] = shown.probes;
  if (shown.cycles != 0) json["cycles"] = shown.cycles;
  if (shown.grown != 0) json["grown"] = shown.grown;
  if (shown.faults > 1) json["faults"] = shown.faults;
  if (!shown.settings.empty()) json["settings"] = shown.settings;
  return json;
}

std::string LineOf(const KnownDefect& defect) {
  Json json{{"case", defect.case_name},
            {"mode", report::Name(defect.mode)},
            {"fingerprint", defect.fingerprint},
            {"title", defect.title},
            {"rule", words::Name(defect.rule)},
            {"kinds", defect.kinds},
            {"call", defect.call},
            {"stack", defect.stack},
            {"blame", defect.blame},
            {"failing", Json::array()}};
  for (const FailingWay& way : defect.failing) json["failing"].push_back(ToJson(way));
  for (const auto& [kind, amount] : defect.lost) json["lost"].push_back({{"kind", kind}, {"count", amount.count}, {"bytes", amount.bytes}});
  if (Json shown = ToJson(defect.shown_by); !shown.empty()) json["shown_by"] = std::move(shown);
  if (!defect.beside.empty()) json["beside"] = defect.beside;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

FailingWay ReadWay(const JsonNode& node) {
  FailingWay way{node["call"].Text(), node["code"].Text(), node["how"].Text(), node.Maybe("unwinding").Flag(),
                 node.Maybe("function").Text()};
  if (const JsonNode places = node.Maybe("places"); places.present()) way.places = places.Count();
  return way;
}

ShownBy ReadShownBy(const JsonNode& node, const std::vector<FailingWay>& failing) {
  ShownBy shown;
  const auto count = [&node](const char* key) {
    const JsonNode one = node.Maybe(key);
    return one.present() ? one.Count() : 0;
  };
  const bool unwinding = std::any_of(failing.begin(), failing.end(), [](const FailingWay& way) { return way.unwinding; });
  shown.faults = unwinding ? 2 : failing.empty() ? 0 : 1;
  if (!node.present()) return shown;
  shown.driver = node.Maybe("driver").Text();
  shown.world = node.Maybe("world").Text();
  shown.scope = node.Maybe("scope").Text();
  shown.probes = node.Maybe("probes").Texts();
  std::sort(shown.probes.begin(), shown.probes.end());
  shown.cycles = count("cycles");
  shown.grown = count("grown");
  shown.settings = node.Maybe("settings").Texts();
  std::sort(shown.settings.begin(), shown.settings.end());
  if (const std::uint64_t faults = count("faults"); faults != 0) shown.faults = faults;
  return shown;
}

report::Mode ModeOf(const JsonNode& node) {
  const report::Mode mode = report::ReadMode(node);
  if (mode == report::Mode::Unknown) node.Expected("sweep, cycles, run or replay");
  return mode;
}

KnownDefect ReadKnown(const JsonNode& node) {
  KnownDefect defect;
  defect.case_name = node["case"].Text();
  defect.mode = ModeOf(node["mode"]);
  defect.fingerprint = node["fingerprint"].Text();
  defect.title = node["title"].Text();
  defect.rule = report::ReadRule(node["rule"]);
  defect.kinds = node["kinds"].Texts();
  std::sort(defect.kinds.begin(), defect.kinds.end());
  defect.call = node["call"].Text();
  defect.stack = node["stack"].Texts();
  defect.blame = node["blame"].Text();
  node["failing"].ForEach([&defect](const JsonNode& way) { defect.failing.push_back(ReadWay(way)); });
  std::sort(defect.failing.begin(), defect.failing.end());
  node.Maybe("lost").ForEach([&defect](const JsonNode& lost) {
    defect.lost[lost["kind"].Text()] = {lost["count"].Count(), lost["bytes"].Count()};
  });
  defect.shown_by = ReadShownBy(node.Maybe("shown_by"), defect.failing);
  if (const JsonNode beside = node.Maybe("beside"); beside.present()) defect.beside = beside.Texts();
  return defect;
}

// Two lines about one defect say together what it loses, and when.
void TakeTogether(const KnownDefect& more, KnownDefect* defect) {
  const auto join = [](const std::vector<std::string>& with, std::vector<std::string>* sorted) {
    std::vector<std::string> both;
    std::set_union(sorted->begin(), sorted->end(), with.begin(), with.end(), std::back_inserter(both));
    *sorted = std::move(both);
  };
  join(more.kinds, &defect->kinds);
  for (const auto& [kind, amount] : more.lost) {
    Amount& most = defect->lost[kind];
    most = {std::max(most.count, amount.count), std::max(most.bytes, amount.bytes)};
  }
  ShownBy& shown = defect->shown_by;
  join(more.shown_by.probes, &shown.probes);
  shown.cycles = std::max(shown.cycles, more.shown_by.cycles);
  // What one of two lines does not know is unknown.
  shown.grown = shown.grown == 0 || more.shown_by.grown == 0 ? 0 : std::max(shown.grown, more.shown_by.grown);
  shown.faults = std::min(shown.faults, more.shown_by.faults);
  join(more.shown_by.settings, &shown.settings);
  for (const FailingWay& way : more.failing) {
    const auto known =
        std::find_if(defect->failing.begin(), defect->failing.end(), [&way](const FailingWay& one) { return IsSameWay(one, way); });
    if (known == defect->failing.end()) defect->failing.push_back(way);
    else known->places = std::max(known->places, way.places);
  }
  std::sort(defect->failing.begin(), defect->failing.end());
  // Beside the same ones in both results.
  std::erase_if(defect->beside,
                [&more](const std::string& one) { return std::find(more.beside.begin(), more.beside.end(), one) == more.beside.end(); });
}

std::string LineOf(const KnownRun& run) {
  return Json{{"case", run.case_name}, {"mode", report::Name(run.mode)}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void Sort(std::vector<KnownDefect>* defects) {
  std::stable_sort(defects->begin(), defects->end(), [](const KnownDefect& a, const KnownDefect& b) { return OrderOf(a) < OrderOf(b); });
}

// Sorts the defects, and makes one of those that are one.
std::vector<KnownDefect> EachOnce(std::vector<KnownDefect> defects) {
  Sort(&defects);
  std::vector<KnownDefect> each;
  for (KnownDefect& defect : defects) {
    if (!each.empty() && OrderOf(each.back()) == OrderOf(defect)) TakeTogether(defect, &each.back());
    else each.push_back(std::move(defect));
  }
  return each;
}

}  // namespace

bool IsBaseline(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text.starts_with(kBegin);
}

bool IsConflict(std::string_view line) {
  constexpr std::array<std::string_view, 4> kMarkers = {"<<<<<<<", "|||||||", "=======", ">>>>>>>"};
  return std::any_of(kMarkers.begin(), kMarkers.end(), [line](std::string_view marker) { return line.starts_with(marker); });
}

Baseline BaselineOf(const report::Audit& audit) { return {KnownDefects(audit), KnownRuns(audit)}; }

std::string BaselineText(Baseline baseline) {
  Sort(&baseline.defects);
  std::string text = std::string(kFirstLine) + "\n";
  auto run = baseline.runs.begin();
  for (const KnownDefect& defect : baseline.defects) {
    // The line of a run stands before those of its defects.
    for (; run != baseline.runs.end() && *run <= KnownRun{defect.case_name, defect.mode}; ++run) text += LineOf(*run);
    text += LineOf(defect);
  }
  for (; run != baseline.runs.end(); ++run) text += LineOf(*run);
  return text;
}

Result<Baseline> ParseBaseline(std::string_view text, const std::string& name) {
  Baseline baseline;
  bool lists_runs = false;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string at = name + ": line " + std::to_string(number) + ": ";
    if (IsConflict(line)) {
      return Status(Exit::Usage, at + "expected no marker of a merge conflict, found '" + std::string(line.substr(0, 7)) +
                                     "': keep the lines of both sides, and take the markers out");
    }
    if (number == 1 && line.starts_with(kByteOrderMark)) {
      return Status(Exit::Usage,
                    at + "expected '" + std::string(kFirstLine) + "', found a byte order mark before it: save it as UTF-8 without one");
    }
    if (number == 1) {
      lists_runs = line == kFirstLine;
      if (!lists_runs && line != kFirstLineBefore) return Status(Exit::Usage, at + "expected '" + std::string(kFirstLine) + "'");
      continue;
    }
    if (line.empty()) continue;
    report::Failure failure;
    const nlohmann::json document = report::ParseJson(line, &failure);
    const JsonNode root(&document, &failure);
    if (failure.line.empty() && lists_runs && !root.Maybe("fingerprint").present() && !root.Maybe("title").present()) {
      KnownRun run{root["case"].Text(), ModeOf(root["mode"])};
      baseline.runs.insert(std::move(run));
    } else {
      baseline.defects.push_back(ReadKnown(root));
    }
    if (!failure.line.empty()) {
      return Status(Exit::Usage, at + (failure.syntax ? "expected a run or a defect as a JSON object" : failure.line));
    }
  }
  if (number == 0) return Status(Exit::Usage, name + ": line 1: expected '" + std::string(kFirstLine) + "'");
  baseline.defects = EachOnce(std::move(baseline.defects));
  return baseline;
}

}  // namespace cuaudit::harness
