// SPDX-License-Identifier: MIT
#include "harness/cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace cuaudit::harness {

std::string ProgressBar(std::size_t done, std::size_t total) {
  constexpr std::size_t kWidth = 32;
  const std::size_t filled = total == 0 ? kWidth : kWidth * done / total;
  const std::string all = std::to_string(total);
  return fmt::format("[{:#<{}}{: <{}}] {:>{}}/{}", "", filled, "", kWidth - filled, done, all.size(), all);
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::Show(std::size_t done, std::size_t total) {
  if (!terminal_) return;
  std::fprintf(stderr, "\rcuaudit: %s", ProgressBar(done, total).c_str());
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace cuaudit::harness
