// SPDX-License-Identifier: MIT
// Free blocks by size and address: the same answers as an ordered set gives, whatever is put in and taken out.
#include "allocator/blocks/free_bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace cuaudit::alloc {
namespace {

using Key = std::pair<std::size_t, CUdeviceptr>;

Key KeyOf(const Block& block) { return {block.size, block.address.load()}; }

TEST(FreeBins, AnswerAsAnOrderedSetWould) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::mt19937_64 random(seed);
    constexpr std::size_t kBlocks = 400;
    const auto blocks = std::make_unique<Block[]>(kBlocks);
    FreeBins bins;
    ASSERT_TRUE(bins.Init(false));
    std::set<Key> expected;
    // Few sizes and many, small ones and beyond the last bin.
    const auto any_size = [&] { return 512 * (1 + random() % (std::uint64_t{1} << (random() % 33))); };
    for (int turn = 0; turn < 20'000; ++turn) {
      Block& block = blocks[random() % kBlocks];
      if (block.place == Place::None) {
        block.size = any_size();
        block.address = ((static_cast<std::uint64_t>(&block - blocks.get()) + 64) << 34) + ((random() % 64) << 9);
        block.place = Place::Ready;
        bins.Insert(&block);
        expected.insert(KeyOf(block));
      } else {
        block.place = Place::None;
        bins.Remove(&block);
        expected.erase(KeyOf(block));
      }
      const std::size_t wanted = any_size();
      const auto fits = expected.lower_bound({wanted, 0});
      const Block* const found = bins.AtLeast(wanted);
      ASSERT_EQ(found != nullptr, fits != expected.end());
      if (found != nullptr) {
        ASSERT_EQ(KeyOf(*found), *fits);
      }
      ASSERT_EQ(bins.empty(), expected.empty());
      if (turn % 500 != 0) continue;
      auto at = expected.begin();
      for (const Block* one = bins.First(); one != nullptr; one = bins.Next(one), ++at) {
        ASSERT_NE(at, expected.end());
        ASSERT_EQ(KeyOf(*one), *at);
      }
      ASSERT_EQ(at, expected.end());
      if (!expected.empty()) {
        ASSERT_EQ(KeyOf(*bins.Last()), *expected.rbegin());
      }
    }
  }
}

// Freed from the lowest address to the highest, which would make a plain tree a list.
TEST(FreeBins, ManyOfOneSizeAreFoundAsQuickly) {
  constexpr std::size_t kBlocks = 100'000;
  const auto blocks = std::make_unique<Block[]>(kBlocks);
  FreeBins bins;
  ASSERT_TRUE(bins.Init(false));
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks[i].size = 1024;
    blocks[i].address = (std::uint64_t{1} << 40) + i * 2048;
    bins.Insert(&blocks[i]);
  }
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < kBlocks; i += 997) {
    std::size_t depth = 0;
    for (const Block* above = blocks[i].parent; above != nullptr; above = above->parent) ++depth;
    deepest = std::max(deepest, depth);
  }
  EXPECT_LT(deepest, 80U) << "a list would be 100,000 deep";
  for (std::size_t i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(bins.AtLeast(512), &blocks[i]) << "the lowest address first";
    bins.Remove(&blocks[i]);
  }
  EXPECT_TRUE(bins.empty());
}

}  // namespace
}  // namespace cuaudit::alloc
