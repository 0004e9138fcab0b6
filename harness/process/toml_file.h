// SPDX-License-Identifier: MIT
// toml_file.h: a TOML file as plain values, each with its place in the file.
//
//   Threads   one thread.
//   Units     lines and columns are counted from 1.
//   Errors    one line: "FILE:LINE:COL: what is wrong"; the file is missing, no regular file, larger than 1 MiB, or no TOML.
//   Source    toml++, which only toml_file.cc includes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"

namespace cuaudit::harness {

struct TomlEntry;

struct TomlValue {
  enum class Sort : std::uint8_t { Boolean, Integer, Real, Text, Day, List, Table, Other };

  Sort sort = Sort::Other;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;  // of a day "2027-03-31"
  std::vector<TomlValue> items;
  std::vector<TomlEntry> entries;  // of a table, in the order of the file
};

struct TomlEntry {
  std::string key;
  std::uint32_t line = 0;  // of the key
  std::uint32_t column = 0;
  TomlValue value;
};

// What the value is, for messages: "a number", "a list"; of a value also "3", "false", "an empty list".
std::string Describe(TomlValue::Sort sort);
std::string Describe(const TomlValue& value);

// "a.toml:3:7"
std::string PlaceOf(const std::string& file, std::uint32_t line, std::uint32_t column);

// A text as a string of TOML: in quotes, with escapes for what TOML does not take as it is.
std::string TomlString(std::string_view text);

inline constexpr std::uint64_t kMostTomlMib = 1;

// The table that is the whole file.
Result<TomlValue> ReadToml(const std::string& path);

// The same of a text. `name` stands in errors in the place of the file.
Result<TomlValue> ParseToml(std::string_view text, const std::string& name);

// Finds keys of a TOML text that are nested too deep for toml++, which recurses once for each dot of a key.
//
//   Units     lines are counted from 1.
//   Errors    none: any bytes are a text.

inline constexpr std::size_t kMostDotsInKey = 64;
inline constexpr std::string_view kExpectedDots = "expected at most 64 dots in a key";

// The first line with more dots in a key or in a [header]. The keys of an inline table and of those inside it count together.
std::optional<std::uint32_t> LineOfDeepKey(std::string_view text);

}  // namespace cuaudit::harness
