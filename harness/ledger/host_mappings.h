// SPDX-License-Identifier: MIT
// host_mappings.h: which mapping of the process each address belongs to, when parts are unmapped or mapped over.
//
//   Owns      its intervals.
//   Threads   a value; no shared state.
//   Units     bytes.
//   Errors    unmapping what is unknown has no effect.
//   Faults    makes no driver calls.
//   Source    mmap(2): a fixed mapping replaces what it covers; munmap may take a part, or parts of several.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace cuaudit::harness {

class HostMappings {
 public:
  // Answers the objects of which nothing is left because of it.
  std::vector<std::int64_t> Map(std::uint64_t start, std::uint64_t bytes, std::int64_t object);
  std::vector<std::int64_t> Unmap(std::uint64_t start, std::uint64_t bytes);

 private:
  struct Piece {
    std::uint64_t end = 0;
    std::int64_t object = -1;
  };
  std::map<std::uint64_t, Piece> pieces_;  // by start; they do not overlap
  std::unordered_map<std::int64_t, std::uint64_t> left_;
};

}  // namespace cuaudit::harness
