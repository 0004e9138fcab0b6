// SPDX-License-Identifier: MIT
#include "faults/python/text.h"

#include <string.h>

namespace cuaudit::python {
namespace {

constexpr std::size_t kType = 8;  // in every object
constexpr std::uint32_t kMostBytes = 4;

// Appends the character in UTF-8. A surrogate stands for a byte that is no text, and becomes a question mark.
std::size_t Append(std::uint32_t character, char* to) noexcept {
  const auto part = [character](unsigned shift) { return static_cast<char>(0x80 | ((character >> shift) & 0x3f)); };
  if (character < 0x80) {
    to[0] = static_cast<char>(character);
    return 1;
  }
  if (character < 0x800) {
    to[0] = static_cast<char>(0xc0 | character >> 6);
    to[1] = part(0);
    return 2;
  }
  if ((character >= 0xd800 && character < 0xe000) || character > 0x10ffff) {
    to[0] = '?';
    return 1;
  }
  if (character < 0x10000) {
    to[0] = static_cast<char>(0xe0 | character >> 12);
    to[1] = part(6);
    to[2] = part(0);
    return 3;
  }
  to[0] = static_cast<char>(0xf0 | character >> 18);
  to[1] = part(12);
  to[2] = part(6);
  to[3] = part(0);
  return 4;
}

}  // namespace

bool CopyText(SafeMemory* memory, const Layout& layout, std::uintptr_t type, std::uintptr_t text, char* to, std::size_t room) noexcept {
  std::uintptr_t held = 0;
  std::uint64_t length = 0;
  std::uint32_t state = 0;
  if (text == 0 || !memory->Read(text + kType, &held) || held != type) return false;
  if (!memory->Read(text + layout.text_length, &length) || !memory->Read(text + layout.text_state, &state)) return false;
  const std::uint32_t width = (state >> layout.text_kind_shift) & 7;
  const bool compact = ((state >> (layout.text_kind_shift + 3)) & 1) != 0;
  const bool ascii = ((state >> (layout.text_kind_shift + 4)) & 1) != 0;
  if (!compact || (width != 1 && width != 2 && width != 4) || length > (std::uint64_t{1} << 32)) return false;
  const std::uint64_t most = (room - 1) / (ascii ? 1 : width == 1 ? 2 : width == 2 ? 3 : kMostBytes);
  const std::uint64_t count = length < most ? length : most;
  std::uintptr_t from = text + (ascii ? layout.ascii_characters : layout.other_characters) + (length - count) * width;
  std::size_t written = 0;
  if (ascii) {
    if (!memory->Read(from, to, count)) return false;
    written = count;
  } else {
    for (std::uint64_t i = 0; i < count; ++i, from += width) {
      std::uint32_t character = 0;  // least significant byte first, as this machine has them
      if (!memory->Read(from, &character, width)) return false;
      written += Append(character, to + written);
    }
  }
  to[written] = '\0';
  return true;
}

}  // namespace cuaudit::python
