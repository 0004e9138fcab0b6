// SPDX-License-Identifier: MIT
#include "harness/project/project.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "harness/process/program.h"
#include "harness/process/status.h"

namespace cuaudit::harness {
namespace {

using Sort = TomlValue::Sort;

class Reader {
 public:
  // `defaults` holds the settings of the files that include this one.
  Status Read(const std::string& file, ProjectCase defaults) {
    std::error_code error;
    const std::string itself = std::filesystem::weakly_canonical(file, error).string();
    open_.push_back(itself);
    const Result<TomlValue> root = ReadRoot(file, &defaults);
    if (!root.ok()) return root.status();
    for (const TomlEntry& entry : root->entries) {
      Status read;
      if (entry.key == "include") read = ReadIncludes(entry.value, file, defaults);
      if (entry.key == "case") read = ReadCases(entry.value, file, defaults);
      if (!read.ok()) return read;
    }
    open_.pop_back();
    return {};
  }

  std::vector<ProjectCase> TakeCases() { return std::move(cases_); }

  // The file, with its own defaults over these: they hold for its includes and cases wherever they stand.
  static Result<TomlValue> ReadRoot(const std::string& file, ProjectCase* defaults) {
    Result<TomlValue> root = ReadToml(file);
    if (!root.ok()) return root;
    Status usable = CheckKeys(*root, file);
    for (const TomlEntry& entry : root->entries) {
      if (usable.ok() && entry.key == "defaults") usable = ApplyTable(entry.value, file, Section::Defaults, defaults);
    }
    return usable.ok() ? std::move(root) : Result<TomlValue>(std::move(usable));
  }

  static Status CheckKeys(const TomlValue& root, const std::string& file) {
    const std::vector<std::string> known = {"case", "defaults", "include"};
    for (const TomlEntry& entry : root.entries) {
      const std::string place = PlaceOf(file, entry.line, entry.column) + ": " + entry.key + ": ";
      if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
        return {Exit::Usage, place + "no such key, expected include, [defaults] or [case.NAME]" + DidYouMean(entry.key, known)};
      }
      const Sort wanted = entry.key == "include" ? Sort::List : Sort::Table;
      if (entry.value.sort != wanted) {
        return {Exit::Usage, place + "found " + Describe(entry.value) + ", expected " +
                                 (entry.key == "include"    ? "a list of files: [\"other.toml\"]"
                                  : entry.key == "defaults" ? "a section: [defaults]"
                                                            : "a section: [case.NAME]")};
      }
    }
    return {};
  }

 private:
  Status ReadIncludes(const TomlValue& files, const std::string& file, const ProjectCase& defaults) {
    for (const TomlValue& one : files.items) {
      const std::string place = PlaceOf(file, one.line, one.column) + ": include: ";
      if (one.sort != Sort::Text || one.text.empty() || one.text.find('\0') != std::string::npos) {
        return {Exit::Usage, place + "found " + Describe(one) + ", expected the name of a file"};
      }
      const std::string path = PathFrom(FolderOf(file), one.text);
      std::error_code error;
      const std::string itself = std::filesystem::weakly_canonical(path, error).string();
      if (std::find(open_.begin(), open_.end(), itself) != open_.end()) {
        return {Exit::Usage, place + path + ": includes itself, expected a file that does not lead back here"};
      }
      if (!std::filesystem::exists(path, error)) return {Exit::Usage, place + path + ": no such file"};
      Status read = Read(path, defaults);
      if (!read.ok()) return read;
    }
    return {};
  }

  Status ReadCases(const TomlValue& table, const std::string& file, const ProjectCase& defaults) {
    for (const TomlEntry& entry : table.entries) {
      ProjectCase one = defaults;
      one.name = entry.key;
      one.place = PlaceOf(file, entry.line, entry.column);
      if (!IsCaseName(one.name)) return {Exit::Usage, one.place + ": case '" + one.name + "': expected " + kCaseName};
      if (entry.value.sort != Sort::Table)
        return {Exit::Usage, one.place + ": found " + Describe(entry.value) + ", expected a section: [case.NAME]"};
      if (!one.from.contains("directory")) {
        one.options.directory = FolderOf(file);
        if (!one.options.directory.empty()) one.from["directory"] = "the folder of " + file;
      }
      Status applied = ApplyTable(entry.value, file, Section::Case, &one);
      if (!applied.ok()) return applied;
      const auto [before, is_new] = places_.emplace(one.name, one.place);
      if (!is_new) return {Exit::Usage, one.place + ": case " + one.name + ": expected another name, " + before->second + " has this one"};
      cases_.push_back(std::move(one));
    }
    return {};
  }

  std::vector<std::string> open_;  // files that are being read, the outermost first
  std::map<std::string, std::string> places_;
  std::vector<ProjectCase> cases_;
};

}  // namespace

Result<std::vector<ProjectCase>> ReadProject(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return Status(Exit::Usage, file + ": no such file, expected the cases of the audit: `cuaudit init -- PROGRAM` writes such a file");
  }
  Reader reader;
  Status read = reader.Read(file, {});
  if (!read.ok()) return read;
  std::vector<ProjectCase> cases = reader.TakeCases();
  if (cases.empty()) return Status(Exit::Usage, file + ": no cases, expected at least one [case.NAME] with a command");
  return cases;
}

Result<ProjectCase> ReadDefaults(const std::string& file) {
  ProjectCase defaults;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return defaults;
  const Result<TomlValue> root = Reader::ReadRoot(file, &defaults);
  return root.ok() ? Result<ProjectCase>(std::move(defaults)) : root.status();
}

Result<std::vector<bool>> SelectCases(std::span<const ProjectCase> cases, std::span<const std::string> names,
                                      std::span<const std::string> tags) {
  std::vector<std::string> known;
  for (const ProjectCase& one : cases) known.push_back(one.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Status(Exit::Usage, name + ": no such case" + DidYouMean(name, known));
    }
  }
  std::vector<std::string> known_tags;
  std::vector<bool> selected;
  for (const ProjectCase& one : cases) {
    known_tags.insert(known_tags.end(), one.tags.begin(), one.tags.end());
    const bool named = names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
    const bool tagged = tags.empty() || std::find_first_of(one.tags.begin(), one.tags.end(), tags.begin(), tags.end()) != one.tags.end();
    selected.push_back(named && tagged);
  }
  for (const std::string& tag : tags) {
    if (std::find(known_tags.begin(), known_tags.end(), tag) == known_tags.end()) {
      return Status(Exit::Usage, OptionFlag{"--tag"}, "'" + tag + "': no case has it" + DidYouMean(tag, known_tags));
    }
  }
  if (std::find(selected.begin(), selected.end(), true) == selected.end()) {
    return Status(Exit::Usage, "no case has both one of the names and one of the tags");
  }
  return selected;
}

}  // namespace cuaudit::harness
