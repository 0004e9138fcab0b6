// SPDX-License-Identifier: MIT
#include "faults/python/line_table.h"

namespace cuaudit::python {
namespace {

constexpr unsigned kOneLine = 10;  // 10, 11 and 12: the line is 0, 1 or 2 further down
constexpr unsigned kNoColumns = 13;
constexpr unsigned kLong = 14;
constexpr unsigned kNone = 15;
constexpr std::int64_t kLastLine = 0x7fffffff;

// Reads a table byte by byte; past the end, or where memory cannot be read, it gives zeros and is no longer good().
class Bytes {
 public:
  Bytes(SafeMemory* memory, std::uintptr_t from, std::size_t count) noexcept : memory_(memory), at_(from), left_(count) {}
  bool good() const noexcept { return good_; }
  bool empty() const noexcept { return next_ == held_ && left_ == 0; }

  unsigned Next() noexcept {
    if (next_ == held_ && !Fill()) return 0;
    return buffer_[next_++];
  }

  // Six bits in each byte, least significant first; the seventh says that another byte follows.
  unsigned Number() noexcept {
    unsigned value = 0;
    for (unsigned shift = 0; shift < 32; shift += 6) {
      const unsigned byte = Next();
      value |= (byte & 0x3f) << shift;
      if ((byte & 0x40) == 0) return value;
    }
    good_ = false;
    return 0;
  }

  int SignedNumber() noexcept {
    const unsigned value = Number();
    const int size = static_cast<int>(value >> 1);
    return (value & 1) != 0 ? -size : size;
  }

 private:
  bool Fill() noexcept {
    held_ = left_ < sizeof(buffer_) ? left_ : sizeof(buffer_);
    next_ = 0;
    if (held_ == 0 || !memory_->Read(at_, buffer_, held_)) {
      held_ = 0;
      left_ = 0;
      good_ = false;
      return false;
    }
    at_ += held_;
    left_ -= held_;
    return true;
  }

  SafeMemory* memory_;
  std::uintptr_t at_;
  std::size_t left_;
  std::size_t held_ = 0;
  std::size_t next_ = 0;
  bool good_ = true;
  unsigned char buffer_[128];
};

}  // namespace

int LineAt(SafeMemory* memory, std::uintptr_t table, std::size_t bytes, int first_line, std::size_t offset) noexcept {
  Bytes entries(memory, table, bytes);
  std::int64_t line = first_line;
  std::int64_t found = 0;
  std::size_t end = 0;
  while (end <= offset && !entries.empty()) {
    const unsigned first = entries.Next();
    if ((first & 0x80) == 0) return 0;  // no entry begins here
    const unsigned kind = (first >> 3) & 0xf;
    end += ((first & 7) + 1) * 2;
    if (kind == kNone) continue;
    if (kind == kLong) {
      line += entries.SignedNumber();
      for (int i = 0; i < 3; ++i) (void)entries.Number();  // lines to the end, columns
    } else if (kind == kNoColumns) {
      line += entries.SignedNumber();
    } else {
      if (kind >= kOneLine) {
        line += kind - kOneLine;
        (void)entries.Next();
      }
      (void)entries.Next();
    }
    if (!entries.good()) return 0;
    found = line;
  }
  return found > 0 && found <= kLastLine ? static_cast<int>(found) : 0;
}

}  // namespace cuaudit::python
