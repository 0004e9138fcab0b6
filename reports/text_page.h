// SPDX-License-Identifier: MIT
// text_page.h: the buffer that the parts of the text report write into. Strings from the run must pass ForTerminal before they get here.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cuaudit::report {

inline constexpr std::string_view kRed = "\x1b[1;31m";
inline constexpr std::string_view kGreen = "\x1b[1;32m";
inline constexpr std::string_view kYellow = "\x1b[1;33m";
inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kDim = "\x1b[2m";

struct Page {
  std::string text;
  bool colour = false;

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text += fmt::format(format, std::forward<Args>(args)...);
    text.push_back('\n');
  }
  std::string Paint(std::string_view paint, std::string_view what) const {
    return colour ? fmt::format("{}{}\x1b[0m", paint, what) : std::string(what);
  }
};

inline std::string Plural(std::uint64_t count, std::string_view word) { return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s"); }

}  // namespace cuaudit::report
