// SPDX-License-Identifier: MIT
#include "harness/options/toml_options.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "harness/options/options.h"
#include "harness/process/files.h"

namespace cuaudit::harness {
namespace {

using Found = TomlValue::Sort;

bool IsEnvironment(const OptionRow& row) { return row.list == &Options::environment; }
bool IsCycles(const OptionRow& row) { return row.text == &Options::cycles; }

// A number as somebody would type it for a flag.
std::optional<std::string> AsText(const TomlValue& value) {
  if (value.sort == Found::Integer) return std::to_string(value.integer);
  if (value.sort == Found::Real) {
    char text[32];
    return std::string(text, std::to_chars(std::begin(text), std::end(text), value.real).ptr);
  }
  if (IsText(value)) return value.text;
  return std::nullopt;
}

std::optional<std::string> OneWord(const OptionRow& row, const TomlValue& value) {
  switch (row.sort) {
    case OptionRow::Sort::Choice: {
      const std::vector<std::string> words = SplitCommas(row.operand);
      if (!IsText(value) || std::find(words.begin(), words.end(), value.text) == words.end()) return std::nullopt;
      return value.text;
    }
    case OptionRow::Sort::Text: {
      if (IsCycles(row) && value.sort == Found::Boolean) return value.boolean ? "on" : "off";
      const std::string_view operand = row.operand;
      const bool lists = operand.find("LIST") != std::string_view::npos || operand.find("COUNTS") != std::string_view::npos;
      const std::optional<std::vector<std::string>> texts = lists ? AsTexts(value) : std::nullopt;
      if (!texts.has_value()) return AsText(value);
      const std::string joined = CLI::detail::join(*texts, ",");
      return joined.empty() ? std::nullopt : std::optional(joined);
    }
    case OptionRow::Sort::Number: {
      if (value.sort != Found::Integer || value.integer < 0) return std::nullopt;
      const auto number = static_cast<std::uint64_t>(value.integer);
      return number < row.lowest || number > row.highest ? std::nullopt : AsText(value);
    }
    case OptionRow::Sort::Switch:
      if (value.sort != Found::Boolean) return std::nullopt;
      return value.boolean ? "true" : "false";
    case OptionRow::Sort::List:
      break;
  }
  return std::nullopt;
}

std::string ExpectedInFile(const OptionRow& row) {
  if (IsEnvironment(row)) return "variables: { NAME = \"value\" }";
  if (IsCycles(row)) return "true, false or counts such as [1, 10]";
  return Expected(row);
}

}  // namespace

bool IsText(const TomlValue& value) { return value.sort == Found::Text && value.text.find('\0') == std::string::npos; }

std::optional<std::vector<std::string>> AsTexts(const TomlValue& value) {
  if (value.sort != Found::List) return std::nullopt;
  std::vector<std::string> texts;
  for (const TomlValue& item : value.items) {
    std::optional<std::string> text = AsText(item);
    if (!text.has_value()) return std::nullopt;
    texts.push_back(std::move(*text));
  }
  return texts;
}

bool IsVariable(const std::string& line) {
  const std::size_t equals = line.find('=');
  return equals != 0 && equals != std::string::npos && line.find('\0') == std::string::npos;
}

std::optional<std::vector<std::string>> AsVariables(const TomlValue& value) {
  if (value.sort != Found::Table) {
    std::optional<std::vector<std::string>> lines = AsTexts(value);
    if (lines.has_value() && !std::all_of(lines->begin(), lines->end(), IsVariable)) return std::nullopt;
    return lines;
  }
  std::vector<std::string> lines;
  for (const TomlEntry& entry : value.entries) {
    const std::optional<std::string> text = AsText(entry.value);
    if (!text.has_value() || entry.key.find('=') != std::string::npos || !IsVariable(entry.key + "=")) return std::nullopt;
    lines.push_back(entry.key + "=" + *text);
  }
  return lines;
}

const TomlValue* EmptyText(const TomlValue& value) {
  const auto is_empty = [](const TomlValue& one) { return one.sort == Found::Text && one.text.empty(); };
  if (is_empty(value)) return &value;
  const auto item = std::find_if(value.items.begin(), value.items.end(), is_empty);
  return item == value.items.end() ? nullptr : &*item;
}

Status WrongValue(const std::string& file, const TomlEntry& entry, const std::string& expected) {
  const TomlValue* const empty = EmptyText(entry.value);
  const TomlValue& found = empty != nullptr ? *empty : entry.value;
  return {Exit::Usage, PlaceOf(file, found.line, found.column) + ": " + entry.key + ": found " +
                           (found.sort == Found::Text ? TomlString(found.text) : Describe(found)) + ", expected " + expected};
}

Result<std::vector<std::string>> WordsOf(const OptionRow& row, const std::string& file, const TomlEntry& entry) {
  std::optional<std::vector<std::string>> words;
  if (IsEnvironment(row)) {
    words = AsVariables(entry.value);
  } else if (row.sort == OptionRow::Sort::List) {
    words = AsTexts(entry.value);
  } else if (std::optional<std::string> word = OneWord(row, entry.value)) {
    words = {std::move(*word)};
  }
  if (!words.has_value() || EmptyText(entry.value) != nullptr) return WrongValue(file, entry, ExpectedInFile(row));
  return std::move(*words);
}

namespace {

Status WrongName(const std::string& file, const TomlEntry& entry, const std::string& what, const std::vector<std::string>& known) {
  return {Exit::Usage, PlaceOf(file, entry.line, entry.column) + ": " + entry.key + ": " + what + DidYouMean(entry.key, known)};
}

Result<std::vector<CLI::ConfigItem>> ReadSection(const std::string& file, const TomlEntry& section) {
  if (section.value.sort != TomlValue::Sort::Table) return WrongValue(file, section, "a section of a command, such as [sweep]");
  std::vector<std::string> names;
  for (const CommandRow& row : Commands()) names.emplace_back(row.name);
  const auto command = std::find(names.begin(), names.end(), section.key);
  if (command == names.end()) return WrongName(file, section, "no such command, expected a section for one", names);
  const std::uint32_t bits = BitsOf(Commands()[static_cast<std::size_t>(command - names.begin())].command);
  std::vector<std::string> keys;
  for (const OptionRow& row : OptionRows()) {
    if ((row.commands & bits) != 0) keys.push_back(std::string(row.flag).substr(2));
  }
  std::vector<CLI::ConfigItem> items;
  for (const TomlEntry& entry : section.value.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end())
      return WrongName(file, entry, "no such key, expected an option of " + section.key, keys);
    Result<std::vector<std::string>> words = WordsOf(*RowOfFlag("--" + entry.key), file, entry);
    if (!words.ok()) return words.status();
    if (!words->empty()) items.push_back({{section.key}, entry.key, std::move(*words)});
  }
  return items;
}

}  // namespace

std::string ConfigFile::Read(const std::string& path) {
  items.clear();
  const Result<std::string> text = ReadFile(path, kMostTomlMib);
  if (!text.ok()) return text.status().message();
  // The error of the TOML parser would quote much of a binary file.
  const auto strange = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f; };
  const auto found = std::find_if(text->begin(), text->end(), strange);
  if (found != text->end())
    return path + ": line " + std::to_string(1 + std::count(text->begin(), found, '\n')) + ": expected text, options in TOML";
  const Result<TomlValue> file = ParseToml(*text, path);
  if (!file.ok()) return file.status().message();
  for (const TomlEntry& section : file->entries) {
    Result<std::vector<CLI::ConfigItem>> read = ReadSection(path, section);
    if (!read.ok()) return read.status().message();
    items.insert(items.end(), read->begin(), read->end());
  }
  return {};
}

}  // namespace cuaudit::harness
