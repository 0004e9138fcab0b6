// SPDX-License-Identifier: MIT
// escape.h: makes any bytes safe to show on a terminal, in XML, in a shell command and in Markdown. Bytes that are not UTF-8 become
// U+FFFD, one per byte; no function fails.
//
// Sources: Unicode 15, table 3-7 (well-formed UTF-8); XML 1.0, section 2.2 (Char).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::report {

// Writes control characters, including the C1 range, as \n, \t or \x1b, so that a path cannot control the terminal.
std::string ForTerminal(std::string_view bytes);

// The same, cut at `most` bytes at the end of a character; "…" then stands for the rest.
std::string Shortened(std::string_view bytes, std::size_t most);

// Replaces characters that XML 1.0 forbids by U+FFFD. The XML writer escapes markup characters.
std::string ForXml(std::string_view bytes);

// Quotes a word for a shell, where needed, on one line. Control characters are written as $'...', which bash and POSIX.1-2024 define.
std::string ShellWord(std::string_view word);

// Quotes each word and joins them with spaces.
std::string ForShell(const std::vector<std::string>& words);

// Makes any bytes safe to show in Markdown as GitHub and GitLab read it.
//
// Sources: CommonMark 0.30, section 2.5 (entity references are never structure); GitHub Flavored Markdown 0.29, sections 4.10 (tables)
// and 6.9 (autolinks).

// One line of text in a paragraph, in a cell of a table or in HTML. What could be markup becomes an entity reference. The text must not
// begin a line, where a number or a dash makes a list.
std::string ForMarkdown(std::string_view text);

// The same as code, cut at `most` bytes: "<code>std::vector&lt;int&gt;</code>". Empty for an empty text.
std::string MarkdownCode(std::string_view text, std::size_t most);

// A block of lines that nothing in them can end. `lines` is shown as it is, but for control characters; each line ends in a line feed.
std::string MarkdownFence(std::string_view lines, std::string_view language);

}  // namespace cuaudit::report
