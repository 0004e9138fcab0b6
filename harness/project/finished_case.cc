// SPDX-License-Identifier: MIT
#include "harness/project/finished_case.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/process/files.h"
#include "harness/process/program.h"
#include "harness/sweep/run/rehearsal.h"

namespace cuaudit::harness {
namespace {

using Json = nlohmann::ordered_json;

// Variables of a terminal, a login or a job, which differ from one to the next, and the one that fixes the date in the header of reports.
constexpr std::string_view kNeverMatter[] = {"PWD",
                                             "OLDPWD",
                                             "SHLVL",
                                             "_",
                                             "TERM",
                                             "COLUMNS",
                                             "LINES",
                                             "WINDOWID",
                                             "TMUX_PANE",
                                             "TMUX",
                                             "STY",
                                             "WINDOW",
                                             "KRB5CCNAME",
                                             "INVOCATION_ID",
                                             "JOURNAL_STREAM",
                                             "SYSTEMD_EXEC_PID",
                                             "WSL_INTEROP",
                                             "DBUS_SESSION_BUS_ADDRESS",
                                             "XDG_RUNTIME_DIR",
                                             "SOURCE_DATE_EPOCH"};
// Which GPU CTest has reserved this time is no setting either.
constexpr std::string_view kNeverMatterWith[] = {"CUAUDIT_",
                                                 "CTEST_RESOURCE_GROUP_",
                                                 "SSH_",
                                                 "XDG_SESSION_",
                                                 "TERM_",
                                                 "ITERM_",
                                                 "GNOME_TERMINAL_",
                                                 "KONSOLE_",
                                                 "VSCODE_",
                                                 "GITHUB_",
                                                 "RUNNER_",
                                                 "CI_JOB_",
                                                 "CI_PIPELINE_",
                                                 "SLURM_JOB"};

FinishedCase FromJson(const Json& json) {
  FinishedCase finished;
  finished.digest = json.at("digest").get<std::string>();
  for (const auto& [path, content] : json.at("modules").items()) finished.modules[path] = content.get<std::string>();
  finished.reports = json.at("reports").get<std::vector<std::string>>();
  finished.trials = json.at("trials").get<std::string>();
  finished.line = json.at("line").get<std::string>();
  finished.unused_suppressions = json.at("unused_suppressions").get<std::vector<std::string>>();
  finished.defects = json.at("defects").get<std::uint64_t>();
  finished.exit = static_cast<Exit>(json.at("exit").get<int>());
  return finished;
}

namespace fs = std::filesystem;

std::uint64_t AddFile(const fs::path& file, std::uint64_t hash) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (!error && size > kWholeBytes) {
    const auto changed = fs::last_write_time(file, error).time_since_epoch().count();
    if (!error) hash = HashNumber(static_cast<std::uint64_t>(changed), hash);
  }
  return HashNumber(FileContent(file.string()), hash);
}

// A folder that is a symbolic link within `folder` is not entered, so that no circle is followed.
std::uint64_t AddFolder(const fs::path& folder, std::uint64_t hash) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) hash = AddFile(file, HashText(file.string(), hash));
  return hash;
}

// One number for the content of all files that a case reads by itself, named by the key `inputs`: cuaudit does not see what a program
// opens. Of a folder every regular file below it counts, with its name; a file larger than kWholeBytes also by its modification time.
std::uint64_t InputsContent(const std::vector<std::string>& inputs) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& input : inputs) {
    std::error_code error;
    hash = fs::is_directory(input, error) ? AddFolder(input, hash) : AddFile(input, hash);
  }
  return hash;
}

}  // namespace

std::vector<std::string> ThatMatter(std::vector<std::string> environment) {
  std::erase_if(environment, [](const std::string& line) {
    const std::string name = line.substr(0, line.find('='));
    return std::find(std::begin(kNeverMatter), std::end(kNeverMatter), name) != std::end(kNeverMatter) ||
           std::any_of(std::begin(kNeverMatterWith), std::end(kNeverMatterWith),
                       [&](std::string_view with) { return name.starts_with(with); });
  });
  std::sort(environment.begin(), environment.end());
  return environment;
}

void AddVariables(std::vector<std::string> inherited, Settings* settings) {
  for (const std::string& line : ThatMatter(std::move(inherited)))
    (*settings)["the variable " + TomlString(line.substr(0, line.find('=')))] += "#" + Hex(HashText(line));
}

std::string ConfigDigest(const ProjectCase& one, const std::string& surroundings, std::span<const std::string> inherited) {
  std::uint64_t hash = HashText(surroundings, kHashSeed);
  for (const std::string& line : inherited) hash = HashText(line, hash);
  for (const std::string& word : one.options.program) hash = HashText(word, hash);
  for (const OptionRow& row : OptionRows()) {
    if (row.IsKey() && row.Key() != "jobs") hash = HashText(row.Key() + "=" + ShowValue(row, one.options), hash);
  }
  if (!one.options.inputs.empty()) hash = HashNumber(InputsContent(one.options.inputs), hash);
  if (!one.options.suppressions.empty()) hash = HashNumber(FileContent(one.options.suppressions), hash);
  const std::string& directory = one.options.directory;
  const Result<Program> program = ResolveProgram(one.options.program.front(), directory);
  hash = HashNumber(program.ok() ? FileContent(program->path) : 0, hash);
  for (std::size_t i = 1; i < one.options.program.size(); ++i) {
    const std::string& word = one.options.program[i];
    const std::size_t equals = word.find('=');
    hash = HashNumber(FileContent(PathFrom(directory, word)), hash);
    if (equals != std::string::npos) hash = HashNumber(FileContent(PathFrom(directory, word.substr(equals + 1))), hash);
  }
  return Hex(hash);
}

void AddModules(const std::vector<std::string>& paths, FinishedCase* finished) {
  for (const std::string& path : paths) finished->modules[path] = Hex(FileContent(path));
}

Status WriteFinished(const std::string& file, const FinishedCase& finished) {
  const Json json = {{"digest", finished.digest},   {"modules", finished.modules},
                     {"reports", finished.reports}, {"trials", finished.trials},
                     {"line", finished.line},       {"unused_suppressions", finished.unused_suppressions},
                     {"defects", finished.defects}, {"exit", static_cast<int>(finished.exit)}};
  return WriteFile(file, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", Exit::Failure);
}

std::optional<FinishedCase> ReadFinished(const std::string& file, const std::string& digest, const std::string& directory) {
  const Result<std::string> text = ReadFile(file);
  if (!text.ok()) return std::nullopt;
  FinishedCase finished;
  try {
    finished = FromJson(Json::parse(*text));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (finished.digest != digest) return std::nullopt;
  const auto changed = [](const auto& module) { return Hex(FileContent(module.first)) != module.second; };
  if (std::any_of(finished.modules.begin(), finished.modules.end(), changed)) return std::nullopt;
  std::vector<std::string> files = finished.reports;
  if (!finished.trials.empty()) files.push_back(finished.trials);
  const auto missing = [&](const std::string& name) {
    std::error_code error;
    return !std::filesystem::is_regular_file(directory + "/" + name, error);
  };
  if (std::any_of(files.begin(), files.end(), missing)) return std::nullopt;
  return finished;
}

}  // namespace cuaudit::harness
