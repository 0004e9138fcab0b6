// SPDX-License-Identifier: MIT
#include "harness/project/case_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/cycle/cycles.h"
#include "harness/cycle/meters.h"
#include "harness/options/sweep_options.h"
#include "harness/options/toml_options.h"
#include "harness/process/program.h"
#include "harness/process/shell.h"
#include "harness/process/status.h"

namespace cuaudit::harness {
namespace {

using Sort = TomlValue::Sort;

constexpr const char* kCommand = "command";
constexpr const char* kTags = "tags";
constexpr const char* kWeight = "weight";
constexpr const char* kEnvironment = "environment";
constexpr std::int64_t kMostWeight = 1000000;

// Two options of which one makes the other meaningless: a layer that sets one puts the other back to its default.
constexpr std::pair<const char*, const char*> kInstead[] = {{"host", "no_host"}, {"prune", "no_prune"}};

std::vector<std::string> Keys(Section section) {
  std::vector<std::string> keys = {kTags, kWeight};
  if (section == Section::Case) keys.emplace_back(kCommand);
  for (const OptionRow& row : OptionRows()) {
    if (row.IsKey()) keys.push_back(row.Key());
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

bool IsPath(const OptionRow& row) {
  const std::string_view operand = row.operand;
  return operand == "PATH" || operand == "FILE" || operand == "DIR";
}

// Puts NAME=VALUE in the place of an earlier line with that name.
void PutVariable(const std::string& line, std::vector<std::string>* environment) {
  const std::string name = line.substr(0, line.find('=') + 1);
  const auto same = [&](const std::string& other) { return other.starts_with(name); };
  const auto before = std::find_if(environment->begin(), environment->end(), same);
  if (before != environment->end()) *before = line;
  else environment->push_back(line);
}

// The key under which ProjectCase::from has the origin of one variable: "environment.HOME".
std::string VariableKey(const std::string& line) { return std::string(kEnvironment) + "." + line.substr(0, line.find('=')); }

// Sets the option of `row` to these words.
void SetRow(const OptionRow& row, std::vector<std::string> words, const TomlValue& value, const std::string& folder, Options* options) {
  if (IsPath(row)) {
    for (std::string& path : words) path = PathFrom(folder, path);
  }
  if (row.text != nullptr) options->*row.text = words.front();
  if (row.number != nullptr) options->*row.number = static_cast<std::uint64_t>(value.integer);
  if (row.flagged != nullptr) options->*row.flagged = value.boolean;
  if (row.list == nullptr) return;
  if (row.Key() == kEnvironment) {
    for (const std::string& line : words) PutVariable(line, &(options->*row.list));
  } else {
    options->*row.list = std::move(words);
  }
}

void ResetInstead(const std::set<std::string>& set, ProjectCase* one) {
  const Options defaults;
  for (const auto& [a, b] : kInstead) {
    for (const auto& [key, other] : {std::pair(a, b), std::pair(b, a)}) {
      if (!set.contains(key) || set.contains(other)) continue;
      CopyOption(*RowOfKey(other), defaults, &one->options);
      one->from.erase(other);
    }
  }
}

Status CheckInputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(input, error) && !std::filesystem::is_directory(input, error)) {
      return {Exit::Usage, OptionFlag{"--inputs"}, "'" + input + "': expected a file or a folder"};
    }
  }
  return {};
}

}  // namespace

void PutVariable(const std::string& line, const std::string& from, ProjectCase* one) {
  PutVariable(line, &one->options.environment);
  one->from[kEnvironment] = one->from[VariableKey(line)] = from;
}

std::string FolderOf(const std::string& file) { return std::filesystem::path(file).parent_path().string(); }

Status ApplyTable(const TomlValue& table, const std::string& file, Section section, ProjectCase* one) {
  std::set<std::string> set;
  for (const TomlEntry& entry : table.entries) {
    const std::string place = PlaceOf(file, entry.line, entry.column);
    const auto wrong = [&](const std::string& expected) { return WrongValue(file, entry, expected); };
    const OptionRow* const row = RowOfKey(entry.key);
    if (entry.key == kCommand && section == Section::Case) {
      std::optional<std::vector<std::string>> words = IsText(entry.value) ? SplitWords(entry.value.text) : AsTexts(entry.value);
      if (!words.has_value() || words->empty() || words->front().empty())
        return wrong("a program and its arguments: [\"./program\", \"argument\"]");
      one->options.program = std::move(*words);
    } else if (entry.key == kTags) {
      std::optional<std::vector<std::string>> tags = AsTexts(entry.value);
      if (!tags.has_value() || EmptyText(entry.value) != nullptr) return wrong("a list of texts");
      one->tags = std::move(*tags);
    } else if (entry.key == kWeight) {
      if (entry.value.sort != Sort::Integer || entry.value.integer < 0 || entry.value.integer > kMostWeight)
        return wrong("a number from 0 to " + std::to_string(kMostWeight));
      one->weight = static_cast<std::uint64_t>(entry.value.integer);
    } else if (row != nullptr) {
      Result<std::vector<std::string>> words = WordsOf(*row, file, entry);
      if (!words.ok()) return words.status();
      SetRow(*row, std::move(*words), entry.value, FolderOf(file), &one->options);
    } else if (entry.key == kCommand) {
      return {Exit::Usage, place + ": command: expected it in a case, not in the defaults"};
    } else {
      return {Exit::Usage, place + ": " + entry.key + ": no such key, expected a key of a case" + DidYouMean(entry.key, Keys(section))};
    }
    set.insert(entry.key);
    one->from[entry.key] = place;
    if (entry.key != kEnvironment) continue;
    for (const std::string& line : AsVariables(entry.value).value_or(std::vector<std::string>())) one->from[VariableKey(line)] = place;
  }
  ResetInstead(set, one);
  return {};
}

