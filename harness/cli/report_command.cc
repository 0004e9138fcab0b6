// SPDX-License-Identifier: MIT
// `report`: makes any format of results that are there already.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/compare/result_files.h"
#include "harness/options/report_files.h"

namespace cuaudit::harness {
namespace {

// A report of one command has no case. Beside others it is named after its file: "sweep.json" -> "sweep".
std::string NameAfter(const std::string& path) {
  const std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  return file.has_filename() ? file.stem().string() : file.parent_path().filename().string();
}

// Cases of all results in the order in which they were given. The first result's comparison is kept, since two have two bases.
Result<report::Audit> ReadAll(const std::vector<std::string>& paths) {
  report::Audit all;
  for (const std::string& path : paths) {
    Result<report::Audit> audit = ReadResult(path);
    if (!audit.ok()) return audit;
    if (paths.size() == 1) return audit;
    for (report::Case& one : audit->cases) {
      if (one.name.empty()) one.name = NameAfter(path);
      const auto same = [&](const report::Case& other) { return other.name == one.name; };
      if (std::any_of(all.cases.begin(), all.cases.end(), same)) {
        return Status(Exit::Usage, path + ": case " + one.name + ": expected each case in one result only");
      }
      all.cases.push_back(std::move(one));
    }
    if (audit->comparison && all.comparison) return Status(Exit::Usage, path + ": expected at most one result with a comparison");
    if (audit->comparison) all.comparison = std::move(audit->comparison);
    std::move(audit->unused_suppressions.begin(), audit->unused_suppressions.end(), std::back_inserter(all.unused_suppressions));
    all.from_archive = all.from_archive || audit->from_archive;
    if (all.generated.empty()) all.generated = audit->generated;
    if (all.tool_version.empty()) all.tool_version = audit->tool_version;
    if (&path == &paths.front()) all.project = audit->project;
    if (all.project != audit->project) all.project.clear();
  }
  return all;
}

}  // namespace

Exit ReportCommand(const Options& options) {
  for (const Output& output : options.outputs) {
    const Status writable = CheckOutput(output.file, output.file == options.output ? "--output" : "--format");
    if (!writable.ok()) return Refuse(writable);
  }
  const Result<report::Audit> audit = ReadAll(options.operands);
  if (!audit.ok()) return Refuse(audit.status());
  Exit exit = Exit::Clean;
  for (const Output& output : options.outputs) {
    const Status written = WriteAudit(*audit, output);
    if (written.ok()) continue;
    Say(written.message());
    exit = written.exit();
  }
  return exit;
}

}  // namespace cuaudit::harness
