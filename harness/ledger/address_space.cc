// SPDX-License-Identifier: MIT
#include "harness/ledger/address_space.h"

#include <algorithm>
#include <limits>

namespace cuaudit::harness {
namespace {

std::uint64_t EndOf(std::uint64_t base, std::uint64_t bytes) {
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - base;
  return base + std::min(std::max<std::uint64_t>(bytes, 1), room);
}

}  // namespace

void AddressSpace::Split(std::uint64_t address) {
  const auto piece = RangeFrom(pieces_, address);
  if (piece == pieces_.end() || piece->first >= address) return;
  const Piece right = piece->second;
  piece->second.end = address;
  pieces_.emplace_hint(std::next(piece), address, right);
}

void AddressSpace::Insert(std::uint64_t base, std::uint64_t bytes, std::int64_t object) {
  const std::uint64_t end = EndOf(base, bytes);
  Split(base);
  Split(end);
  Piece piece{end, object, false, false};
  auto it = pieces_.lower_bound(base);
  while (it != pieces_.end() && it->first < end) {
    piece.aliased |= it->second.aliased || !it->second.dead;
    it = pieces_.erase(it);
  }
  pieces_.emplace_hint(it, base, piece);
}

void AddressSpace::Kill(std::uint64_t base, std::uint64_t bytes, std::int64_t object) {
  const std::uint64_t end = EndOf(base, bytes);
  auto it = pieces_.lower_bound(base);
  while (it != pieces_.end() && it->first < end) {
    if (it->second.object != object) {
      ++it;
    } else if (it->second.aliased) {
      it = pieces_.erase(it);
    } else {
      it->second.dead = true;
      ++it;
    }
  }
  ++deaths_;
}

void AddressSpace::Forget(std::uint64_t base, std::uint64_t bytes) {
  const std::uint64_t end = EndOf(base, bytes);
  if (pieces_.empty()) return;
  Split(base);
  Split(end);
  auto it = pieces_.lower_bound(base);
  while (it != pieces_.end() && it->first < end) it = pieces_.erase(it);
}

void AddressSpace::ForgetDead(std::uint64_t base, std::uint64_t bytes) {
  if (pieces_.empty()) return;
  const std::uint64_t end = bytes == 0 ? std::numeric_limits<std::uint64_t>::max() : EndOf(base, bytes);
  Split(base);
  Split(end);
  std::uint64_t reached = base;
  for (auto it = pieces_.lower_bound(base); it != pieces_.end() && it->first < end;) {
    if (bytes == 0 && (it->first != reached || !it->second.dead)) return;
    reached = it->second.end;
    it = it->second.dead ? pieces_.erase(it) : std::next(it);
  }
}

std::int64_t AddressSpace::DeadObjectAt(std::uint64_t address) const {
  const auto piece = RangeFrom(pieces_, address);
  return piece != pieces_.end() && piece->first <= address && piece->second.dead ? piece->second.object : -1;
}

std::int64_t AddressSpace::LiveObjectIn(std::uint64_t base, std::uint64_t bytes) const {
  const std::uint64_t end = EndOf(base, bytes);
  for (auto it = RangeFrom(pieces_, base); it != pieces_.end() && it->first < end; ++it) {
    if (!it->second.dead) return it->second.object;
  }
  return -1;
}

std::int64_t AddressSpace::ObjectAt(std::uint64_t address) const {
  const auto piece = RangeFrom(pieces_, address);
  return piece != pieces_.end() && piece->first <= address ? piece->second.object : -1;
}

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
  auto at = RangeFrom(pieces_, start);
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
