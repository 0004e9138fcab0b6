// SPDX-License-Identifier: MIT
// fuzz_input.h: reads the bytes of a fuzzer's input from the front, one small decision at a time.
//
//     cuaudit::FuzzInput input(data, size);
//     const std::uint32_t count = input.Below(8);
//     const std::uint8_t kind = input.Byte();
//
// Past the end every answer is 0, so every input is a complete program. The class borrows the bytes.
// Read into variables or inside braces, which are evaluated from left to right. Two reads as arguments of one call are evaluated in an
// order that the compiler chooses, so the same input would mean different programs with different compilers.
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
  // A number below `bound`, made from one byte.
  std::uint32_t Below(std::uint32_t bound) { return bound == 0 ? 0 : Byte() % bound; }
  // A number made from two bytes, least significant byte first.
  std::uint32_t Short() {
    const std::uint32_t low = Byte();
    return low | static_cast<std::uint32_t>(Byte()) << 8U;
  }
  // A number made from four bytes, most significant byte first.
  std::uint32_t Number() {
    std::uint32_t number = 0;
    for (int i = 0; i < 4; ++i) number = number << 8U | Byte();
    return number;
  }
  // All remaining bytes.
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
