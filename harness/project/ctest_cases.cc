// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "harness/options/option_rows.h"
#include "harness/project/init_file.h"
#include "harness/project/project.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDeadline = "deadline_ms";
constexpr const char* kJobs = "jobs";

// The names of cases. They depend on the order of the tests only where two tests are the same in name and command.
class Names {
 public:
  // Throws Json::exception.
  explicit Names(const Json& tests) {
    for (const Json& test : tests) {
      const std::string name = test.at("name").get<std::string>();
      ++tests_by_case_[CaseNameFrom(name)];
      ++tests_by_name_[name];
    }
  }

  // "pool"; with a number made of the whole name where it was cut, or where several tests would have this name.
  std::string Take(const std::string& test, const std::vector<std::string>& command) {
    std::string name = CaseNameFrom(test);
    if (tests_by_case_.at(name) > 1 || test.size() > kMostOfText) {
      std::uint64_t hash = HashText(test, kHashSeed);
      if (tests_by_name_.at(test) > 1) {  // in two folders of the build
        for (const std::string& word : command) hash = HashText(word, hash);
      }
      name += "-" + Hex(hash).substr(0, kDigits);
    }
    std::string unused = name;
    for (std::size_t number = 2; !used_.insert(unused).second; ++number) unused = name + "-" + std::to_string(number);
    return unused;
  }

 private:
  static constexpr std::size_t kDigits = 8;

  std::map<std::string, std::size_t> tests_by_case_;
  std::map<std::string, std::size_t> tests_by_name_;
  std::set<std::string> used_;
};

// TIMEOUT is in seconds; 0: none.
void SetDeadline(double seconds, const std::string& build, ProjectCase* one) {
  constexpr double kMsPerSecond = 1000;
  const OptionRow& row = *RowOfKey(kDeadline);
  if (!(seconds > 0)) return;
  const double most = static_cast<double>(row.highest) / kMsPerSecond;
  one->options.deadline_ms = seconds >= most ? row.highest : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(seconds * kMsPerSecond));
  one->from[kDeadline] = build;
}

// Whether the property says that the test may not run beside others, or not before another has run.
bool IsForOneAtATime(const std::string& name, const Json& value) {
  if (name == "RUN_SERIAL") return value.get<bool>();
  return name == "RESOURCE_LOCK" || name == "DEPENDS" || name == "FIXTURES_REQUIRED";
}

// Throws Json::exception for what CTest would not write.
CtestCases Read(const Json& root, const std::string& build, const ProjectCase& defaults) {
  CtestCases all;
  Names names(root.at("tests"));
  for (const Json& test : root.at("tests")) {
    ProjectCase one = defaults;
    one.place = build;
    bool disabled = false;
    bool will_fail = false;
    bool resources = false;
    if (test.contains("command")) one.options.program = test.at("command").get<std::vector<std::string>>();
    for (const Json& property : test.value("properties", Json::array())) {
      const std::string name = property.at("name").get<std::string>();
      const Json& value = property.at("value");
      if (name == "LABELS") one.tags = value.get<std::vector<std::string>>();
      if (name == "WORKING_DIRECTORY") one.options.directory = value.get<std::string>();
      if (name == "DISABLED") disabled = value.get<bool>();
      if (name == "WILL_FAIL") will_fail = value.get<bool>();
      if (name == "RESOURCE_GROUPS") resources = true;
      if (IsForOneAtATime(name, value)) {
        one.options.jobs = 1;
        one.from[kJobs] = build;
      }
      if (name == "TIMEOUT") SetDeadline(value.get<double>(), build, &one);
      if (name != "ENVIRONMENT") continue;
      for (const std::string& line : value.get<std::vector<std::string>>()) PutVariable(line, build, &one);
    }
    one.name = names.Take(test.at("name").get<std::string>(), one.options.program);
    for (const char* const key : {"command", "tags", "directory"}) one.from[key] = build;
    if (disabled || one.options.program.empty() || one.options.program.front().empty()) {
      ++all.left_out;
    } else if (will_fail) {
      ++all.will_fail;
    } else {
      all.resources += resources ? 1 : 0;
      all.cases.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace

Result<CtestCases> CasesOfCtest(std::string_view json, const std::string& build, const ProjectCase& defaults) {
  try {
    CtestCases all = Read(Json::parse(json), build, defaults);
    if (all.cases.empty()) return Status(Exit::Usage, OptionFlag{"--ctest"}, build + ": no test that can run, expected a build with tests");
    return all;
  } catch (const Json::exception&) {
    return Status(Exit::Usage, OptionFlag{"--ctest"}, build + ": ctest wrote no list of tests, expected CMake 3.14 or later");
  }
}

}  // namespace cuaudit::harness
