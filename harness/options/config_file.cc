// SPDX-License-Identifier: MIT
#include "harness/options/config_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "harness/options/option_rows.h"
#include "harness/options/options.h"
#include "harness/options/toml_options.h"
#include "harness/process/files.h"
#include "harness/process/toml_file.h"

namespace cuaudit::harness {
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
