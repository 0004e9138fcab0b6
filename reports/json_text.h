// SPDX-License-Identifier: MIT
// json_text.h: how the writers of JSON put documents into a stream.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

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

// Writes `entries` as a list with one entry on each line, behind `before` ("\n    "), and closes it with `after` ("\n  ]"). Only one entry
// at a time is in memory as a document.
template <typename Entries, typename ToEntry>
void WriteEntries(const Entries& entries, const ToEntry& entry, std::string_view before, std::string_view after, std::ostream& out) {
  out << "[";
  const char* comma = "";
  for (const auto& one : entries) {
    out << comma << before << OnOneLine(entry(one));
    comma = ",";
  }
  out << (*comma == '\0' ? std::string_view("]") : after);
}

}  // namespace cuaudit::report
