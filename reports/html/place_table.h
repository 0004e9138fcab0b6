// SPDX-License-Identifier: MIT
// place_table.h: the frames and call stacks of a page, each once.
//
//   Owns      what it was given, as JSON rows.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/run.h"
#include "reports/source_root.h"

namespace cuaudit::report::html {

// A few lines of a source file around a call, when the file is where the debug information says.
//
//   Owns      the files it has read.
//   Errors    none: what cannot be read has no lines.
//
// A page goes further than the machine that wrote it, and debug information is written by whoever built the program. So only files with the
// name of a source file are read, only below the root of the sources (symbolic links resolved), and none of the system's.

struct Snippet {
  int first = 0;  // number of the first line
  std::vector<std::string> lines;
};

class SourceLines {
 public:
  // `root` outlives this. Null: no file is read.
  explicit SourceLines(const SourceRoot* root) : root_(root) {}

  std::optional<Snippet> Around(const std::string& file, int line);

 private:
  const std::vector<std::string>& Read(const std::string& file);

  const SourceRoot* root_;
  std::map<std::string, std::vector<std::string>> files_;  // without lines: not found
};

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
