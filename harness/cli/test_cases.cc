// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cli/session.h"
#include "harness/process/process.h"
#include "harness/process/program.h"
#include "harness/process/work_dir.h"
#include "harness/project/project.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kDeadlineMs = 60000;

Result<std::string> ListTests(const std::string& build) {
  std::error_code error;
  if (!std::filesystem::is_directory(build, error)) return Status(Exit::Usage, OptionFlag{"--ctest"}, build + ": no such directory");
  Result<Program> ctest = ResolveProgram("ctest");
  if (!ctest.ok()) return Status(Exit::Environment, OptionFlag{"--ctest"}, ctest.status().message());
  Result<std::vector<std::string>> environment = CurrentEnvironment();
  if (!environment.ok()) return environment.status();
  const Result<WorkDir> dir = WorkDir::Open("");
  if (!dir.ok()) return dir.status();
  Launch launch;
  launch.path = ctest->path;
  launch.arguments = {"ctest", "--show-only=json-v1"};
  launch.directory = build;
  launch.environment = std::move(*environment);
  launch.output = dir->File("tests.json");
  launch.deadline_ms = kDeadlineMs;
  int interrupted = 0;
  const Result<Ending> ending = RunToEnd(launch, &interrupted);
  Result<std::string> text = ending.ok() ? ReadFile(launch.output) : ending.status();
  dir->Remove();
  if (ending.ok() && (ending->exit_status != 0 || ending->signal != 0))
    return Status(Exit::Usage, OptionFlag{"--ctest"}, build + ": ctest failed");
  return text;
}

// The [defaults] of --config hold for the tests, if that file is there.
Result<std::vector<ProjectCase>> ReadTests(const Options& options) {
  std::error_code error;
  if (options.config_file != Options().config_file && !std::filesystem::exists(options.config_file, error)) {
    return Status(Exit::Usage, OptionFlag{"--config"}, options.config_file + ": no such file");
  }
  Result<ProjectCase> defaults = ReadDefaults(options.config_file);
  if (!defaults.ok()) return defaults.status();
  const Result<std::string> text = ListTests(options.ctest);
  if (!text.ok()) return text.status();
  Result<CtestCases> all = CasesOfCtest(*text, options.ctest, *defaults);
  if (!all.ok()) return all.status();
  if (all->left_out != 0) Say("warning: tests that are disabled or not built: " + std::to_string(all->left_out));
  if (all->will_fail != 0) Say("warning: tests that are to fail (WILL_FAIL) are left out: " + std::to_string(all->will_fail));
  if (all->resources != 0 && std::getenv("CTEST_RESOURCE_GROUP_COUNT") == nullptr) {
    Say("warning: tests with RESOURCE_GROUPS get no resources, as with ctest without --resource-spec-file: " +
        std::to_string(all->resources));
  }
  return std::move(all->cases);
}

}  // namespace

Result<std::vector<ProjectCase>> ReadCases(const Options& options) {
  Result<std::vector<ProjectCase>> cases = options.ctest.empty() ? ReadProject(options.config_file) : ReadTests(options);
  if (!cases.ok()) return cases;
  const Result<Options> variable = ParseAuditVariable();
  if (!variable.ok()) return variable.status();
  for (ProjectCase& one : *cases) {
    ApplyGiven(*variable, kAuditVariable, &one);
    ApplyGiven(options, "command line", &one);
    Status usable = CheckCase(one);
    if (usable.ok()) usable = AtItsPlace(one, WorldText(one.options).status());
    if (!usable.ok()) return usable;
  }
  return cases;
}

}  // namespace cuaudit::harness
