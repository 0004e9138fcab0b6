// SPDX-License-Identifier: MIT
#include "faults/sim/range.h"

namespace cuaudit::sim {
namespace {

std::uint64_t Priority(const Range* range) {
  std::uint64_t x = range->base;
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33);
}

Range* Merge(Range* low, Range* high) {
  Range* root = nullptr;
  Range** at = &root;
  while (low != nullptr && high != nullptr) {
    if (Priority(low) >= Priority(high)) {
      *at = low;
      at = &low->right;
      low = low->right;
    } else {
      *at = high;
      at = &high->left;
      high = high->left;
    }
  }
  *at = low != nullptr ? low : high;
  return root;
}

}  // namespace

Range* RangeTree::FirstFrom(std::uint64_t address) const noexcept {
  Range* best = nullptr;
  for (Range* at = root_; at != nullptr;) {
    if (at->base >= address) {
      best = at;
      at = at->left;
    } else {
      at = at->right;
    }
  }
  return best;
}

bool RangeTree::Insert(Range* range) noexcept {
  if (range->size == 0 || Find(range->base) != nullptr) return false;
  const Range* const above = FirstFrom(range->base);
  if (above != nullptr && above->base - range->base < range->size) return false;
  const std::uint64_t priority = Priority(range);
  Range** at = &root_;
  while (*at != nullptr && Priority(*at) >= priority) at = (*at)->base < range->base ? &(*at)->right : &(*at)->left;
  Range* rest = *at;
  Range** low = &range->left;
  Range** high = &range->right;
  while (rest != nullptr) {
    if (rest->base < range->base) {
      *low = rest;
      low = &rest->right;
      rest = rest->right;
    } else {
      *high = rest;
      high = &rest->left;
      rest = rest->left;
    }
  }
  *low = nullptr;
  *high = nullptr;
  *at = range;
  return true;
}

void RangeTree::Remove(Range* range) noexcept {
  Range** at = &root_;
  while (*at != nullptr && *at != range) at = (*at)->base < range->base ? &(*at)->right : &(*at)->left;
  if (*at == nullptr) return;
  *at = Merge(range->left, range->right);
  range->left = range->right = nullptr;
}

}  // namespace cuaudit::sim
