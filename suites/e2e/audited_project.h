// SPDX-License-Identifier: MIT
// audited_project.h: a cuaudit.toml of a test, and what `cuaudit audit` makes of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e {

// An audit whose cases are in `file` and whose results go to `out`.
struct Project {
  std::string folder = TemporaryDirectory();
  std::string file = folder + "/cuaudit.toml";
  std::string out = folder + "/results";

  explicit Project(const std::string& text) { WriteFile(file, text); }

  std::vector<std::string> Command(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {Tool(), "audit", "--config", file, "--out", out};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  CommandResult Audit(const std::vector<std::string>& arguments = {}, const std::vector<std::string>& environment = {}) const {
    std::vector<std::string> variables = {"SOURCE_DATE_EPOCH=0"};
    variables.insert(variables.end(), environment.begin(), environment.end());
    return RunCommand(Command(arguments), {.environment = variables, .deadline_ms = 200000});
  }
  nlohmann::json Index() const { return nlohmann::json::parse(ReadFile(out + "/audit.json"), nullptr, false); }
  nlohmann::json Report(const std::string& name) const { return nlohmann::json::parse(ReadFile(out + "/" + name), nullptr, false); }
};

inline std::string CaseOf(const std::string& name, const std::string& program, const std::string& more = "") {
  return "[case." + name + "]\ndriver = \"sim\"\ncommand = [\"" + Program(program) + "\"]\n" + more;
}

inline nlohmann::json RowOf(const nlohmann::json& index, const std::string& name) {
  for (const nlohmann::json& row : index["cases"]) {
    if (row["name"] == name) return row;
  }
  return nullptr;
}

}  // namespace cuaudit::e2e
