// SPDX-License-Identifier: MIT
// A sweep of one program by `cuaudit plan`, `run-shard` and `merge`, and the same sweep by one machine.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e {

inline const std::vector<std::string>& Subject() {
  static const std::vector<std::string> words = {Program("steps"), "46", "leaking"};
  return words;
}

inline CommandResult Cuaudit(std::vector<std::string> arguments, const How& how = {}) {
  arguments.insert(arguments.begin(), Tool());
  return RunCommand(arguments, how);
}

inline CommandResult Plan(const std::string& plan, std::vector<std::string> options, const std::vector<std::string>& program = Subject()) {
  options.insert(options.begin(), {"plan", "--to", plan, "--driver=sim"});
  options.emplace_back("--");
  options.insert(options.end(), program.begin(), program.end());
  return Cuaudit(options);
}

inline std::string Shard(const std::string& plan, int round, int number) {
  const std::string digits = std::to_string(number);
  return plan + "/shards/" + std::to_string(round) + "-" + std::string(4 - digits.size(), '0') + digits + ".shard";
}

// All shards of both rounds.
inline void RunAll(const std::string& plan, int shards) {
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < shards; ++i) {
      const CommandResult ran = Cuaudit({"run-shard", plan, std::to_string(i), "--round", std::to_string(round)});
      ASSERT_EQ(ran.exit, 0) << ran.err;
    }
    if (round == 2) break;
    const CommandResult next = Cuaudit({"plan", plan});
    ASSERT_EQ(next.exit, 0) << next.err;
  }
}

struct Report {
  int exit = 0;
  std::string bytes;  // without the header
  std::string trials;
  std::string err;
};

inline std::string WithoutHeader(const std::string& file) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(ReadFile(file), nullptr, false);
  if (json.is_object()) json.erase("header");
  return json.dump(1);
}

inline Report Merge(const std::string& plan, std::vector<std::string> shards = {}) {
  const std::string directory = TemporaryDirectory();
  std::vector<std::string> words = {"merge", plan, "--format", "json=" + directory + "/report.json", "--trials", directory + "/trials"};
  words.insert(words.begin() + 2, shards.begin(), shards.end());
  const CommandResult merged = Cuaudit(words);
  return {merged.exit, WithoutHeader(directory + "/report.json"), ReadFile(directory + "/trials"), merged.err};
}

inline Report Local(std::vector<std::string> options = {}) {
  const std::string directory = TemporaryDirectory();
  options.insert(options.begin(),
                 {"sweep", "--driver=sim", "--format", "json=" + directory + "/report.json", "--trials", directory + "/trials"});
  options.emplace_back("--");
  options.insert(options.end(), Subject().begin(), Subject().end());
  const CommandResult swept = Cuaudit(options);
  return {swept.exit, WithoutHeader(directory + "/report.json"), ReadFile(directory + "/trials"), swept.err};
}

}  // namespace cuaudit::e2e
