// SPDX-License-Identifier: MIT
// issue_text.h: the texts of a kit beside the reducer: ISSUE.md and run.sh.
//
//   Errors    none. Names come from the program and are made safe.
//
// Directories of this machine, arguments of the program and addresses are left out: people send these files to others.
#pragma once

#include <string>
#include <vector>

#include "harness/kit/defect_shown.h"
#include "harness/kit/reduce_calls.h"

namespace cuaudit::harness {

// How the reducer is audited.
struct KitCommand {
  std::string command;                 // "replay", "run" or "cycles"
  std::vector<std::string> options;    // "--driver=sim", "--fault", ...
  std::vector<std::string> arguments;  // of the reducer
};

// What became of the check that compiles and audits the reducer.
struct KitCheck {
  bool same = false;
  std::string missing;  // why it is not the same, in one line
};

// The command for a reducer of this defect.
KitCommand CommandOf(const WantedDefect& defect, const CallList& list, const std::vector<std::string>& options);

// "leak 1 stream: pair_open returned without cuStreamDestroy"
std::string TitleOf(const WantedDefect& defect);

std::string IssueText(const WantedDefect& defect, const Reduction& reduction, const KitCommand& command, const KitCheck& check);

std::string RunScript(const KitCommand& command);

// The lines at the top of the reducer.
std::vector<std::string> HeadingOf(const WantedDefect& defect, const CallList& list);

}  // namespace cuaudit::harness
