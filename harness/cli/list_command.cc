// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/settings.h"
#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/options/option_rows.h"
#include "harness/probes/host_meters.h"
#include "harness/sweep/plan/make_plan.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {
namespace {

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::size_t shown = ~std::size_t{0};  // number of columns shown as text; JSON has all

  template <typename... Cells>
  void Add(const Cells&... cells) {
    rows.push_back({std::string(cells)...});
  }
};

// One row for each word: its name, its title, what it means, and what to do about it.
template <typename Rows>
Table WordTable(const char* name, const Rows& rows) {
  Table table{{name, "title", "explanation", "what to do"}, {}, 2};
  for (const auto& row : rows) table.Add(row.name, row.title, row.explanation, row.advice);
  return table;
}

Table Calls() {
  Table table{{"call", "effect", "kind", "codes"}, {}};
  for (std::size_t i = 0; i < driver::kBaseCount; ++i) {
    const auto base = static_cast<driver::BaseId>(i);
    const driver::EffectRow& effect = driver::EffectOf(base);
    std::string codes;
    for (const CUresult code : driver::LegalCodes(base)) {
      codes.append(codes.empty() ? "" : " ").append(driver::ShortResultName(code));
    }
    table.Add(driver::Name(base), driver::Name(effect.effect), effect.kind == driver::Kind::None ? "" : driver::Name(effect.kind), codes);
  }
  return table;
}

Table Kinds() {
  constexpr const char* kWith[] = {"process", "context", "parent"};  // as driver::DiesWith has them
  static_assert(std::size(kWith) == static_cast<std::size_t>(driver::DiesWith::Parent) + 1);
  Table table{{"kind", "dies with"}, {}};
  for (std::size_t i = 1; i < driver::kKindCount; ++i) {
    table.Add(driver::kKinds[i].json_name, kWith[static_cast<std::size_t>(driver::kKinds[i].dies_with)]);
  }
  return table;
}

// What a program is held to put back, or to leave as it was: a finding says which setting was not.
Table SettingTable() {
  constexpr const char* kOwners[] = {"context", "thread", "device",         "memory pool",     "function",
                                     "kernel",  "stream", "managed memory", "executable graph"};
  static_assert(std::size(kOwners) == static_cast<std::size_t>(driver::SettingOf::Executable) + 1);
  Table table{{"call", "setting of a", "told by"}, {}};
  for (const driver::SettingRow& row : driver::kSettings) {
    const std::string_view told_by = row.get == driver::kNoQuestion ? "-" : driver::Name(row.get);
    table.Add(driver::Name(row.set), kOwners[static_cast<std::size_t>(row.of)], told_by);
  }
  return table;
}

Table Rules() {
  constexpr const char* kLevels[] = {"finding", "note", "note of a sweep"};
  Table table{{"rule", "level", "title", "explanation", "what to do", "verdict", "proof"}, {}, 3};
  for (std::size_t i = 0; i < kRuleCount; ++i) {
    const auto rule = static_cast<Rule>(i);
    const RuleRow& row = Row(rule);
    const std::optional<Verdict> verdict = VerdictOf(rule);
    table.Add(row.name, kLevels[static_cast<std::size_t>(row.level)], row.title, row.explanation, row.advice, verdict ? Name(*verdict) : "",
              IsProved(rule) ? "simulated driver" : "");
  }
  return table;
}

Table Outcomes() {
  Table table{{"outcome", "exit", "title", "explanation", "what to do"}, {}, 3};
  for (const words::OutcomeRow& row : words::kOutcomes) table.Add(row.name, row.exit, row.title, row.explanation, row.advice);
  return table;
}

// The first row stands for "missed nothing" and is skipped.
Table MissedReasons() {
  Table table{{"missed", "title", "what to do"}, {}, 2};
  for (const MissedRow& row : std::span(kMissed).subspan(1)) table.Add(row.name, Filled(row.note, "[number of]"), row.advice);
  return table;
}

Table CommandTable() {
  Table table{{"command", "usage", "help"}, {}};
  for (const CommandRow& row : Commands()) table.Add(row.name, row.usage, row.help);
  return table;
}

