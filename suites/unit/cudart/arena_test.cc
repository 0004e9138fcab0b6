// SPDX-License-Identifier: MIT
#include "faults/cudart/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>

namespace cuaudit::cudart::arena_test {
namespace {

TEST(Slots, ReusesWhatWasGivenBack) {
  struct Five {
    std::uint64_t words[5];
  };
  Slots<Five> slots;
  std::set<void*> seen;
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(seen.insert(slots.New()).second);
  void* const one = *seen.begin();
  slots.Delete(static_cast<Five*>(one));
  EXPECT_EQ(static_cast<void*>(slots.New()), one);
}

// The map beside std::map under a random sequence: removals leave no hole that ends a search early.
TEST(PointerMap, AgreesWithAnOrdinaryMap) {
  PointerMap map;
  std::map<std::uintptr_t, std::uintptr_t> expected;
  std::mt19937_64 random(4);
  for (int step = 0; step < 200000; ++step) {
    const std::uintptr_t key = 16 * (1 + random() % 3000);
    void* const pointer = reinterpret_cast<void*>(key);
    if (random() % 2 == 0) {
      const std::uintptr_t value = random() | 1;
      ASSERT_TRUE(map.Put(pointer, reinterpret_cast<void*>(value)));
      expected[key] = value;
    } else {
      map.Remove(pointer);
      expected.erase(key);
    }
    const std::uintptr_t asked = 16 * (1 + random() % 3000);
    const auto at = expected.find(asked);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(map.Find(reinterpret_cast<void*>(asked))), at == expected.end() ? 0 : at->second);
  }
  for (const auto& [key, value] : expected) ASSERT_EQ(reinterpret_cast<std::uintptr_t>(map.Find(reinterpret_cast<void*>(key))), value);
}

TEST(PointerMap, HasNothingUnderNull) {
  PointerMap map;
  EXPECT_EQ(map.Find(nullptr), nullptr);
  EXPECT_FALSE(map.Put(nullptr, &map));
  map.Remove(nullptr);
}

}  // namespace
}  // namespace cuaudit::cudart::arena_test
