// SPDX-License-Identifier: MIT
#include "harness/process/shell.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr std::string_view kSpecial = "|&;<>()$`\"*?[#~!{}\n\t";  // unquoted, a shell takes these for more than letters

// Reads the rest of '...' and moves `line` behind it. False: it has no end.
bool ReadQuoted(std::string_view* line, std::string* word) {
  const std::size_t end = line->find('\'');
  if (end == std::string_view::npos) return false;
  word->append(line->substr(0, end));
  line->remove_prefix(end + 1);
  return true;
}

// Reads the rest of $'...': a backslash is followed by a quote, a backslash or three octal digits.
bool ReadEscaped(std::string_view* line, std::string* word) {
  while (!line->empty()) {
    const char c = line->front();
    line->remove_prefix(1);
    if (c == '\'') return true;
    if (c != '\\') {
      *word += c;
      continue;
    }
    if (line->empty()) return false;
    if (line->front() == '\'' || line->front() == '\\') {
      *word += line->front();
      line->remove_prefix(1);
      continue;
    }
    if (line->size() < 3) return false;
    unsigned value = 0;
    for (const char digit : line->substr(0, 3)) {
      if (digit < '0' || digit > '7') return false;
      value = value * 8 + static_cast<unsigned>(digit - '0');
    }
    if (value == 0 || value > 255) return false;
    *word += static_cast<char>(value);
    line->remove_prefix(3);
  }
  return false;
}

}  // namespace

std::string ShellQuote(std::string_view word) { return report::ShellWord(word); }

std::string ShellJoin(const std::vector<std::string>& words) { return report::ForShell(words); }

std::optional<std::vector<std::string>> ShellSplit(std::string_view line) {
  std::vector<std::string> words;
  bool inside = false;
  while (!line.empty()) {
    const char c = line.front();
    line.remove_prefix(1);
    if (c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    std::string& word = words.back();
    if (c == '\'') {
      if (!ReadQuoted(&line, &word)) return std::nullopt;
    } else if (c == '$' && !line.empty() && line.front() == '\'') {
      line.remove_prefix(1);
      if (!ReadEscaped(&line, &word)) return std::nullopt;
    } else if (c == '\\') {
      if (line.empty()) return std::nullopt;
      word += line.front();
      line.remove_prefix(1);
    } else if (kSpecial.find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      word += c;
    }
  }
  return words;
}

namespace {

// Inside single quotes a POSIX shell takes every byte but the quote as it is; fish also reads \' and \\ there. The $'...' of ShellQuote is
// no choice here: dash 0.5.12 does not know it.
std::string Quoted(Shell shell, std::string_view value) {
  std::string quoted = "'";
  for (const char c : value) {
    if (shell == Shell::Fish && (c == '\'' || c == '\\')) {
      quoted.append("\\").append(1, c);
    } else if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string ShellLines(Shell shell, std::span<const Variable> variables) {
  std::string lines;
  for (const Variable& variable : variables) {
    const bool fish = shell == Shell::Fish;
    if (variable.value.has_value()) {
      lines += (fish ? "set -gx " + variable.name + " " : "export " + variable.name + "=") + Quoted(shell, *variable.value) + "\n";
    } else {
      lines += (fish ? "set -e " : "unset ") + variable.name + "\n";
    }
  }
  return lines;
}

std::string WithoutEntries(std::string_view list, std::span<const std::string> ours, std::string_view separators) {
  std::string rest;
  char separator = '\0';  // before the entry
  bool any = false;
  for (;;) {
    const std::size_t stop = list.find_first_of(separators);
    const std::string_view entry = list.substr(0, stop);
    if (std::find(ours.begin(), ours.end(), entry) == ours.end()) {
      if (any) rest += separator;
      rest += entry;
      any = true;
    }
    if (stop == std::string_view::npos) return rest;
    separator = list[stop];
    list.remove_prefix(stop + 1);
  }
}

std::optional<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) words.push_back(std::move(word));
      word.clear();
      begun = false;
      continue;
    }
    begun = true;
    if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else if (c == '\\' && quote != '\'') {
      if (i + 1 == line.size()) return std::nullopt;
      const char next = line[i + 1];
      if (quote == '"' && next != '"' && next != '\\') {
        word += c;
      } else {
        word += next;
        ++i;
      }
    } else {
      word += c;
    }
  }
  if (quote != '\0') return std::nullopt;
  if (begun) words.push_back(std::move(word));
  return words;
}

}  // namespace cuaudit::harness
