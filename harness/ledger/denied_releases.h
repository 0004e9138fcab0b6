// SPDX-License-Identifier: MIT
// denied_releases.h: releases of one handle that were carried out and said to have failed.
//
// The program may try each again, whosever the handle is by then. One of the two releases is then once too often, and a use may come too
// late.
#pragma once

#include <cstdint>
#include <utility>

namespace cuaudit::harness {

class DeniedReleases {
 public:
  void Add() { ++count_; }
  // Whether a wrong release or use may come of one of them. That one is then used up: at once where the driver has `accepted` the release,
  // else when the handle is acquired next, because all that goes wrong until then is of one retry.
  bool Excuse(bool accepted) {
    if (count_ == 0) return false;
    used_ = !accepted;
    if (accepted) --count_;
    return true;
  }
  void BeginAnew() {
    if (std::exchange(used_, false)) --count_;
  }

 private:
  std::uint32_t count_ = 0;
  bool used_ = false;
};

}  // namespace cuaudit::harness
