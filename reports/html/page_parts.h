// SPDX-License-Identifier: MIT
// page_parts.h: what a page is put together from: the files of page/ and third_party/ as text in the program, and an audit as the JSON
// text that they draw.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/audit.h"
#include "reports/source_root.h"

namespace cuaudit::report::html {

// A file in parts, because compilers need not take a string literal of any length. The build makes the definitions
// (scripts/embed_files.py).
using Asset = std::span<const std::string_view>;

extern const Asset kPageHtml;
extern const Asset kPageStyle;
extern const Asset kPageScript;
extern const Asset kPlotScript;
extern const Asset kPlotStyle;

// The text is ASCII without '<', '>' and '&', so nothing in it ends the element that holds it. Bytes that are not UTF-8 become U+FFFD.
// Frames, call stacks and source lines stand once and are named by number. The form is private to page/*.js: it has no schema, and it
// changes with them. Programs read --format json. Source lines are taken from below `root`; null: none are.
std::string PageData(const Audit& audit, const SourceRoot* root);

}  // namespace cuaudit::report::html
