// SPDX-License-Identifier: MIT
// progress.h: how far a sweep is: a bar on a terminal, nothing anywhere else.
//
//   Owns      nothing; writes to stderr.
//   Threads   one thread.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <string>

namespace cuaudit::harness {

// "[########                ]  12/35". Width of the bar is fixed, so that lines overwrite each other.
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
