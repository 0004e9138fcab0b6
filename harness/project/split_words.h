// SPDX-License-Identifier: MIT
// split_words.h: splits a command line into words without a shell.
//
//   Errors    nothing for a quote that is not closed or a backslash at the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::harness {

// Words stand between spaces, tabs and line feeds. '...' keeps everything, "..." everything but \" and \\; outside of quotes a backslash
// keeps the next character. Nothing is expanded.
std::optional<std::vector<std::string>> SplitWords(std::string_view line);

}  // namespace cuaudit::harness
