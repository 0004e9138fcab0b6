// SPDX-License-Identifier: MIT
#include "reports/escape.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace cuaudit::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: not well-formed
};

Character Decode(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  std::uint32_t code = 0;
  std::uint32_t least = 0;
  if ((lead & 0xE0) == 0xC0) {
    length = 2, code = lead & 0x1FU, least = 0x80;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3, code = lead & 0x0FU, least = 0x800;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4, code = lead & 0x07U, least = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < least || code > 0x10FFFF || surrogate) return {};
  return {code, length};
}

template <typename Emit>
std::string Rewrite(std::string_view bytes, Emit emit) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character character = Decode(bytes);
    if (character.bytes == 0) {
      out += kReplacement;
      bytes.remove_prefix(1);
    } else {
      emit(character.code, bytes.substr(0, character.bytes), &out);
      bytes.remove_prefix(character.bytes);
    }
  }
  return out;
}

bool NeedsNoQuotes(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("-_./:=,+@%").find(c) != std::string_view::npos;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// $'...' keeps a word with line breaks on one line.
std::string Escaped(std::string_view word) {
  constexpr std::string_view kOctal = "01234567";
  std::string quoted = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (IsControl(c)) {
      quoted += {'\\', kOctal[byte >> 6U], kOctal[(byte >> 3U) & 7U], kOctal[byte & 7U]};
    } else {
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

}  // namespace

std::string ForTerminal(std::string_view bytes) {
  return Rewrite(bytes, [](std::uint32_t code, std::string_view raw, std::string* out) {
    if (code == '\n') {
      *out += "\\n";
    } else if (code == '\t') {
      *out += "\\t";
    } else if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
      char text[8];
      std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(code));
      *out += text;
    } else {
      *out += raw;
    }
  });
}

std::string Shortened(std::string_view bytes, std::size_t most) {
  std::string line = ForTerminal(bytes.substr(0, most + 1));  // a byte of the text is at least one of the line
  if (line.size() <= most && bytes.size() <= most) return line;
  std::size_t end = std::min(line.size(), most);
  while (end != 0 && (static_cast<std::uint8_t>(line[end]) & 0xC0) == 0x80) --end;  // line[size] is NUL
  line.resize(end);
  return line + "…";
}

std::string ForXml(std::string_view bytes) {
  return Rewrite(bytes, [](std::uint32_t code, std::string_view raw, std::string* out) {
    const bool control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
    *out += control || code == 0xFFFE || code == 0xFFFF ? kReplacement : raw;
  });
}

std::string ShellWord(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), NeedsNoQuotes)) return std::string(word);
  if (std::any_of(word.begin(), word.end(), IsControl)) return Escaped(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

std::string ForShell(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += ShellWord(word);
  }
  return line;
}

namespace {

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

// True where the letters at `at` would make a link, a mention or a picture of what stands around them.
bool IsMarkup(std::string_view line, std::size_t at) {
  const char c = line[at];
  if (std::string_view("&<>`*[]|\\~$").find(c) != std::string_view::npos) return true;
  const std::string_view before = line.substr(0, at);
  const std::string_view after = line.substr(at + 1);
  if (c == '_') return before.empty() || after.empty() || !IsWord(before.back()) || !IsWord(after.front());  // within a word it is none
  if (c == ':') return after.starts_with("//") || before.ends_with("mailto") || before.ends_with("xmpp");
  if (c == '.') return before.ends_with("www") || before.ends_with("WWW");
  return false;
}

}  // namespace

std::string ForMarkdown(std::string_view text) {
  const std::string line = ForTerminal(text);
  std::string marked;
  marked.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (IsMarkup(line, i)) {
      marked += fmt::format("&#{};", static_cast<int>(line[i]));
    } else {
      marked += line[i];
    }
  }
  return marked;
}

std::string MarkdownCode(std::string_view text, std::size_t most) {
  return text.empty() ? std::string() : "<code>" + ForMarkdown(Shortened(text, most)) + "</code>";
}

std::string MarkdownFence(std::string_view lines, std::string_view language) {
  std::string block;
  std::size_t longest = 0;
  std::size_t run = 0;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    block += ForTerminal(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  for (const char c : block) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fence + std::string(language) + "\n" + block + fence + "\n";
}

}  // namespace cuaudit::report
