// SPDX-License-Identifier: MIT
// host_mappings.h: which memory mapping of the process each address belongs to, also after parts were unmapped or mapped over.
//
//   Units     bytes.
//   Errors    unmapping an unknown range has no effect.
//   Source    mmap(2): a fixed mapping replaces what it covers; munmap may take a part of a mapping, or parts of several.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace cuaudit::harness {

class HostMappings {
 public:
  // Both functions answer the objects that have no addresses left afterwards.
  std::vector<std::int64_t> Map(std::uint64_t start, std::uint64_t bytes, std::int64_t object);
  std::vector<std::int64_t> Unmap(std::uint64_t start, std::uint64_t bytes);

 private:
  struct Piece {
    std::uint64_t end = 0;
    std::int64_t object = -1;
  };
  std::map<std::uint64_t, Piece> pieces_;  // by start, without overlaps
  std::unordered_map<std::int64_t, std::uint64_t> left_;
};

}  // namespace cuaudit::harness
