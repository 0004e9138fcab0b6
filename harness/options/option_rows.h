// SPDX-License-Identifier: MIT
// option_rows.h: the rows of options.def as values, for who reads or shows options by name instead of by flag.
//
//   Errors    SetOption answers what was expected: "a number from 1 to 2".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/options/options.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {

struct OptionRow {
  enum class Sort : std::uint8_t { Choice, Text, Number, Switch, List };

  Sort sort = Sort::Text;
  const char* flag = "";
  const char* operand = "";  // of a choice: the words, with commas
  std::uint32_t commands = 0;
  Echo echo = Echo::kQuiet;
  const char* help = "";
  std::uint64_t lowest = 0;  // of a number
  std::uint64_t highest = 0;
  // Where the value is; only the one of the row's sort is set.
  std::string Options::*text = nullptr;
  std::uint64_t Options::*number = nullptr;
  bool Options::*flagged = nullptr;
  std::vector<std::string> Options::*list = nullptr;

  bool IsKey() const { return (commands & kCase) != 0; }
  // The name in cuaudit.toml: the flag without dashes in front, with '_' for '-': "deadline_ms".
  std::string Key() const;
};

std::span<const OptionRow> OptionRows();

// The row of a key of cuaudit.toml; null when there is none.
const OptionRow* RowOfKey(std::string_view key);
// The row of a flag of the command line. Null when there is none.
const OptionRow* RowOfFlag(std::string_view flag);

// What a value of this row looks like: "one of default, all", "a number from 1 to 2", "true or false".
std::string Expected(const OptionRow& row);

// The value in the form of cuaudit.toml: "\"sim\"", "2", "true", "[\"a\", \"b\"]".
std::string ShowValue(const OptionRow& row, const Options& options);

// The options by which trials are planned, run and judged, by flag: what two sweeps must share to continue each other.
Settings SettingsOf(const Options& options);

// Copies one option.
void CopyOption(const OptionRow& row, const Options& from, Options* to);

}  // namespace cuaudit::harness
