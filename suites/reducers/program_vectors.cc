// SPDX-License-Identifier: MIT
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cuaudit/lifecycle.h"
#include "suites/reducers/vectors.h"
#include "suites/support/tool.h"

namespace cuaudit::reducers {
namespace {

// cuaudit ARGUMENTS -- PROGRAM FORM CYCLES; the report, null when there is none.
nlohmann::json Audited(std::vector<std::string> arguments, const std::string& program, const std::string& form,
                       const std::string& cycles = "1") {
  const std::string file = e2e::TemporaryDirectory() + "/report.json";
  arguments.insert(arguments.begin(), e2e::Tool());
  for (const char* const word : {GenuineDriverIsChosen() ? "--driver=real" : "--driver=sim", "--host", "--format=json", "--output"})
    arguments.emplace_back(word);
  for (const std::string& word : {file, std::string("--"), CUAUDIT_REDUCERS "/" + program, form, cycles}) arguments.push_back(word);
  const e2e::CommandResult outcome = e2e::RunCommand(arguments, {.environment = {"CUAUDIT_OPTIONS="}});
  nlohmann::json report = nlohmann::json::parse(e2e::ReadFile(file), nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << outcome.err;
  return report;
}

std::string Lost(const nlohmann::json& report) {
  const auto text = [](const nlohmann::json& of, const char* key) { return of.value(key, std::string()); };
  if (text(report, "outcome") != "clean" && text(report, "outcome") != "findings")
    return text(report, "outcome") + ": " + text(report, "message");
  std::map<std::string, std::uint64_t> counts;
  std::string others;
  for (const nlohmann::json& finding : report["findings"]) {
    const std::string rule = text(finding, "rule");
    const std::string kind = text(finding, "kind");
    if (rule == "leak" || rule == "orphaned" || rule == "growth") {
      counts[kind] += finding["count"].get<std::uint64_t>();
    } else {
      // Once for each object: whether the calls of a loop are one finding or several is for the compiler to say.
      const std::uint64_t objects = kind.empty() ? 1 : finding["count"].get<std::uint64_t>();
      for (std::uint64_t i = 0; i < objects; ++i)
        others.append(others.empty() ? "" : ", ").append(rule).append(kind.empty() ? "" : " ").append(kind);
    }
  }
  std::string lost;
  for (const auto& [kind, count] : counts) lost.append(lost.empty() ? "" : ", ").append(kind).append(" ").append(std::to_string(count));
  return lost.append(lost.empty() || others.empty() ? "" : ", ").append(others);
}

}  // namespace

std::string PerCycle(const std::string& program, const std::string& form) {
  const nlohmann::json report = Audited({"cycles", "--n", "1,4"}, program, form, "{n}");
  if (!report.contains("cycles")) return Lost(report);
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> grown;
  for (const nlohmann::json& row : report["cycles"]["rows"]) {
    if (row["per_cycle"] == 0 || e2e::IsTheDriversOwn(row)) continue;
    auto& [count, bytes] = grown[row["kind"].get<std::string>()];
    count += row["per_cycle"].get<std::uint64_t>();
    bytes += row["bytes_per_cycle"].get<std::uint64_t>();
  }
  std::string text;
  const auto add = [&](const std::string& what) { text.append(text.empty() ? "" : ", ").append(what); };
  for (const auto& [kind, one] : grown)
    add(kind + " " + std::to_string(one.first) + (one.second == 0 ? "" : " (" + std::to_string(one.second) + " bytes)"));
  for (const nlohmann::json& finding : report["findings"]) {
    const std::string rule = finding["rule"].get<std::string>();
    if (rule != "growth") add(rule + " " + finding["kind"].get<std::string>());
  }
  return text;
}

std::string InOneRun(const std::string& program, const std::string& form) { return Lost(Audited({"run", "--allow-left"}, program, form)); }

std::string Replayed(const std::string& fault, const std::string& program, const std::string& form, const std::string& deadline_ms) {
  return Lost(Audited({"replay", "--deadline-ms", deadline_ms, "--fault", fault}, program, form));
}

void ExpectUnwindsCleanly(const std::string& program, const std::string& form) {
  const nlohmann::json report = Audited({"sweep"}, program, form);
  EXPECT_EQ(Lost(report), "") << report["findings"].dump(1);
  EXPECT_GT(report["totals"]["fired"], 0);
}

void ExpectNothingLost(const std::string& program, const std::string& form, const std::string& host_how, std::size_t host_faults) {
  const nlohmann::json host = Audited({"sweep", "--how", host_how}, program, form);
  EXPECT_EQ(Lost(host), "") << host["findings"].dump(1);
  EXPECT_EQ(host["totals"]["fired"], host_faults);
  ExpectUnwindsCleanly(program, form);
}

}  // namespace cuaudit::reducers
