// SPDX-License-Identifier: MIT
#include "harness/ledger/host_mappings.h"

#include <algorithm>
#include <iterator>

namespace cuaudit::harness {

std::vector<std::int64_t> HostMappings::Map(std::uint64_t start, std::uint64_t bytes, std::int64_t object) {
  std::vector<std::int64_t> gone = Unmap(start, bytes);
  if (bytes == 0) return gone;
  pieces_[start] = {start + bytes, object};
  left_[object] = bytes;
  return gone;
}

std::vector<std::int64_t> HostMappings::Unmap(std::uint64_t start, std::uint64_t bytes) {
  std::vector<std::int64_t> gone;
  const std::uint64_t end = start + bytes;
  auto at = pieces_.lower_bound(start);
  if (at != pieces_.begin() && std::prev(at)->second.end > start) --at;
  while (at != pieces_.end() && at->first < end) {
    const std::uint64_t from = at->first;
    const Piece piece = at->second;
    at = pieces_.erase(at);
    if (from < start) pieces_[from] = {start, piece.object};
    if (piece.end > end) pieces_[end] = piece;
    std::uint64_t& left = left_[piece.object];
    left -= std::min(end, piece.end) - std::max(start, from);
    if (left == 0) {
      left_.erase(piece.object);
      gone.push_back(piece.object);
    }
  }
  return gone;
}

}  // namespace cuaudit::harness
