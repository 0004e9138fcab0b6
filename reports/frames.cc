// SPDX-License-Identifier: MIT
#include "reports/frames.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

namespace cuaudit::report {
namespace {

constexpr std::size_t kShownFrames = 16;

// Code of the C++ library that was compiled into the program. What the program itself puts into namespace std has a file of its own.
bool IsCppLibrary(const Frame& frame) {
  if (!frame.file.empty()) return frame.file.find("/include/c++/") != std::string::npos || frame.file.find("/c++/v1/") != std::string::npos;
  return frame.function.starts_with("std::") || frame.function.starts_with("__gnu_cxx::") || frame.function.starts_with("void std::");
}

}  // namespace

std::string Describe(const Frame& frame) {
  if (frame.function.empty() && frame.module.empty() && frame.offset == 0) return "code without a file";
  if (frame.function.empty()) return fmt::format("{}+{:#x}", frame.module.empty() ? "?" : frame.module, frame.offset);
  if (frame.file.empty()) return fmt::format("{} ({})", frame.function, frame.module);
  return frame.line == 0 ? fmt::format("{} {}", frame.function, frame.file)
                         : fmt::format("{} {}:{}", frame.function, frame.file, frame.line);
}

std::string DescribeOrigin(const std::vector<Frame>& stack) {
  if (stack.empty()) return {};
  const auto of_program = [](const Frame& frame) { return !IsRuntimeModule(frame.module) && !IsCppLibrary(frame); };
  const auto place = std::find_if(stack.begin(), stack.end(), of_program);
  if (place == stack.end()) return Describe(stack.front());
  std::string text = Describe(*place);
  const auto with_source = std::find_if(place, stack.end(), [&](const Frame& frame) { return of_program(frame) && !frame.file.empty(); });
  if (with_source != place && with_source != stack.end()) text += " < " + Describe(*with_source);
  return text;
}

std::vector<Frame> ShownFrames(const std::vector<Frame>& stack) {
  std::vector<Frame> shown;
  for (const Frame& frame : stack) {
    if (shown.size() < kShownFrames && !IsCppLibrary(frame)) shown.push_back(frame);
  }
  if (!shown.empty()) return shown;
  return {stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(std::min(stack.size(), kShownFrames))};
}

}  // namespace cuaudit::report
