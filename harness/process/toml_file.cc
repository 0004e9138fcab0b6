// SPDX-License-Identifier: MIT
#include "harness/process/toml_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "harness/process/files.h"
#include "harness/process/toml_keys.h"

namespace cuaudit::harness {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20U;

using Sort = TomlValue::Sort;

TomlValue Convert(const toml::node& node);

void PutPlace(const toml::source_region& region, std::uint32_t* line, std::uint32_t* column) {
  *line = static_cast<std::uint32_t>(region.begin.line);
  *column = static_cast<std::uint32_t>(region.begin.column);
}

void ConvertTable(const toml::table& table, TomlValue* value) {
  for (const auto& [key, node] : table) {
    TomlEntry entry;
    entry.key = std::string(key.str());
    PutPlace(key.source(), &entry.line, &entry.column);
    entry.value = Convert(node);
    value->entries.push_back(std::move(entry));
  }
  // The library sorts by name.
  std::stable_sort(value->entries.begin(), value->entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return std::pair(a.line, a.column) < std::pair(b.line, b.column); });
}

TomlValue Convert(const toml::node& node) {
  TomlValue value;
  PutPlace(node.source(), &value.line, &value.column);
  if (const auto* const boolean = node.as_boolean()) {
    value.sort = Sort::Boolean;
    value.boolean = boolean->get();
  } else if (const auto* const integer = node.as_integer()) {
    value.sort = Sort::Integer;
    value.integer = integer->get();
  } else if (const auto* const real = node.as_floating_point()) {
    value.sort = Sort::Real;
    value.real = real->get();
  } else if (const auto* const text = node.as_string()) {
    value.sort = Sort::Text;
    value.text = text->get();
  } else if (const auto* const day = node.as_date()) {
    value.sort = Sort::Day;
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%04u-%02u-%02u", static_cast<unsigned>(day->get().year), static_cast<unsigned>(day->get().month),
                  static_cast<unsigned>(day->get().day));
    value.text = digits;
  } else if (const toml::array* const list = node.as_array()) {
    value.sort = Sort::List;
    for (const toml::node& item : *list) value.items.push_back(Convert(item));
  } else if (const toml::table* const table = node.as_table()) {
    value.sort = Sort::Table;
    ConvertTable(*table, &value);
  }
  return value;
}

}  // namespace

std::string Describe(TomlValue::Sort sort) {
  switch (sort) {
    case TomlValue::Sort::Boolean:
      return "true or false";
    case TomlValue::Sort::Integer:
    case TomlValue::Sort::Real:
      return "a number";
    case TomlValue::Sort::Text:
      return "a text";
    case TomlValue::Sort::Day:
      return "a date";
    case TomlValue::Sort::List:
      return "a list";
    case TomlValue::Sort::Table:
      return "a table";
    case TomlValue::Sort::Other:
      break;
  }
  return "a date or a time";
}

std::string PlaceOf(const std::string& file, std::uint32_t line, std::uint32_t column) {
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

Result<TomlValue> ReadToml(const std::string& path) {
  std::error_code error;
  // A device or a pipe could block for ever.
  if (!std::filesystem::exists(path, error)) return Status(Exit::Usage, path + ": no such file");
  if (!std::filesystem::is_regular_file(path, error)) return Status(Exit::Usage, path + ": expected a regular file");
  if (std::filesystem::file_size(path, error) > kMostBytes) return Status(Exit::Usage, path + ": expected at most 1 MiB");
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return Status(Exit::Usage, text.status().message());
  return ParseToml(*text, path);
}

Result<TomlValue> ParseToml(std::string_view text, const std::string& name) {
  if (const std::optional<std::uint32_t> line = LineOfDeepKey(text)) {
    return Status(Exit::Usage, name + ":" + std::to_string(*line) + ": " + std::string(kExpectedDots));
  }
  const toml::parse_result parsed = toml::parse(text, std::string_view(name));
  if (parsed) return Convert(parsed.table());
  const toml::source_position at = parsed.error().source().begin;
  std::string why(parsed.error().description());
  std::replace_if(
      why.begin(), why.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return Status(Exit::Usage, PlaceOf(name, at.line, at.column) + ": expected TOML: " + why);
}

}  // namespace cuaudit::harness
