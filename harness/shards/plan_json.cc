// SPDX-License-Identifier: MIT
// The plan of a round as JSON and back.
#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "harness/options/option_rows.h"
#include "harness/project/case_settings.h"
#include "harness/shards/shard_plan.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPlanSchema = "cuaudit.plan/1";

struct Unexpected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void Require(bool holds, const char* expected) {
  if (!holds) throw Unexpected(expected);
}

Json OptionsJson(const Options& options) {
  const Options defaults;
  Json json = Json::object();
  for (const OptionRow& row : OptionRows()) {
    if (!row.IsKey()) continue;
    if (row.text != nullptr && options.*row.text != defaults.*row.text) json[row.Key()] = options.*row.text;
    if (row.number != nullptr && options.*row.number != defaults.*row.number) json[row.Key()] = options.*row.number;
    if (row.flagged != nullptr && options.*row.flagged) json[row.Key()] = true;
    if (row.list != nullptr && !(options.*row.list).empty()) json[row.Key()] = options.*row.list;
  }
  return json;
}

std::uint64_t Count(const Json& json, std::uint64_t most) {
  Require(json.is_number_unsigned() && json.get<std::uint64_t>() <= most, "a number in its range");
  return json.get<std::uint64_t>();
}

Options ReadOptions(const Json& json) {
  Require(json.is_object(), "the settings of a case as an object");
  Options options;
  options.command = kSweep;
  for (const auto& [key, value] : json.items()) {
    const OptionRow* const row = RowOfKey(key);
    Require(row != nullptr, "settings that this version knows");
    if (row->text != nullptr) options.*row->text = value.get<std::string>();
    if (row->number != nullptr) {
      options.*row->number = Count(value, row->highest);
      Require(options.*row->number >= row->lowest, "a number in its range");
    }
    if (row->flagged != nullptr) options.*row->flagged = value.get<bool>();
    if (row->list != nullptr) options.*row->list = value.get<std::vector<std::string>>();
  }
  return options;
}

std::uint64_t DigestOf(const Json& json) {
  const std::optional<std::uint64_t> digest = ParseDigest(json.get_ref<const std::string&>());
  Require(digest.has_value(), "a digest of 16 hexadecimal digits");
  return *digest;
}

Json CaseJson(const PlannedCase& one) {
  Json runs = Json::object();
  for (const auto& [name, digest] : one.runs) runs[name] = Hex(digest);
  return {{"name", one.name},
          {"tags", one.tags},
          {"program", one.options.program},
          {"options", OptionsJson(one.options)},
          {"cycles", one.cycles},
          {"subject", Hex(one.subject)},
          {"first", one.first},
          {"trials", one.trials},
          {"digest", Hex(one.digest)},
          {"weight", one.weight},
          {"runs", std::move(runs)}};
}

PlannedCase ReadCase(const Json& json) {
  PlannedCase one;
  one.name = json.at("name").get<std::string>();
  Require(IsCaseName(one.name), kCaseName);
  one.tags = json.at("tags").get<std::vector<std::string>>();
  one.options = ReadOptions(json.at("options"));
  one.options.program = json.at("program").get<std::vector<std::string>>();
  Require(!one.options.program.empty(), "a program");
  one.cycles = json.at("cycles").get<std::string>();
  one.subject = DigestOf(json.at("subject"));
  one.first = Count(json.at("first"), std::uint64_t{1} << 40U);
  one.trials = Count(json.at("trials"), std::uint64_t{1} << 40U);
  one.digest = DigestOf(json.at("digest"));
  one.weight = Count(json.at("weight"), std::uint64_t{1} << 40U);
  Require(one.weight != 0, "a weight from 1");
  const Json& runs = json.at("runs");
  Require(runs.is_object(), "the digests of the fault-free runs as an object");
  for (const auto& [name, digest] : runs.items()) one.runs[name] = DigestOf(digest);
  return one;
}

}  // namespace

bool CanBeWritten(const PlannedCase& one) {
  try {
    return !CaseJson(one).dump().empty();
  } catch (const std::exception&) {
    return false;
  }
}

std::string FormatShardPlan(const ShardPlan& plan) {
  Json cases = Json::array();
  for (const PlannedCase& one : plan.cases) cases.push_back(CaseJson(one));
  const Json json = {{"schema", kPlanSchema}, {"tool", plan.tool},          {"project", plan.project},  {"round", plan.round},
                     {"shards", plan.shards}, {"before", Hex(plan.before)}, {"cases", std::move(cases)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void ShardPlan::Seal() { digest = HashText(FormatShardPlan(*this)); }

Result<ShardPlan> ParseShardPlan(std::string_view text, const std::string& name) {
  ShardPlan plan;
  try {
    const Json json = Json::parse(text);
    Require(json.is_object() && json.value("schema", "") == kPlanSchema, "a plan: \"schema\": \"cuaudit.plan/1\"");
    plan.tool = json.at("tool").get<std::string>();
    plan.project = json.at("project").get<bool>();
    plan.round = Count(json.at("round"), 1000);
    plan.shards = Count(json.at("shards"), kMostShards);
    Require(plan.shards != 0, "a number of shards from 1");
    plan.before = DigestOf(json.at("before"));
    std::set<std::string> names;
    for (const Json& one : json.at("cases")) {
      plan.cases.push_back(ReadCase(one));
      Require(names.insert(plan.cases.back().name).second, "each case once");
    }
    Require(!plan.cases.empty(), "at least one case");
  } catch (const Unexpected& error) {
    return Status(Exit::Usage, name + ": expected " + error.what());
  } catch (const std::exception&) {
    return Status(Exit::Usage, name + ": expected a plan as cuaudit plan writes it, whole");
  }
  plan.Seal();
  return plan;
}

}  // namespace cuaudit::harness
