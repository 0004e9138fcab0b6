// SPDX-License-Identifier: MIT
#include "reports/escape.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace cuaudit::report::escape_test {
namespace {

constexpr char kBad[] = "\xEF\xBF\xBD";

TEST(Escape, WellFormedTextStaysAsItIs) {
  const std::string text = "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 plain";
  EXPECT_EQ(ForTerminal(text), text);
  EXPECT_EQ(ForXml(text), text);
}

TEST(Escape, EachByteThatIsNotUtf8BecomesOneReplacement) {
  const std::string bad = kBad;
  EXPECT_EQ(ForXml("a\xff"
                   "b"),
            "a" + bad + "b");
  EXPECT_EQ(ForXml("\xc0\xaf"), bad + bad) << "overlong";
  EXPECT_EQ(ForXml("\xed\xa0\x80"), bad + bad + bad) << "surrogate";
  EXPECT_EQ(ForXml("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond U+10FFFF";
  EXPECT_EQ(ForXml("x\xe2\x82"), "x" + bad + bad) << "cut short";
  EXPECT_EQ(ForTerminal("\x80"), bad);
}

TEST(Escape, TerminalSeesNoControlCharacters) {
  EXPECT_EQ(ForTerminal("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(ForTerminal("a\nb\tc\x7f"), "a\\nb\\tc\\x7f");
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "31m"),
            "\\x9b31m")
      << "C1 control sequence introducer";
  EXPECT_EQ(ForTerminal(std::string_view("\0", 1)), "\\x00");
}

TEST(Escape, XmlSeesOnlyCharactersItAllows) {
  EXPECT_EQ(ForXml("a\x01\x1f\t\n\r"), std::string("a") + kBad + kBad + "\t\n\r");
  EXPECT_EQ(ForXml("\xef\xbf\xbe"), kBad) << "U+FFFE";
}

std::string ReadBack(const std::string& line) {
  const std::string command = "printf '[%s]' " + line;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 256> part{};
  for (std::size_t n = 0; (n = fread(part.data(), 1, part.size(), pipe.get())) > 0;) text.append(part.data(), n);
  return text;
}

TEST(Escape, AShellReadsTheSameWordsBack) {
  const std::vector<std::string> words = {"plain-1.0", "two words", "it's", "",  "$HOME", "`id`",
                                          "a\"b\\c",   "{n}",       "*",    "~", "#1",    "x;y&z|w"};
  std::string expected;
  for (const std::string& word : words) expected += "[" + word + "]";
  EXPECT_EQ(ReadBack(ForShell(words)), expected);
  EXPECT_EQ(ForShell({"./prog", "--n=1,10"}), "./prog --n=1,10") << "nothing is quoted without need";
  EXPECT_EQ(ForShell({"a\nb", "c"}), "$'a\\012b' c") << "one line";
}

}  // namespace
}  // namespace cuaudit::report::escape_test
