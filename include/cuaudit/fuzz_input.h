// SPDX-License-Identifier: MIT
// fuzz_input.h: the bytes of a fuzzer's input, taken from the front, one small decision after another.
//
// Whoever takes twice in one expression lets the compiler choose which comes first, and an input means another program to another
// compiler: take into variables, or inside of braces, which go from left to right.
//
//   Owns      nothing; borrows the bytes.
//   Threads   a value; no shared state.
//   Errors    none: past the end every answer is 0, so every input is a whole program.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cuaudit {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  bool empty() const { return at_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint8_t Byte() { return at_ == end_ ? std::uint8_t{0} : *at_++; }
  // A number below `bound`, of one byte.
  std::uint32_t Below(std::uint32_t bound) { return bound == 0 ? 0 : Byte() % bound; }
  // Of two bytes, the first one low.
  std::uint32_t Short() {
    const std::uint32_t low = Byte();
    return low | static_cast<std::uint32_t>(Byte()) << 8U;
  }
  // Of four bytes, the first one high.
  std::uint32_t Number() {
    std::uint32_t number = 0;
    for (int i = 0; i < 4; ++i) number = number << 8U | Byte();
    return number;
  }
  // Everything that is left.
  std::string_view Rest() {
    const std::string_view rest(reinterpret_cast<const char*>(at_), left());
    at_ = end_;
    return rest;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace cuaudit
