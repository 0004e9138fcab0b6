// SPDX-License-Identifier: MIT
#include "suites/support/report_checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <set>
#include <string_view>
#include <vector>

namespace cuaudit::suites {
namespace {

using Json = nlohmann::json;

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); }

std::string_view Backticks(std::string_view line) { return line.substr(0, std::min(line.find_first_not_of('`'), line.size())); }

// Text outside of fences: tags of ours only, each closed on its line but for <details>; no markup within <code>.
std::string WhyNoInline(std::string_view line, int* details) {
  static constexpr std::array<std::string_view, 3> kTags = {"details>", "summary>", "code>"};
  std::array<int, kTags.size()> open = {*details, 0, 0};
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (std::string_view("`*[]~\\>").find(line[i]) != std::string_view::npos) return "markup of a name";
    if (line[i] != '<') continue;
    const bool closes = line.substr(i + 1).starts_with('/');
    const std::string_view tag = line.substr(i + (closes ? 2 : 1));
    const auto known = std::find_if(kTags.begin(), kTags.end(), [tag](std::string_view one) { return tag.starts_with(one); });
    if (known == kTags.end()) return "a tag that is not ours";
    int& count = open.at(static_cast<std::size_t>(known - kTags.begin()));
    count += closes ? -1 : 1;
    if (count < 0 || count > 1) return "tags that do not pair";
    i += known->size() + (closes ? 1 : 0);
  }
  *details = open[0];
  return open[1] != 0 || open[2] != 0 ? "a tag that its line does not close" : "";
}

}  // namespace

std::string WhyNoMarkdown(const std::string& text) {
  static constexpr std::array<std::string_view, 17> kStarts = {"## cuaudit: ",
                                                               "### <code>",
                                                               "| ",
                                                               "- <code>",
                                                               "<details><summary>",
                                                               "</details>",
                                                               "What: ",
                                                               "In the base: ",
                                                               "Suppression: ",
                                                               "Compared: ",
                                                               "Reproduce:",
                                                               "Fingerprint: ",
                                                               "Cases: ",
                                                               "Compared with ",
                                                               "Suppressions that no defect matches:",
                                                               "The rest is left out",
                                                               "```"};
  std::string_view fence;
  std::ptrdiff_t cells = 0;  // of the table that is open; 0: none
  int details = 0;
  for (const std::string_view line : LinesOf(text)) {
    const auto wrong = [line](const std::string& what) { return what + ": " + std::string(line); };
    if (HasControl(line)) return wrong("a control character");
    if (!fence.empty()) {
      if (line.size() >= fence.size() && Backticks(line).size() == line.size()) fence = {};
      continue;
    }
    if (line.empty()) {
      cells = 0;
      continue;
    }
    if (std::none_of(kStarts.begin(), kStarts.end(), [line](std::string_view start) { return line.starts_with(start); })) {
      return wrong("a line that a name begins");
    }
    if (line.starts_with("```")) {
      fence = Backticks(line);
      const std::string_view language = line.substr(fence.size());
      if (language != "text" && language != "sh") return wrong("a fence that is not ours");
      continue;
    }
    const std::ptrdiff_t bars = std::count(line.begin(), line.end(), '|');
    if (line.front() != '|' ? bars != 0 : line.back() != '|' || (cells != 0 && bars != cells)) return wrong("cells of a table");
    cells = line.front() == '|' ? bars : 0;
    const std::string why = WhyNoInline(line, &details);
    if (!why.empty()) return wrong(why);
  }
  if (!fence.empty()) return "a fence that is not closed";
  return details != 0 ? "a fold that is not closed" : "";
}

std::string WhyNoCommands(const std::string& text) {
  if (!text.empty() && text.back() != '\n') return "a last line without its end";
  std::map<std::string_view, int> levels;
  for (const std::string_view line : LinesOf(text)) {
    const auto wrong = [line](const std::string& what) { return what + ": " + std::string(line); };
    if (HasControl(line)) return wrong("a control character");
    const std::size_t space = line.find(' ');
    const std::size_t data = line.find("::", 2);
    if (!line.starts_with("::") || space == std::string_view::npos || data == std::string_view::npos || data < space)
      return wrong("no command");
    const std::string_view level = line.substr(2, space - 2);
    if (level != "error" && level != "warning" && level != "notice") return wrong("no level");
    if (++levels[level] > 10) return wrong("more than GitHub shows");
    for (std::size_t at = line.find('%'); at != std::string_view::npos; at = line.find('%', at + 1)) {
      if (at + 2 >= line.size() || !IsHex(line[at + 1]) || !IsHex(line[at + 2])) return wrong("a percent sign that escapes nothing");
    }
    // Properties as GitHub splits them.
    std::string_view properties = line.substr(space + 1, data - space - 1);
    while (!properties.empty()) {
      const std::string_view one = properties.substr(0, properties.find(','));
      const std::string_view key = one.substr(0, one.find('='));
      if (key != "file" && key != "line" && key != "title") return wrong("no property");
      properties.remove_prefix(std::min(one.size() + 1, properties.size()));
    }
  }
  return {};
}

std::string WhyNoSarif(const std::string& text, bool for_upload) {
  const Json log = Json::parse(text, nullptr, false);
  if (log.is_discarded()) return "no JSON: " + text;
  if (log["version"] != "2.1.0" || log["runs"].size() != 1) return "no SARIF";
  const Json& run = log["runs"][0];
  const Json& rules = run["tool"]["driver"]["rules"];
  for (const Json& result : run["results"]) {
    const std::size_t index = result["ruleIndex"];
    if (index >= rules.size() || rules[index]["id"] != result["ruleId"]) return "a rule that the driver does not name";
    const std::string message = result["message"]["text"];
    if (message.empty() || HasControl(message) || message.find("](") != std::string::npos) return "a message: " + message;
    const std::string level = result["level"];
    if (for_upload && (result.contains("suppressions") || level != "error" || result.value("baselineState", "") == "absent"))
      return "no result to upload";
    if (for_upload && !result["locations"][0]["physicalLocation"]["artifactLocation"].contains("uri")) return "a result without a file";
  }
  return {};
}

std::string WhyNoIssues(const std::string& text) {
  const Json issues = Json::parse(text, nullptr, false);
  if (!issues.is_array()) return "no list: " + text;
  std::set<std::string> fingerprints;
  for (const Json& issue : issues) {
    const std::string path = issue["location"]["path"];
    const std::string description = issue["description"];
    if (path.empty() || issue["location"]["lines"]["begin"] < 1) return "no place: " + issue.dump();
    if (description.empty() || HasControl(description)) return "a description: " + description;
    if (!fingerprints.insert(issue["fingerprint"]).second) return "a fingerprint twice: " + issue.dump();
  }
  return {};
}

std::string WhyNoXml(const std::string& text) {
  pugi::xml_document document;
  const pugi::xml_parse_result read = document.load_buffer(text.data(), text.size(), pugi::parse_full);
  return read ? "" : std::string(read.description()) + ": " + text;
}

}  // namespace cuaudit::suites
