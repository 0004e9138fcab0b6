// SPDX-License-Identifier: MIT
#include "harness/project/ctest_cases.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "harness/project/init_file.h"

namespace cuaudit::harness {
namespace {

using Json = nlohmann::ordered_json;

// "pool", then "pool-2": tests in two folders of a build may have one name.
std::string Unused(const std::string& name, std::set<std::string>* used) {
  std::string unused = name;
  for (std::size_t number = 2; !used->insert(unused).second; ++number) unused = name + "-" + std::to_string(number);
  return unused;
}

// Throws Json::exception for what CTest would not write.
CtestCases Read(const Json& root, const std::string& build, const ProjectCase& defaults) {
  CtestCases all;
  std::set<std::string> used;
  for (const Json& test : root.at("tests")) {
    ProjectCase one = defaults;
    one.place = build;
    one.name = Unused(CaseNameFrom(test.at("name").get<std::string>()), &used);
    bool disabled = false;
    if (test.contains("command")) one.options.program = test.at("command").get<std::vector<std::string>>();
    for (const Json& property : test.value("properties", Json::array())) {
      const std::string name = property.at("name").get<std::string>();
      const Json& value = property.at("value");
      if (name == "LABELS") one.tags = value.get<std::vector<std::string>>();
      if (name == "WORKING_DIRECTORY") one.options.directory = value.get<std::string>();
      if (name == "DISABLED") disabled = value.get<bool>();
      if (name != "ENVIRONMENT") continue;
      for (std::string& line : value.get<std::vector<std::string>>()) one.options.environment.push_back(std::move(line));
    }
    for (const char* const key : {"command", "tags", "directory"}) one.from[key] = build;
    if (disabled || one.options.program.empty() || one.options.program.front().empty()) {
      ++all.left_out;
    } else {
      all.cases.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace

Result<CtestCases> CasesOfCtest(std::string_view json, const std::string& build, const ProjectCase& defaults) {
  try {
    CtestCases all = Read(Json::parse(json), build, defaults);
    if (all.cases.empty()) return Status(Exit::Usage, "--ctest: " + build + ": no test that can run, expected a build with tests");
    return all;
  } catch (const Json::exception&) {
    return Status(Exit::Usage, "--ctest: " + build + ": ctest wrote no list of tests, expected CMake 3.14 or later");
  }
}

}  // namespace cuaudit::harness
