// SPDX-License-Identifier: MIT
#include "faults/sim/base/range.h"

#include "faults/sim/base/treap.h"

namespace cuaudit::sim {
namespace {

using Tree = Treap<Range, &Range::base>;

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
  const std::uint64_t priority = Tree::Priority(range);
  Range** at = &root_;
  while (*at != nullptr && Tree::Priority(*at) >= priority) at = (*at)->base < range->base ? &(*at)->right : &(*at)->left;
  Tree::Split(*at, range->base, &range->left, &range->right);
  *at = range;
  return true;
}

void RangeTree::Remove(Range* range) noexcept {
  Range** at = &root_;
  while (*at != nullptr && *at != range) at = (*at)->base < range->base ? &(*at)->right : &(*at)->left;
  if (*at == nullptr) return;
  *at = Tree::Merge(range->left, range->right);
  range->left = range->right = nullptr;
}

}  // namespace cuaudit::sim
