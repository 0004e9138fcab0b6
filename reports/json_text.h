// SPDX-License-Identifier: MIT
// json_text.h: how the writers of JSON put documents into a stream.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace cuaudit::report {

using Json = nlohmann::ordered_json;

// Bytes that are not UTF-8 become U+FFFD.
inline std::string OnOneLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Adds `text` as a JSON string. Most texts need no escape, and those that do go through a document.
inline void AppendText(std::string_view text, std::string* json) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), plain)) {
    json->append(1, '"').append(text) += '"';
  } else {
    *json += OnOneLine(text);
  }
}

// One JSON object as text on one line. Most of a long report is call stacks, and a document for each of their frames would take longer than
// all the rest of the report.
class JsonLine {
 public:
  JsonLine& Add(std::string_view name, std::string_view text) {
    Name(name);
    AppendText(text, &text_);
    return *this;
  }
  template <std::integral Number>
  JsonLine& Add(std::string_view name, Number number) {
    Name(name);
    char digits[24];
    text_.append(std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), number).ptr);
    return *this;
  }
  JsonLine& AddRaw(std::string_view name, std::string_view json) {
    Name(name);
    text_ += json;
    return *this;
  }
  std::string Take() { return std::move(text_ += '}'); }

 private:
  void Name(std::string_view name) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_.append(name) += "\":";
  }
  std::string text_;
};

// A list on one line.
template <typename Entries, typename ToText>
std::string ListText(const Entries& entries, const ToText& text) {
  std::string list = "[";
  for (const auto& entry : entries) {
    if (list.size() != 1) list += ',';
    list += text(entry);
  }
  return list += ']';
}

// Writes `entries` as a list with one entry on each line, behind `before` ("\n    "), and closes it with `after` ("\n  ]"). Only one entry
// at a time is in memory as text.
template <typename Entries, typename ToText>
void WriteEntries(const Entries& entries, const ToText& text, std::string_view before, std::string_view after, std::ostream& out) {
  out << "[";
  const char* comma = "";
  for (const auto& one : entries) {
    out << comma << before << text(one);
    comma = ",";
  }
  out << (*comma == '\0' ? std::string_view("]") : after);
}

}  // namespace cuaudit::report
