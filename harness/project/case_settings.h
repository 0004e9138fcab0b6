// SPDX-License-Identifier: MIT
// case_settings.h: a case of a project and how its settings come together: those of the files, of CUAUDIT_AUDIT and of the command line,
// each over the ones before it.
//
//   Threads   one thread.
//   Errors    one line: "FILE:LINE:COL: what is wrong, expected ..., did you mean KEY?".
//
// The keys of a file are the rows of options.def that are marked kCase, and command, tags and weight. A key of a later layer replaces the
// value of an earlier one; variables of the environment are put together by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/options/option_rows.h"
#include "harness/process/toml_file.h"

namespace cuaudit::harness {

struct ProjectCase {
  std::string name;
  std::vector<std::string> tags;
  std::uint64_t weight = 1;  // heavier cases are carried out first
  Options options;           // as `cuaudit sweep` takes them
  // Key -> where its value comes from: "cuaudit.toml:4:1"; a missing key has its default. Variables also have keys of their own:
  // "environment.HOME".
  std::map<std::string, std::string> from;
  std::string place;  // of the case in its file
};

// The folder of a file, for what a file names relative to itself; empty for this directory.
std::string FolderOf(const std::string& file);

enum class Section : std::uint8_t { Defaults, Case };

// Sets what `table` of `file` says.
Status ApplyTable(const TomlValue& table, const std::string& file, Section section, ProjectCase* one);

// Sets the options that `given` names in Options::given. `from` is where they come from: "command line".
void ApplyGiven(const Options& given, const std::string& from, ProjectCase* one);

// Sets the variable of a line NAME=VALUE, in the place of one that has the name.
void PutVariable(const std::string& line, const std::string& from, ProjectCase* one);

// Checks all that can be known before anything runs.
Status CheckCase(const ProjectCase& one);

// An error about an option, "--how: ...", as an error about the place that set the option.
Status AtItsPlace(const ProjectCase& one, const Status& status);

// The counts of --n that the case asks for by its key `cycles`: empty when it asks for no cycles.
std::string CountsOf(const ProjectCase& one);

// Every key with its value and where the value comes from, as TOML with comments. A key whose text is not set is a comment, too.
std::string ShowCase(const ProjectCase& one);

// A name of a case is part of file names.
bool IsCaseName(const std::string& name);
inline constexpr const char* kCaseName = "a name of at most 100 letters, digits, '.', '_' and '-' that begins with a letter or a digit";

}  // namespace cuaudit::harness
