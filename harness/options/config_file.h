// SPDX-License-Identifier: MIT
// config_file.h: the file of --config, a TOML table for each command, as CLI11 takes it. Keys are flags without their dashes.
//
//   Errors    one line: "FILE:LINE:COL: KEY: what is wrong".
//   Threads   one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace cuaudit::harness {

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
