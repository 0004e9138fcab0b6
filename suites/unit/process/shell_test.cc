// SPDX-License-Identifier: MIT
// Words and variables written for shells, read back by these shells.
#include "harness/process/shell.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <string>
#include <vector>

namespace cuaudit::harness::shell_test {
namespace {

// What a shell makes of the words, each ended by a NUL.
std::string ThroughShell(const std::string& line) {
  const std::string command = "exec bash -c " + ShellQuote("printf '%s\\0' " + line);
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(ShellQuote, LeavesPlainWordsAsTheyAre) {
  for (const char* const word : {"prog", "./a/b.sh", "--driver=sim", "cuMemAlloc", "1,10"}) EXPECT_EQ(ShellQuote(word), word);
}

TEST(ShellQuote, QuotesWhatTheShellWouldTakeApart) {
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("a b"), "'a b'");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote("cuInit#1=X,refuse"), "'cuInit#1=X,refuse'");
  EXPECT_EQ(ShellQuote("{n}"), "'{n}'");
  EXPECT_EQ(ShellQuote("~"), "'~'");
}

TEST(ShellQuote, KeepsControlCharactersOnOneLine) { EXPECT_EQ(ShellQuote("a\nb'\\"), "$'a\\012b\\'\\\\'"); }

TEST(ShellQuote, ShellReadsEveryWordBack) {
  const std::vector<std::string> words = {"plain",
                                          "",
                                          " ",
                                          "a b",
                                          "$HOME",
                                          "`id`",
                                          "it's",
                                          "\"",
                                          "\\",
                                          "a\nb",
                                          "\t'\\",
                                          "*",
                                          "ünïcode",
                                          "\x01"
                                          "7"};
  std::string expected;
  for (const std::string& word : words) expected += word + '\0';
  EXPECT_EQ(ThroughShell(ShellJoin(words)), expected);
}

TEST(ShellSplit, GivesBackTheWordsOfShellJoin) {
  const std::vector<std::string> words = {"plain",
                                          "",
                                          " ",
                                          "a b",
                                          "$HOME",
                                          "`id`",
                                          "it's",
                                          "\"",
                                          "\\",
                                          "a\nb",
                                          "\t'\\",
                                          "*",
                                          "ünïcode",
                                          "\x01"
                                          "7",
                                          "\xff"};
  EXPECT_EQ(ShellSplit(ShellJoin(words)), words);
  EXPECT_EQ(ShellSplit(""), std::vector<std::string>());
  EXPECT_EQ(ShellSplit("  a  b "), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ShellSplit(std::string(10000, 'x')), std::vector<std::string>{std::string(10000, 'x')});
}

TEST(ShellSplit, RefusesWhatAShellWouldDoMoreWith) {
  for (const char* const line : {"a 'b", "a $'b", "$'\\", "$'\\01'", "$'\\000'", "$'\\777'", "$'\\x41'", "a; b", "a | b", "a > b", "$(a)",
                                 "`a`", "a & b", "\"a\"", "*", "~", "a \\", "a\nb"})
    EXPECT_FALSE(ShellSplit(line).has_value()) << line;
}

using Strings = std::vector<std::string>;

const Strings kHostile = {
    "",         " a  b ", "it's", "''", "\"$HOME\"", "`id` $(id) ${x}", "\\", "\\'", "a\nb\n\n", "#~*?[x]{a,b};&|<>()", "\xff\x01\x7f",
    "\xc3\xbc", "\\n\\'"};

// What the POSIX shell `sh` has in the variable after the lines.
std::string ValueAfter(const std::string& lines) {
  std::string quoted = "'";
  for (const char c : lines + "printf '%s|' \"$VALUE\"") quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  FILE* const pipe = popen(("exec sh -c " + quoted + "'").c_str(), "r");
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << lines;
  return text;
}

TEST(ShellLines, AShellReadsEveryValueBack) {
  for (const std::string& value : kHostile) {
    const std::vector<Variable> variables = {{"VALUE", value}};
    EXPECT_EQ(ValueAfter(ShellLines(Shell::Posix, variables)), value + "|");
  }
}

TEST(ShellLines, RemovesAVariableWithoutAValue) {
  const std::vector<Variable> variables = {{"VALUE", "x"}, {"VALUE", std::nullopt}};
  EXPECT_EQ(ShellLines(Shell::Posix, variables), "export VALUE='x'\nunset VALUE\n");
  EXPECT_EQ(ValueAfter(ShellLines(Shell::Posix, variables)), "|");
  EXPECT_EQ(ShellLines(Shell::Fish, variables), "set -gx VALUE 'x'\nset -e VALUE\n");
}

TEST(ShellLines, FishReadsBackslashesInsideOfQuotes) {
  const std::vector<Variable> variables = {{"VALUE", "it's \\n $HOME\n"}};
  EXPECT_EQ(ShellLines(Shell::Fish, variables), "set -gx VALUE 'it\\'s \\\\n $HOME\n'\n");
}

TEST(WithoutEntries, KeepsTheOthersWithTheirSeparators) {
  const Strings ours = {"/our", "/own"};
  EXPECT_EQ(WithoutEntries("", ours, ":;"), "");
  EXPECT_EQ(WithoutEntries("/a;/b::/c:", ours, ":;"), "/a;/b::/c:");
  EXPECT_EQ(WithoutEntries("/our:/own:/a;/b", ours, ":;"), "/a;/b");
  EXPECT_EQ(WithoutEntries("/a;/our:/b", ours, ":;"), "/a:/b");
  EXPECT_EQ(WithoutEntries("/our", ours, ":;"), "");
  EXPECT_EQ(WithoutEntries("/ours:/a/our:our", ours, ":;"), "/ours:/a/our:our");
  EXPECT_EQ(WithoutEntries("/a b;/our", ours, ": "), "/a b;/our");
}

}  // namespace
}  // namespace cuaudit::harness::shell_test
