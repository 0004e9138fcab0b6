// SPDX-License-Identifier: MIT
// place_table.h: the frames and call stacks of a page, each once.
//
//   Owns      what it was given, as JSON rows.
//   Errors    none.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/html/source_lines.h"
#include "reports/run.h"

namespace cuaudit::report::html {

class PlaceTable {
 public:
  // Source lines come from files below `root`; null: there are none.
  explicit PlaceTable(const SourceRoot* root) : files_(root) {}

  // Numbers of a stack as it is shown (ShownFrames), and of one frame. The innermost frame of the program whose source is found gets it.
  std::size_t Stack(const std::vector<Frame>& stack);
  std::size_t Row(const Frame& frame);

  // [function, module, file, line, source or absent]
  nlohmann::ordered_json Frames() const { return frames_; }
  nlohmann::ordered_json Stacks() const { return stacks_; }
  // [number of the first line, number of the line of the call, [line...]]
  nlohmann::ordered_json Sources() const { return sources_; }

 private:
  bool TakeSource(const Frame& frame, std::size_t row);

  nlohmann::ordered_json frames_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json stacks_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json sources_ = nlohmann::ordered_json::array();
  std::map<std::string, std::size_t> known_frames_;
  std::map<std::vector<std::size_t>, std::size_t> known_stacks_;
  SourceLines files_;
};

}  // namespace cuaudit::report::html
