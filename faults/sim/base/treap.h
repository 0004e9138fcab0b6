// SPDX-License-Identifier: MIT
// treap.h: an ordered binary tree of nodes that their owner allocates.
//
//   Node      has `left`, `right` and a key that is unique in its tree.
//   Source    treaps after Seidel and Aragon. Priorities are hashes of the key, so the shape is deterministic.
#pragma once

#include <cstdint>

namespace cuaudit::sim {

template <typename Node, std::uint64_t Node::*kKey>
struct Treap {
  static std::uint64_t Priority(const Node* node) noexcept {
    std::uint64_t x = node->*kKey;
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
    return x ^ (x >> 33);
  }

  // The root of both trees together. All keys of `low` are below those of `high`.
  static Node* Merge(Node* low, Node* high) noexcept {
    Node* root = nullptr;
    Node** at = &root;
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

  // Splits the tree into the nodes with keys below `key` and the others.
  static void Split(Node* root, std::uint64_t key, Node** low, Node** high) noexcept {
    while (root != nullptr) {
      if (root->*kKey < key) {
        *low = root;
        low = &root->right;
        root = root->right;
      } else {
        *high = root;
        high = &root->left;
        root = root->left;
      }
    }
    *low = *high = nullptr;
  }
};

}  // namespace cuaudit::sim
