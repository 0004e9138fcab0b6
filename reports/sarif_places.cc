// SPDX-License-Identifier: MIT
#include "reports/sarif_places.h"

#include <fmt/core.h>

#include <utility>

#include "reports/defect_words.h"
#include "reports/escape.h"

namespace cuaudit::report::sarif {
namespace {

constexpr std::size_t kMessageText = 4000;  // bytes of one message: a name of ten thousand letters is no message

bool NeedsNoEncoding(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

// "](" would begin the destination of a link: operator[](int) is none.
std::string Text(std::string_view text) {
  std::string line = Shortened(text, kMessageText);
  for (std::size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at)) line.insert(at + 1, 1, ' ');
  return line;
}

Json Message(std::string_view text) { return Json{{"text", Text(text)}}; }

std::string Uri(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    if (NeedsNoEncoding(c)) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return uri;
}

Json Physical(const SourcePlace& place) {
  return Json{{"artifactLocation", {{"uri", Uri(place.path)}, {"uriBaseId", "%SRCROOT%"}}},
              {"region", {{"startLine", place.line}, {"startColumn", 1}, {"endLine", place.line}}}};
}

Json Logical(const Frame& frame) {
  Json logical{{"fullyQualifiedName", ForTerminal(Qualified(frame))}};
  if (!frame.function.empty()) logical["kind"] = "function";
  return logical;
}

Json Location(const SourceRoot& root, const std::vector<Frame>& stack, std::string_view says) {
  Json location = Json::object();
  const Frame* named = FrameOf(stack);
  for (const Frame& frame : stack) {
    const std::optional<SourcePlace> place = root.Find(frame);
    if (!place) continue;
    location["physicalLocation"] = Physical(*place);
    named = &frame;
    break;
  }
  if (named != nullptr) location["logicalLocations"] = Json::array({Logical(*named)});
  if (!says.empty()) location["message"] = Message(says);
  return location;
}

Json Stack(const SourceRoot& root, const std::vector<Frame>& stack, std::string_view says) {
  Json frames = Json::array();
  for (const Frame& frame : stack) {
    Json location{{"logicalLocations", Json::array({Logical(frame)})}};
    if (const std::optional<SourcePlace> place = root.Find(frame)) {
      location["physicalLocation"] = Physical(*place);
    } else if (!frame.file.empty()) {
      location["physicalLocation"] = Json{{"artifactLocation", {{"uri", Uri(frame.file)}}}};
      if (frame.line > 0) location["physicalLocation"]["region"] = Json{{"startLine", frame.line}};
    }
    Json entry{{"location", std::move(location)}};
    if (!frame.module.empty()) entry["module"] = ForTerminal(frame.module);
    frames.push_back(std::move(entry));
  }
  return Json{{"message", Message(says)}, {"frames", std::move(frames)}};
}

}  // namespace cuaudit::report::sarif
