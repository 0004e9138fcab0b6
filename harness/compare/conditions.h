// SPDX-License-Identifier: MIT
// conditions.h: whether two audits ran the same program under settings that show the same.
//
//   Errors    none.
#pragma once

#include <string>
#include <vector>

#include "harness/compare/known_defect.h"
#include "reports/run.h"

namespace cuaudit::harness {

// How the command of `now`, or the environment that it was given, differs from that of `before`, in words. Empty: it does not, or one of
// them is unknown. A program counts by its file name, and so does any other absolute path, for releases lie in folders of their own.
std::string OtherCommand(const report::Run& before, const report::Run& now);

// Of the settings of a run those that decide which defects it shows, in order.
std::vector<std::string> SettingsThatShow(const report::Run& run);

// Which setting of `now` hides the defect, or lacks it and would show it, in words. Empty: none.
std::string HidingSetting(const KnownDefect& defect, const report::Run& now);

}  // namespace cuaudit::harness
