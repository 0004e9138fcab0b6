// SPDX-License-Identifier: MIT
// toml_options.h: the value of an option in a TOML file: in cuaudit.toml and in the file of --config.
//
//   Errors    "FILE:LINE:COL: KEY: found WHAT, expected WHAT"
//   Threads   one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "harness/options/option_rows.h"
#include "harness/process/status.h"
#include "harness/process/toml_file.h"

namespace cuaudit::harness {

// True for a text that can be an argument or a variable of a program.
bool IsText(const TomlValue& value);

// The items of a list, numbers as somebody would type them.
std::optional<std::vector<std::string>> AsTexts(const TomlValue& value);

// NAME=VALUE lines of { NAME = "value" } or ["NAME=value"].
std::optional<std::vector<std::string>> AsVariables(const TomlValue& value);
bool IsVariable(const std::string& line);

// The empty text that is the value or stands in its list: no key takes one, as no flag does. Null for none.
const TomlValue* EmptyText(const TomlValue& value);

// The value of `entry` is none for its key.
Status WrongValue(const std::string& file, const TomlEntry& entry, const std::string& expected);

// The value of an option as the words that a command line would have: one, or any number for a list.
Result<std::vector<std::string>> WordsOf(const OptionRow& row, const std::string& file, const TomlEntry& entry);

// The file of --config, a TOML table for each command, as CLI11 takes it. Keys are flags without their dashes.
class ConfigFile : public CLI::Config {
 public:
  // Reads a file. Empty: each of its keys is an option, with a value for it; else what is wrong with the first that is not.
  std::string Read(const std::string& path);

  // What Read has read, whatever the stream.
  std::vector<CLI::ConfigItem> from_config(std::istream&) const override { return items; }
  // Nothing writes such a file.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }
};

}  // namespace cuaudit::harness
