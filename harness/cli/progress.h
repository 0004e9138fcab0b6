// SPDX-License-Identifier: MIT
// progress.h: a progress bar on stderr when stderr is a terminal, and nothing otherwise.
#pragma once

#include <cstddef>
#include <string>

namespace cuaudit::harness {

// "[########                ]  12/35". The width is fixed, so that a line overwrites the previous one.
std::string ProgressBar(std::size_t done, std::size_t total);

class Progress {
 public:
  Progress();
  void Show(std::size_t done, std::size_t total);
  void Clear();

 private:
  bool terminal_ = false;
  bool shown_ = false;
};

}  // namespace cuaudit::harness
