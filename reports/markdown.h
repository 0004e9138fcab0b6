// SPDX-License-Identifier: MIT
// markdown.h: makes any bytes safe to show in Markdown as GitHub and GitLab read it.
//
// Sources: CommonMark 0.30, section 2.5 (entity references are never structure); GitHub Flavored Markdown 0.29, sections 4.10 (tables)
// and 6.9 (autolinks).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuaudit::report {

// One line of text in a paragraph, in a cell of a table or in HTML. What could be markup becomes an entity reference. The text must not
// begin a line, where a number or a dash makes a list.
std::string ForMarkdown(std::string_view text);

// The same as code, cut at `most` bytes: "<code>std::vector&lt;int&gt;</code>". Empty for an empty text.
std::string MarkdownCode(std::string_view text, std::size_t most);

// A block of lines that nothing in them can end. `lines` is shown as it is, but for control characters; each line ends in a line feed.
std::string MarkdownFence(std::string_view lines, std::string_view language);

}  // namespace cuaudit::report
