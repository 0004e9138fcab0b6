// SPDX-License-Identifier: MIT
// Words of a project file: command lines without a shell, and the nearest of several words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/process/nearest.h"
#include "harness/project/split_words.h"

namespace cuaudit::harness::words_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

TEST(SplitWords, SplitsAtSpacesOutsideOfQuotes) {
  EXPECT_THAT(SplitWords("  ./a  b\tc\nd "), Optional(ElementsAre("./a", "b", "c", "d")));
  EXPECT_THAT(SplitWords("a 'b c' \"d  e\" f\\ g"), Optional(ElementsAre("a", "b c", "d  e", "f g")));
  EXPECT_THAT(SplitWords("'' \"\""), Optional(ElementsAre("", "")));
  EXPECT_THAT(SplitWords("a'b'\"c\"d"), Optional(ElementsAre("abcd")));
  EXPECT_THAT(SplitWords(""), Optional(IsEmpty()));
}

TEST(SplitWords, ExpandsNothing) {
  EXPECT_THAT(SplitWords("$HOME * `x` ~ a;b {n}"), Optional(ElementsAre("$HOME", "*", "`x`", "~", "a;b", "{n}")));
  EXPECT_THAT(SplitWords(R"('\' "\n\"\\" \\)"), Optional(ElementsAre("\\", "\\n\"\\", "\\")));
}

TEST(SplitWords, RefusesWhatIsNotClosed) {
  for (const char* const line : {"'a", "\"a", "a\\", "'a\"", "\"a\\\""}) EXPECT_EQ(SplitWords(line), std::nullopt) << line;
}

TEST(Nearest, IsTheWordWithTheFewestChanges) {
  const std::vector<std::string> known = {"deadline_ms", "depth", "detect", "directory"};
  EXPECT_EQ(Nearest("dept", known), "depth");
  EXPECT_EQ(Nearest("deadline", known), "deadline_ms");
  EXPECT_EQ(Nearest("directroy", known), "directory");
  EXPECT_EQ(DidYouMean("detct", known), ", did you mean detect?");
}

TEST(Nearest, IsNothingWhereNoneIsNear) {
  const std::vector<std::string> known = {"depth", "how"};
  EXPECT_EQ(Nearest("command", known), "");
  EXPECT_EQ(DidYouMean("", known), "");
  EXPECT_EQ(Nearest(std::string(10000, 'd'), known), "") << "and takes no time";
  EXPECT_EQ(Nearest("depth", {}), "");
}

}  // namespace
}  // namespace cuaudit::harness::words_test
