// SPDX-License-Identifier: MIT
// report_checks.h: what holds for every report in a format, whatever the names in it.
//
//   Errors    each function answers what does not hold, or empty text.
#pragma once

#include <string>

namespace cuaudit::suites {

// Fences are closed, rows of a table have equally many cells, no tag but ours stands outside of a fence and each is closed, and nothing but
// our own words begins a line.
std::string WhyNoMarkdown(const std::string& text);

// Each line is one command with the escapes that GitHub asks for, and there are at most ten of each level.
std::string WhyNoCommands(const std::string& text);

// It can be read, and every result has a rule of the driver and one line of text. `for_upload`: and a file.
std::string WhyNoSarif(const std::string& text, bool for_upload);

// It can be read, and every issue has what GitLab asks for; fingerprints differ.
std::string WhyNoIssues(const std::string& text);

std::string WhyNoXml(const std::string& text);

}  // namespace cuaudit::suites
