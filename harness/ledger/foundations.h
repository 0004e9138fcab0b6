// SPDX-License-Identifier: MIT
// foundations.h: which object a handle stands on: a texture on its array, a function on its module, a level on its mipmapped array
// (README.md, section "What stands on what").
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "faults/driver/kinds.h"

namespace cuaudit::harness {

// Functions and kernels are no objects of their own: they have this family here.
inline constexpr driver::Family kCode = driver::Family::None;

// Among the addresses of a graph node, a number with this bit is not an address: it is the index of an object that the node needs. No
// device or host address has the bit.
inline constexpr std::uint64_t kNeededObject = std::uint64_t{1} << 63U;

// Handles of two families may be equal numbers.
struct FamilyHandle {
  driver::Family family;
  std::uint64_t handle;
  friend bool operator==(const FamilyHandle&, const FamilyHandle&) = default;

  struct Hash {
    std::size_t operator()(const FamilyHandle& key) const noexcept {
      const std::uint64_t h = (key.handle ^ (static_cast<std::uint64_t>(key.family) << 56U)) * 0x9e3779b97f4a7c15U;
      return static_cast<std::size_t>(h ^ (h >> 29U));
    }
  };
};

class Foundations {
 public:
  // From now on `handle` stands on `object`; -1: on nothing that the ledger knows.
  void Put(driver::Family family, std::uint64_t handle, std::int64_t object) {
    if (object >= 0) {
      of_[{family, handle}] = object;
    } else if (!of_.empty()) {
      of_.erase({family, handle});
    }
  }
  [[nodiscard]] std::int64_t Of(driver::Family family, std::uint64_t handle) const {
    if (of_.empty()) return -1;
    const auto found = of_.find({family, handle});
    return found == of_.end() ? -1 : found->second;
  }

 private:
  std::unordered_map<FamilyHandle, std::int64_t, FamilyHandle::Hash> of_;
};

}  // namespace cuaudit::harness
