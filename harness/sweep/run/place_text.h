// SPDX-License-Identifier: MIT
// place_text.h: the text of a place, shared by all trials that name the place.
//
//   Owns      a share of the text, which never changes.
//   Threads   one thread.
//
// A sweep of thousands of trials names a few hundred places with a dozen frames each.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reports/run.h"

namespace cuaudit::harness {

class PlaceText {
 public:
  PlaceText() = default;
  PlaceText(report::Acquired words) : words_(std::make_shared<const report::Acquired>(std::move(words))) {}
  PlaceText(std::string call, std::vector<report::Frame> stack) : PlaceText(report::Acquired{std::move(call), std::move(stack)}) {}

  const report::Acquired& operator*() const noexcept { return words_ == nullptr ? Nowhere() : *words_; }
  const report::Acquired* operator->() const noexcept { return &**this; }
  operator const report::Acquired&() const noexcept { return **this; }

 private:
  static const report::Acquired& Nowhere() noexcept {
    static const report::Acquired nowhere;
    return nowhere;
  }

  std::shared_ptr<const report::Acquired> words_;
};

}  // namespace cuaudit::harness
