// SPDX-License-Identifier: MIT
#include "reports/html/place_table.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "reports/text_writer.h"

namespace cuaudit::report::html {
namespace {

constexpr std::size_t kMostSources = 5000;  // snippets in one page

std::string NameOf(const Frame& frame) {
  if (!frame.function.empty()) return frame.function;
  return fmt::format("{}+{:#x}", frame.module, frame.offset);
}

}  // namespace

std::size_t PlaceTable::Row(const Frame& frame) {
  const std::string name = NameOf(frame);
  const auto [known, fresh] =
      known_frames_.try_emplace(fmt::format("{}\n{}\n{}\n{}", frame.line, frame.module, frame.file, name), frames_.size());
  if (fresh) frames_.push_back({name, frame.module, frame.file, frame.line});
  return known->second;
}

bool PlaceTable::TakeSource(const Frame& frame, std::size_t row) {
  if (frames_[row].size() > 4) return true;
  if (sources_.size() >= kMostSources) return false;
  std::optional<Snippet> found = files_.Around(frame.file, frame.line);
  if (!found) return false;
  frames_[row].push_back(sources_.size());
  sources_.push_back({found->first, frame.line, std::move(found->lines)});
  return true;
}

std::size_t PlaceTable::Stack(const std::vector<Frame>& stack) {
  const std::vector<Frame> shown = ShownFrames(stack);
  std::vector<std::size_t> rows;
  rows.reserve(shown.size());
  for (const Frame& frame : shown) rows.push_back(Row(frame));
  const auto [known, fresh] = known_stacks_.try_emplace(rows, stacks_.size());
  if (!fresh) return known->second;
  stacks_.push_back(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (TakeSource(shown[i], rows[i])) break;
  }
  return known->second;
}

}  // namespace cuaudit::report::html
