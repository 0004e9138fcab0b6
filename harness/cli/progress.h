// SPDX-License-Identifier: MIT
// progress.h: what stderr shows while a sweep goes on: a bar on a terminal, else a line every ten seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include "harness/sweep/run/trial.h"

namespace cuaudit::harness {

// "[########                ]  12/35". The width is fixed, so that a line overwrites the previous one.
std::string ProgressBar(std::size_t done, std::size_t total);

// "first found, in trial 12 of 864 so far: leak of 1 stream, acquired by cuStreamCreate at Open (pool.c:12), when
// cuMemAlloc#3=OUT_OF_MEMORY,refuse". The trial has a finding.
std::string FirstFound(const TrialResult& trial, std::size_t done, std::size_t total);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPause{10};  // between two lines where there is no terminal

  Progress();  // on stderr
  Progress(std::FILE* to, bool terminal, Clock::time_point now) : to_(to), terminal_(terminal), last_(now) {}
  void Show(std::size_t done, std::size_t total, Clock::time_point now = Clock::now());
  void Clear();

 private:
  std::FILE* to_;
  bool terminal_ = false;
  bool shown_ = false;
  Clock::time_point last_;
};

}  // namespace cuaudit::harness
