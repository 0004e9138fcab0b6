// SPDX-License-Identifier: MIT
#include "faults/python/text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace cuaudit::python::text_test {
namespace {

constexpr std::uintptr_t kType = 0x1234;

Layout LayoutOf312() {
  Layout layout{};
  SafeMemory memory;
  EXPECT_TRUE(ChooseLayout(0x030c01f0, 0, &memory, &layout));
  return layout;
}

// A str of CPython 3.12: count of references, type, length, hash, state; then the characters.
template <typename Character>
std::vector<char> Text(const std::vector<Character>& characters, bool ascii) {
  std::vector<char> bytes((ascii ? 40 : 56) + characters.size() * sizeof(Character));
  const std::uint64_t length = characters.size();
  const std::uint32_t state = static_cast<std::uint32_t>(sizeof(Character)) << 2 | 1U << 5 | (ascii ? 1U << 6 : 0U);
  std::memcpy(bytes.data() + 8, &kType, 8);
  std::memcpy(bytes.data() + 16, &length, 8);
  std::memcpy(bytes.data() + 32, &state, 4);
  if (!characters.empty()) std::memcpy(bytes.data() + (ascii ? 40 : 56), characters.data(), characters.size() * sizeof(Character));
  return bytes;
}

std::string Copied(const std::vector<char>& text, std::size_t room = 32) {
  std::vector<char> to(room, '#');
  SafeMemory memory;
  const bool done = CopyText(&memory, LayoutOf312(), kType, reinterpret_cast<std::uintptr_t>(text.data()), to.data(), room);
  return done ? std::string(to.data()) : "unread";
}

std::vector<char> Ascii(const std::string& text) { return Text(std::vector<char>(text.begin(), text.end()), true); }

TEST(Text, OfEveryWidthBecomesUtf8) {
  EXPECT_EQ(Copied(Ascii("Encoder.step")), "Encoder.step");
  EXPECT_EQ(Copied(Ascii("")), "");
  EXPECT_EQ(Copied(Text<unsigned char>({'a', 0xfc}, false)), "a\u00fc");
  EXPECT_EQ(Copied(Text<char16_t>({u'a', 0x3b1, 0x20ac}, false)), "a\u03b1\u20ac");
  EXPECT_EQ(Copied(Text<char32_t>({U'a', 0x1f600}, false)), "a\U0001f600");
}

TEST(Text, SurrogatesBecomeQuestionMarks) { EXPECT_EQ(Copied(Text<char16_t>({u'a', 0xdcff}, false)), "a?"); }

TEST(Text, KeepsItsEndWhereThereIsNotEnoughRoom) {
  EXPECT_EQ(Copied(Ascii("/a/long/way/to/file.py"), 8), "file.py");
  EXPECT_EQ(Copied(Text<char32_t>({U'a', 0x1f600, U'b'}, false), 9), "\U0001f600b");
}

TEST(Text, OfAnotherTypeIsNotRead) {
  std::vector<char> text = Ascii("a");
  text[8] = 0;
  EXPECT_EQ(Copied(text), "unread");
  text = Ascii("a");
  text[32] = 0;  // no compact text
  EXPECT_EQ(Copied(text), "unread");
  text = Ascii("a");
  text[22] = 1;  // longer than any memory
  EXPECT_EQ(Copied(text), "unread");
  char to[8];
  SafeMemory memory;
  EXPECT_FALSE(CopyText(&memory, LayoutOf312(), kType, 0, to, sizeof(to)));
}

}  // namespace
}  // namespace cuaudit::python::text_test
