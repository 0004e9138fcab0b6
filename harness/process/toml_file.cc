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
// Before the library reports a key that begins wrongly ("[{"), it asserts that there is none, or has the compiler assume so (NDEBUG).
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "harness/process/files.h"

namespace cuaudit::harness {
namespace {

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

std::string Describe(const TomlValue& value) {
  if (value.sort == TomlValue::Sort::Integer) return std::to_string(value.integer);
  if (value.sort == TomlValue::Sort::Boolean) return value.boolean ? "true" : "false";
  if (value.sort == TomlValue::Sort::List && value.items.empty()) return "an empty list";
  return Describe(value.sort);
}

std::string TomlString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += std::string("\\") + c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04X", static_cast<unsigned>(byte));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string PlaceOf(const std::string& file, std::uint32_t line, std::uint32_t column) {
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

Result<TomlValue> ReadToml(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Status(Exit::Usage, path + ": no such file");
  const Result<std::string> text = ReadFile(path, kMostTomlMib);
  if (!text.ok()) return text.status();
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

namespace {

// Where the string ends whose first quote is at `at`: behind its last quote. A string of one line ends with the line at the latest.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool long_one = text.substr(at, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''");
  const std::string_view end = text.substr(at, long_one ? 3 : 1);
  for (std::size_t i = at + end.size(); i < text.size(); ++i) {
    if (!long_one && text[i] == '\n') return i;
    if (quote == '"' && text[i] == '\\' && i + 1 < text.size() && (long_one || text[i + 1] != '\n')) {
      ++i;
    } else if (text.substr(i).starts_with(end)) {
      return i + end.size();
    }
  }
  return text.size();
}

bool IsInKey(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == ' ' || c == '\t';
}

}  // namespace

std::optional<std::uint32_t> LineOfDeepKey(std::string_view text) {
  std::size_t braces = 0;
  std::size_t around = 0;  // dots of the keys in open braces
  std::size_t dots = 0;    // of the key that may begin here; a number has one, too
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = EndOfString(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    ++at;
    if (c == '.') {
      if (around + ++dots > kMostDotsInKey) {
        const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
        return static_cast<std::uint32_t>(line + 1);
      }
    } else if (!IsInKey(c)) {
      if (c == '=' && braces != 0) around += dots;
      dots = 0;
      if (c == '{') ++braces;
      if (c == '}' && braces != 0 && --braces == 0) around = 0;
    }
  }
  return {};
}

}  // namespace cuaudit::harness