Table OptionTable() {
  constexpr const char* kForms[] = {"choice", "text", "number", "switch", "list"};  // as OptionRow::Sort has them
  Table table{{"option", "operand", "default", "help", "commands", "form"}, {}, 4};
  const Options defaults;
  for (const OptionRow& option : OptionRows()) {
    const bool is_number = option.number != nullptr;
    std::string names;
    for (const CommandRow& row : Commands()) {
      if ((BitsOf(row.command) & option.commands) != 0) names += (names.empty() ? "" : " ") + std::string(row.name);
    }
    if ((option.commands & kLifecycle) != 0) names += (names.empty() ? "" : " ") + std::string("CUAUDIT_SWEEP");
    table.Add(option.flag, is_number ? std::to_string(option.lowest) + "-" + std::to_string(option.highest) : option.operand,
              is_number                ? std::to_string(defaults.*option.number)
              : option.text != nullptr ? defaults.*option.text
                                       : "",
              option.help, names, kForms[static_cast<std::size_t>(option.sort)]);
  }
  return table;
}

Table Verdicts() {
  std::vector<VerdictRow> gravest_first(std::begin(kVerdicts), std::end(kVerdicts));
  std::sort(gravest_first.begin(), gravest_first.end(), [](const VerdictRow& a, const VerdictRow& b) { return a.grave > b.grave; });
  return WordTable("verdict", gravest_first);
}

Table Reasons() {
  Table table{{"reason", "title", "what to do", "about"}, {}, 2};
  for (const ReasonRow& row : kReasons) {
    table.Add(row.name, Filled(row.text, "[" + std::string(row.of) + "]"), row.advice, kReasonGroups[static_cast<std::size_t>(row.group)]);
  }
  return table;
}

Table Hows() {
  Table table{{"how", "meaning"}, {}};
  for (const HowWord& one : HowWords()) table.Add(one.word, one.meaning);
  return table;
}

Table Probes() {
  Table table{{"probe", "sees", "on", "cost"}, {}};
  for (const HostProbeRow& row : kHostProbes) table.Add(row.name, row.sees, row.on, row.cost);
  return table;
}

Table Changes() { return WordTable("change", words::kChanges); }

Table Tables() {
  Table table{{"table"}, {}};
  for (const std::string_view name : kListNames) table.Add(name);
  return table;
}

std::string AsText(const Table& whole) {
  Table table = whole;
  for (std::vector<std::string>& row : table.rows) row.resize(std::min(row.size(), table.shown));
  table.head.resize(std::min(table.head.size(), table.shown));
  std::vector<std::size_t> width(table.head.size());
  const auto measure = [&width](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  };
  measure(table.head);
  for (const std::vector<std::string>& row : table.rows) measure(row);
  std::string page;
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], width[i]) : row[i];
    while (line.ends_with(' ')) line.pop_back();
    page += line + "\n";
  };
  add(table.head);
  for (const std::vector<std::string>& row : table.rows) add(row);
  return page;
}

std::string AsJson(const Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<std::string>& row : table.rows) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i) object[table.head[i]] = row[i];
    rows.push_back(std::move(object));
  }
  return rows.dump(2) + "\n";
}

constexpr Table (*kTables[])() = {&Calls,   &Kinds,   &SettingTable, &Outcomes, &Verdicts,     &Rules,       &MissedReasons,
                                  &Reasons, &Changes, &Hows,         &Probes,   &CommandTable, &OptionTable, &Tables};
static_assert(std::size(kTables) == std::size(kListNames));

}  // namespace

Exit ListCommand(const Options& options) {
  const auto name = std::find(std::begin(kListNames), std::end(kListNames), options.operand);
  if (name == std::end(kListNames)) return Exit::Usage;  // ParseOptions accepts only known names
  const Table table = kTables[name - std::begin(kListNames)]();
  return Print(options.outputs.front().format == Format::Json ? AsJson(table) : AsText(table));
}

}  // namespace cuaudit::harness
