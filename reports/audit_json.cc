// SPDX-License-Identifier: MIT
#include "reports/audit_json.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "reports/json_node.h"
#include "reports/json_reader.h"
#include "reports/message.h"
#include "reports/reasons_json.h"

namespace cuaudit::report {
namespace {

using Json = nlohmann::ordered_json;

Json OfCase(const IndexedCase& one) {
  Json row = {{"name", one.name}, {"tags", one.tags}, {"reports", one.reports}};
  if (!one.trials.empty()) row["trials"] = one.trials;
  if (!one.not_run.empty()) row["not_run"] = one.not_run;
  if (!one.left_out.empty()) row["left_out"] = one.left_out;
  return row;
}

Json OfComparison(const Comparison& comparison) {
  Json gone = Json::array();
  for (const Gone& one : comparison.gone) gone.push_back(GoneToJson(one));
  Json not_run = Json::array();
  for (const NotProved& one : comparison.not_run) {
    not_run.push_back({{"case", one.case_name}, {"mode", Name(one.mode)}, {"because", one.why}});
  }
  Json fail_on = Json::array();
  for (const Change change : comparison.fail_on) fail_on.push_back(words::Name(change));
  Json json{{"base", comparison.base},
            {"base_guid", comparison.base_guid},
            {"fail_on", std::move(fail_on)},
            {"gone", std::move(gone)},
            {"not_run", std::move(not_run)}};
  if (!comparison.warnings.empty()) json["warnings"] = comparison.warnings;
  return json;
}

}  // namespace

std::string ReportFile(const std::string& case_name, Mode mode) { return case_name + "." + std::string(Name(mode)) + ".json"; }

std::string TrialsFile(const std::string& case_name) { return case_name + ".trials.jsonl"; }

bool WriteAuditIndex(const AuditIndex& index, std::ostream& out) {
  Json cases = Json::array();
  for (const IndexedCase& one : index.cases) cases.push_back(OfCase(one));
  Json root = {{"schema", kAuditSchema}, {"cases", std::move(cases)}};
  if (index.comparison.has_value()) root["comparison"] = OfComparison(*index.comparison);
  root["unused_suppressions"] = index.unused_suppressions;
  root["header"] = {{"generated", index.generated}, {"tool_version", index.tool_version}};
  if (!index.project.empty()) root["header"]["project"] = index.project;
  out << root.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return out.good();
}

namespace {
namespace fs = std::filesystem;

bool IsCaseName(std::string_view name) {
  const auto usual = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return std::all_of(name.begin(), name.end(), usual);
}

// A name without a way out of the directory.
bool IsFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

Gone ReadGone(const JsonNode& node) {
  Gone gone;
  const std::optional<Change> change = words::Named<Change>(node["change"].Text());
  if (change == Change::Fixed || change == Change::NotRun) gone.change = *change;
  else node["change"].Expected("fixed or not_run");
  gone.because = node.Maybe("because").Text();
  gone.case_name = node["case"].Text();
  gone.mode = ReadMode(node["mode"]);
  gone.fingerprint = node["fingerprint"].Text();
  gone.rule = ReadRule(node["rule"]);
  gone.title = node["title"].Text();
  return gone;
}

std::set<Change> ReadChanges(const JsonNode& node) {
  std::set<Change> changes;
  node.ForEach([&changes](const JsonNode& one) {
    if (const std::optional<Change> change = words::Named<Change>(one.Text())) changes.insert(*change);
    else one.Expected("new, changed, unchanged, fixed or not_run");
  });
  return changes;
}

struct Index {
  Audit audit;
  std::vector<std::vector<std::string>> files;  // of each case
};

void ReadIndex(const JsonNode& root, Index* index) {
  if (const JsonNode schema = root["schema"]; schema.Count() != 1) schema.Expected("1: a result of cuaudit audit");
  std::set<std::string> names;
  root["cases"].ForEach([&](const JsonNode& node) {
    Case one;
    one.name = node["name"].Text();
    if (!IsCaseName(one.name)) node["name"].Expected("letters, digits, '.', '_' and '-'");
    if (!names.insert(one.name).second) node["name"].Expected("another name in each case");
    one.tags = node["tags"].Texts();
    one.not_run = node.Maybe("not_run").Text();
    std::vector<std::string>& files = index->files.emplace_back();
    node["reports"].ForEach([&files](const JsonNode& file) {
      files.push_back(file.Text());
      if (!IsFileName(files.back())) file.Expected("the name of a file in the same directory");
    });
    index->audit.cases.push_back(std::move(one));
  });
  if (const JsonNode comparison = root.Maybe("comparison"); comparison.present()) {
    Comparison& read = index->audit.comparison.emplace();
    read.base = comparison["base"].Text();
    comparison["gone"].ForEach([&read](const JsonNode& gone) { read.gone.push_back(ReadGone(gone)); });
    read.base_guid = comparison.Maybe("base_guid").Text();
    if (const JsonNode fail_on = comparison.Maybe("fail_on"); fail_on.present()) read.fail_on = ReadChanges(fail_on);
    read.warnings = comparison.Maybe("warnings").Texts();
    comparison.Maybe("not_run").ForEach([&read](const JsonNode& run) {
      read.not_run.push_back({run["case"].Text(), ReadMode(run["mode"]), run["because"].Text()});
    });
  }
  index->audit.unused_suppressions = root.Maybe("unused_suppressions").Texts();
  index->audit.generated = root["header"]["generated"].Text();
  index->audit.tool_version = root["header"]["tool_version"].Text();
  index->audit.project = root["header"].Maybe("project").Text();
}

std::string ReadDirectory(const fs::path& directory, Audit* audit, const ReadSoFar& told) {
  const auto read = [&](const std::string& name, std::string* bytes) { return ReadReportFile((directory / name).string(), bytes); };
  const std::string error = ReadAuditFiles(read, audit, told);
  return error.empty() ? error : (directory / error).string();
}

}  // namespace

std::string ReadReportFile(const std::string& path, std::string* bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return "no such file";
  if (!fs::is_regular_file(status)) return "expected a regular file";
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return error.message();
  if (size > kMostReportBytes) return "expected at most 1 GiB";
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return std::strerror(errno);
  bytes->resize(static_cast<std::size_t>(size));
  file.read(bytes->data(), static_cast<std::streamsize>(bytes->size()));
  bytes->resize(static_cast<std::size_t>(file.gcount()));
  return file.bad() ? "cannot be read" : "";
}

std::string ReadAuditFiles(const ReadNamed& read, Audit* audit, const ReadSoFar& told) {
  std::string bytes;
  if (const std::string error = read(kAuditFile, &bytes); !error.empty()) return std::string(kAuditFile) + ": " + error;
  Failure failure;
  const nlohmann::json document = ParseJson(bytes, &failure);
  Index index;
  if (failure.line.empty()) ReadIndex(JsonNode(&document, &failure), &index);
  if (!failure.line.empty()) return std::string(kAuditFile) + ": " + failure.line;
  std::size_t all = 0;
  for (const auto& files : index.files) all += files.size();
  const bool one = all == 1;
  std::size_t done = 0;
  for (std::size_t i = 0; i < index.files.size(); ++i) {
    for (const std::string& name : index.files[i]) {
      if (told && !one) told("reports", done++, all);
      bytes.clear();
      std::string error = read(name, &bytes);
      if (error.empty()) error = ReadJson(bytes, &index.audit.cases[i].runs.emplace_back(), one ? told : ReadSoFar());
      if (!error.empty()) return name + ": " + error;
    }
  }
  *audit = std::move(index.audit);
  return {};
}

std::string ReadAudit(const std::string& path, Audit* audit, const ReadSoFar& told) {
  std::error_code error;
  if (fs::is_directory(path, error)) return ReadDirectory(path, audit, told);
  if (fs::path(path).filename() == kAuditFile) return ReadDirectory(fs::path(path).parent_path(), audit, told);
  std::string bytes;
  std::string expected = ReadReportFile(path, &bytes);
  Run run;
  if (expected.empty()) expected = ReadJson(bytes, &run, told);
  if (!expected.empty()) return path + ": " + expected;
  *audit = Audit();
  audit->generated = run.generated;
  audit->tool_version = run.tool_version;
  audit->cases.emplace_back().runs.push_back(std::move(run));
  return {};
}

}  // namespace cuaudit::report
