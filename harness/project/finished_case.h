// SPDX-License-Identifier: MIT
// finished_case.h: what a result directory knows of a case that was carried out to its end, so that the case is not carried out again while
// its settings, its program and its reports are the same.
//
//   Errors    an unreadable file is no finished case.
//
// The reports are made of the settings, of the program with the files that its arguments name and those of the key `inputs`, of the
// libraries that call the driver, of the chosen driver and of the environment. Other files that the program reads, such as what a script
// imports, are not covered, nor is the machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/process/status.h"
#include "harness/project/case_settings.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {

struct FinishedCase {
  std::string digest;                            // of the settings (ConfigDigest)
  std::map<std::string, std::string> modules;    // path of a library -> its content as a number in hex
  std::vector<std::string> reports;              // names of files in the result directory
  std::string trials;                            // the same; empty: none
  std::string line;                              // what stdout says of the case
  std::vector<std::string> unused_suppressions;  // places of entries
  std::uint64_t defects = 0;
  Exit exit = Exit::Clean;
};

// Adds a digest of each of the `inherited` variables that matters.
void AddVariables(std::vector<std::string> inherited, Settings* settings);

// Without the variables that differ from one terminal, login or job to the next, SOURCE_DATE_EPOCH, and those of cuaudit.
std::vector<std::string> ThatMatter(std::vector<std::string> environment);

// Covers every setting that can change a report, the program's file, the files that its arguments name and its inputs. Not the number of
// jobs.
// `surroundings` are the version of the tool and the chosen driver; `inherited` are variables that the program gets from outside.
std::string ConfigDigest(const ProjectCase& one, const std::string& surroundings, std::span<const std::string> inherited);

// Fills in the content of the modules at `paths`.
void AddModules(const std::vector<std::string>& paths, FinishedCase* finished);

Status WriteFinished(const std::string& file, const FinishedCase& finished);

// The finished case of `file`, when it has this digest, its modules are what they were and its reports are in `directory`.
std::optional<FinishedCase> ReadFinished(const std::string& file, const std::string& digest, const std::string& directory);

}  // namespace cuaudit::harness