void ApplyGiven(const Options& given, const std::string& from, ProjectCase* one) {
  std::set<std::string> set;
  for (const OptionRow& row : OptionRows()) {
    if (!row.IsKey() || std::find(given.given.begin(), given.given.end(), row.flag) == given.given.end()) continue;
    if (row.Key() == kEnvironment) {
      for (const std::string& line : given.*row.list) PutVariable(line, from, one);
    } else {
      CopyOption(row, given, &one->options);
    }
    set.insert(row.Key());
    one->from[row.Key()] = from;
  }
  ResetInstead(set, one);
}

Status AtItsPlace(const ProjectCase& one, const Status& status) {
  if (status.ok()) return status;
  const OptionRow* const row = RowOfFlag(status.flag());
  if (row == nullptr || !row->IsKey() || !one.from.contains(row->Key())) {
    return {status.exit(), one.place + ": case " + one.name + ": " + status.message()};
  }
  const std::string& from = one.from.at(row->Key());
  return {status.exit(), from + ": " + row->Key() + ": " + std::string(status.text())};
}

std::string CountsOf(const ProjectCase& one) {
  if (one.options.cycles == "off") return {};
  return one.options.cycles == "on" ? Options().n : one.options.cycles;
}

Status CheckCase(const ProjectCase& one) {
  if (one.options.program.empty())
    return {Exit::Usage, one.place + ": case " + one.name + ": no command, expected command = [\"./program\"]"};
  Options sweep = one.options;
  sweep.command = kSweep;
  Status usable = CheckOptions(sweep);
  if (usable.ok()) usable = EngineOptionsOf(sweep).status();
  if (usable.ok()) usable = ParseDetect(one.options.detect).status();
  if (usable.ok()) usable = CheckInputs(one.options.inputs);
  if (!usable.ok()) return AtItsPlace(one, usable);
  for (const std::string& line : one.options.environment) {
    if (!IsVariable(line)) return AtItsPlace(one, {Exit::Usage, OptionFlag{"--environment"}, "'" + line + "': expected NAME=VALUE"});
  }
  const std::string counts = CountsOf(one);
  if (counts.empty()) return {};
  const Result<std::vector<std::uint64_t>> parsed = ParseCounts(counts);
  if (parsed.ok()) return {};
  return AtItsPlace(one, {Exit::Usage, OptionFlag{"--cycles"}, "'" + counts + "': expected off, on or increasing counts: 1,10"});
}

namespace {

// Where the variables come from, in their order; once when all come from one place.
std::string OriginsOfVariables(const ProjectCase& one) {
  std::vector<std::string> origins;
  for (const std::string& line : one.options.environment) {
    const auto found = one.from.find(VariableKey(line));
    origins.push_back(found == one.from.end() ? "default" : found->second);
  }
  if (origins.empty()) return one.from.contains(kEnvironment) ? one.from.at(kEnvironment) : "default";
  if (std::count(origins.begin(), origins.end(), origins.front()) == static_cast<std::ptrdiff_t>(origins.size())) return origins.front();
  std::string text;
  for (const std::string& origin : origins) text += (text.empty() ? "" : ", ") + origin;
  return text;
}

}  // namespace

std::string ShowCase(const ProjectCase& one) {
  const auto from = [&](const std::string& key) { return one.from.contains(key) ? one.from.at(key) : std::string("default"); };
  std::vector<std::pair<std::string, std::string>> lines;
  const auto list = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + TomlString(word);
    return "[" + text + "]";
  };
  lines.emplace_back("command = " + list(one.options.program), from(kCommand));
  lines.emplace_back("tags = " + list(one.tags), from(kTags));
  lines.emplace_back("weight = " + std::to_string(one.weight), from(kWeight));
  for (const OptionRow& row : OptionRows()) {
    // No key takes an empty text.
    const char* const unset = row.text != nullptr && (one.options.*row.text).empty() ? "# " : "";
    if (row.IsKey()) lines.emplace_back(unset + row.Key() + " = " + ShowValue(row, one.options), from(row.Key()));
    if (row.Key() == kEnvironment) lines.back().second = OriginsOfVariables(one);
  }
  std::string page = "[case." + (one.name.find('.') == std::string::npos ? one.name : TomlString(one.name)) + "]\n";
  for (const auto& [line, where] : lines) page += fmt::format("{:<40}  # {}\n", line, where);
  return page;
}

bool IsCaseName(const std::string& name) {
  constexpr std::size_t kLongest = 100;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  const auto allowed = [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kLongest && plain(name.front()) && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace cuaudit::harness
