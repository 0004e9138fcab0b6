// SPDX-License-Identifier: MIT
#include "harness/symbols/python_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace cuaudit::harness {
namespace {

constexpr std::uintmax_t kLargestFile = std::uintmax_t{4} << 20;

// Of a name; letters beyond ASCII are bytes of UTF-8.
bool IsLetter(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return byte == '_' || byte >= 0x80 || std::isalnum(byte) != 0;
}

std::size_t IndentOf(std::string_view text) { return std::min(text.find_first_not_of(" \t"), text.size()); }

std::string_view Stripped(std::string_view text) {
  text.remove_prefix(IndentOf(text));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

// Calls `see(word, text behind it)` for each word.
template <typename See>
void EachWord(std::string_view text, const See& see) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && IsLetter(text[end])) ++end;
    if (end != at) see(text.substr(at, end - at), text.substr(end));
    at = std::max(end, at + 1);
  }
}

bool Has(std::string_view text, std::string_view word) {
  bool has = false;
  EachWord(text, [&](std::string_view one, std::string_view /*behind*/) { has = has || one == word; });
  return has;
}

// No part of a statement of several lines, as far as the line tells, and no loop or function in itself.
bool IsPlain(std::string_view text) {
  int open = 0;
  for (const char letter : text) {
    if (std::string_view("([{").find(letter) != std::string_view::npos) ++open;
    if (std::string_view(")]}").find(letter) != std::string_view::npos && --open < 0) return false;
  }
  if (open != 0 || text.ends_with('\\') || text.find("\"\"\"") != std::string_view::npos || text.find("'''") != std::string_view::npos) {
    return false;
  }
  return !Has(text, "for") && !Has(text, "while") && !Has(text, "lambda");
}

// "Pool.grow" -> "grow", "Pool.__init__" -> "Pool". Empty: a function that is called without its name.
std::string_view CalledName(std::string_view callee) {
  const std::size_t dot = callee.rfind('.');
  const std::string_view last = callee.substr(dot == std::string_view::npos ? 0 : dot + 1);
  if (last == "__init__" && dot != std::string_view::npos) return CalledName(callee.substr(0, dot));
  return last.starts_with("__") || last.ends_with('>') ? std::string_view() : last;
}

std::size_t CountCalls(std::string_view text, std::string_view callee) {
  const std::string_view name = CalledName(callee);
  if (!callee.empty() && name.empty()) return 0;
  std::size_t calls = 0;
  EachWord(text, [&](std::string_view word, std::string_view behind) {
    const bool is_driver = word.size() > 2 && word.starts_with("cu") && std::isupper(static_cast<unsigned char>(word[2])) != 0;
    if ((callee.empty() ? is_driver : word == name || word == "__init__") && behind.starts_with('(')) ++calls;
  });
  return calls;
}

enum class Header { Other, Block, Loop, Function };

Header HeaderOf(std::string_view text) {
  constexpr std::array<std::string_view, 9> kBlocks = {"if", "elif", "else", "try", "except", "finally", "with", "match", "case"};
  if (text.starts_with("async ")) text = Stripped(text.substr(6));
  const std::string_view word =
      text.substr(0, static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), IsLetter) - text.begin()));
  if (word == "for" || word == "while") return Header::Loop;
  if (word == "def" || word == "class") return Header::Function;
  return text.ends_with(':') && std::find(kBlocks.begin(), kBlocks.end(), word) != kBlocks.end() ? Header::Block : Header::Other;
}

}  // namespace

bool CallsOnce(std::span<const std::string> lines, std::size_t line, std::string_view callee) {
  if (line == 0 || line > lines.size()) return false;
  const std::string_view text = Stripped(lines[line - 1]);
  if (!IsPlain(text) || CountCalls(text, callee) != 1) return false;
  if (line > 1 && Stripped(lines[line - 2]).ends_with('\\')) return false;
  std::size_t indent = IndentOf(lines[line - 1]);  // the headers of the blocks around the line have less
  for (std::size_t i = line - 1; i-- > 0 && indent > 0;) {
    const std::string_view header = Stripped(lines[i]);
    if (header.empty() || header.starts_with('#') || IndentOf(lines[i]) >= indent) continue;
    indent = IndentOf(lines[i]);
    if (header.starts_with(')')) {  // the end of a header of several lines
      ++indent;
      continue;
    }
    const Header kind = HeaderOf(header);
    if (kind == Header::Function) return true;
    if (kind != Header::Block) return false;
  }
  return true;
}

bool PythonSources::CallsOnce(const std::string& file, int line, std::string_view callee) {
  const auto [at, fresh] = files_.try_emplace(file);
  std::error_code error;
  if (fresh && std::filesystem::is_regular_file(file, error) && std::filesystem::file_size(file, error) <= kLargestFile) {
    std::ifstream in(file);
    for (std::string text; std::getline(in, text);) at->second.push_back(text);
  }
  return line > 0 && harness::CallsOnce(at->second, static_cast<std::size_t>(line), callee);
}

}  // namespace cuaudit::harness
