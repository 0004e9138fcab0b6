// SPDX-License-Identifier: MIT
#include "allocator/observe/pickle_writer.h"

#include <bit>
#include <cassert>

namespace cuaudit::alloc {
namespace {

constexpr unsigned kProto = 0x80, kMark = '(', kStop = '.', kNone = 'N', kTrue = 0x88, kFalse = 0x89, kInt4 = 'J', kInt1 = 'K', kInt2 = 'M',
                   kLong1 = 0x8a, kFloat = 'G', kText = 'X', kEmptyList = ']', kAppends = 'e', kEmptyDict = '}', kSetItems = 'u',
                   kPut = 'q', kLongPut = 'r', kGet = 'h', kLongGet = 'j', kTuple2 = 0x86;
constexpr std::uint32_t kBatch = 1000;  // as Python's own writer does

// The length of the UTF-8 sequence at `at`, or 0: overlong forms, surrogates and values above U+10FFFF are none.
std::size_t SequenceAt(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!tail(1) || !tail(2) || (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3) || (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
    return 4;
  }
  return 0;
}

std::string Legible(std::string_view text) {
  std::string legible;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = SequenceAt(text, at);
    if (length == 0) {
      legible.push_back('?');
      ++at;
    } else {
      legible.append(text.substr(at, length));
      at += length;
    }
  }
  return legible;
}

}  // namespace

PickleWriter::PickleWriter(std::string* out) : out_(out) {
  Byte(kProto);
  Byte(2);
}

void PickleWriter::Little(std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) Byte(static_cast<unsigned>(value >> (8 * i)) & 0xffU);
}

void PickleWriter::None() { Byte(kNone); }

void PickleWriter::Bool(bool value) { Byte(value ? kTrue : kFalse); }

void PickleWriter::Int(std::int64_t value) {
  if (value >= 0) return Unsigned(static_cast<std::uint64_t>(value));
  if (value >= INT32_MIN) {
    Byte(kInt4);
    return Little(static_cast<std::uint64_t>(value), 4);
  }
  Byte(kLong1);
  Byte(8);
  Little(static_cast<std::uint64_t>(value), 8);
}

void PickleWriter::Unsigned(std::uint64_t value) {
  if (value <= 0xff) {
    Byte(kInt1);
    Little(value, 1);
  } else if (value <= 0xffff) {
    Byte(kInt2);
    Little(value, 2);
  } else if (value <= INT32_MAX) {
    Byte(kInt4);
    Little(value, 4);
  } else {  // two's complement, so the top bit must stay clear
    const unsigned bytes = static_cast<unsigned>(std::bit_width(value)) / 8 + 1;
    Byte(kLong1);
    Byte(bytes);
    for (unsigned i = 0; i < bytes; ++i) Byte(i < 8 ? static_cast<unsigned>(value >> (8 * i)) & 0xffU : 0U);
  }
}

void PickleWriter::Float(double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  Byte(kFloat);
  for (unsigned i = 8; i-- > 0;) Byte(static_cast<unsigned>(bits >> (8 * i)) & 0xffU);
}

void PickleWriter::Text(std::string_view value) {
  const std::string legible = Legible(value);
  const auto [found, is_new] = texts_.try_emplace(legible, 0);
  if (!is_new) return Recall(found->second);
  Byte(kText);
  Little(legible.size(), 4);
  out_->append(legible);
  found->second = Remember();
}

void PickleWriter::Pair(std::uint64_t first, std::uint64_t second) {
  Unsigned(first);
  Unsigned(second);
  Byte(kTuple2);
}

void PickleWriter::BeginList() {
  assert(open_.size() < kDepth);
  Byte(kEmptyList);
  Byte(kMark);
  items_[open_.size()] = 0;
  open_.push_back('l');
}

void PickleWriter::ItemDone() {
  assert(!open_.empty() && open_.back() == 'l');
  std::uint32_t& items = items_[open_.size() - 1];
  if (++items < kBatch) return;
  items = 0;
  Byte(kAppends);
  Byte(kMark);
}

void PickleWriter::EndList() {
  assert(!open_.empty() && open_.back() == 'l');
  open_.pop_back();
  Byte(kAppends);
}

void PickleWriter::BeginDict() {
  assert(open_.size() < kDepth);
  Byte(kEmptyDict);
  Byte(kMark);
  open_.push_back('d');
}

void PickleWriter::EndDict() {
  assert(!open_.empty() && open_.back() == 'd');
  open_.pop_back();
  Byte(kSetItems);
}

std::uint32_t PickleWriter::Remember() {
  const std::uint32_t memo = memos_++;
  Byte(memo <= 0xff ? kPut : kLongPut);
  Little(memo, memo <= 0xff ? 1 : 4);
  return memo;
}

void PickleWriter::Recall(std::uint32_t memo) {
  Byte(memo <= 0xff ? kGet : kLongGet);
  Little(memo, memo <= 0xff ? 1 : 4);
}

void PickleWriter::Finish() {
  assert(open_.empty());
  Byte(kStop);
}

}  // namespace cuaudit::alloc
