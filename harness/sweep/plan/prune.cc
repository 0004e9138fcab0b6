// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/prune.h"

#include <unordered_map>

namespace cuaudit::harness {
namespace {

// The rows of one trial.
struct Member {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t left = 0;  // not yet taken
};

std::vector<Member> MembersOf(std::span<const StoodFor> rows) {
  std::vector<Member> members;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (members.empty() || rows[members.back().begin].after != rows[i].after) members.push_back({i, i, 0});
    ++members.back().end;
    ++members.back().left;
  }
  return members;
}

}  // namespace

std::vector<bool> Spread(std::span<const StoodFor> rows, std::size_t budget) {
  std::vector<bool> tried(rows.size());
  if (rows.size() <= budget) {
    tried.assign(rows.size(), true);
    return tried;
  }
  std::vector<Member> members = MembersOf(rows);
  std::unordered_map<std::uint64_t, std::size_t> positions;  // by shape: taken so far
  while (budget != 0) {
    std::vector<Member*> open;
    for (Member& member : members) {
      if (member.left != 0) open.push_back(&member);
    }
    const std::size_t taken = std::min(budget, open.size());
    for (std::size_t i = 0; i < open.size(); ++i) {
      // Of `open.size()` members `taken` at equal distances, the last one among them.
      if ((i + 1) * taken / open.size() == i * taken / open.size()) continue;
      Member& member = *open[i];
      const std::size_t count = member.end - member.begin;
      std::size_t at = positions[rows[member.begin].shape]++ % count;
      while (tried[member.begin + at]) at = (at + 1) % count;
      tried[member.begin + at] = true;
      --member.left;
    }
    budget -= taken;
  }
  return tried;
}

}  // namespace cuaudit::harness
