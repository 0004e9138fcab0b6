// SPDX-License-Identifier: MIT
// assets.h: the files of page/ and third_party/ as text in the program. The build makes the definitions (scripts/embed_files.py).
#pragma once

#include <span>
#include <string_view>

namespace cuaudit::report::html {

// A file in parts, because compilers need not take a string literal of any length.
using Asset = std::span<const std::string_view>;

extern const Asset kPageHtml;
extern const Asset kPageStyle;
extern const Asset kPageScript;
extern const Asset kPlotScript;
extern const Asset kPlotStyle;

}  // namespace cuaudit::report::html
