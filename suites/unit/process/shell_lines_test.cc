// SPDX-License-Identifier: MIT
#include "harness/process/shell_lines.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <string>
#include <vector>

namespace cuaudit::harness::shell_lines_test {
namespace {

using Strings = std::vector<std::string>;

const Strings kHostile = {
    "",         " a  b ", "it's", "''", "\"$HOME\"", "`id` $(id) ${x}", "\\", "\\'", "a\nb\n\n", "#~*?[x]{a,b};&|<>()", "\xff\x01\x7f",
    "\xc3\xbc", "\\n\\'"};

// What the POSIX shell `sh` has in the variable after the lines.
std::string ThroughShell(const std::string& lines) {
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
    EXPECT_EQ(ThroughShell(ShellLines(Shell::Posix, variables)), value + "|");
  }
}

TEST(ShellLines, RemovesAVariableWithoutAValue) {
  const std::vector<Variable> variables = {{"VALUE", "x"}, {"VALUE", std::nullopt}};
  EXPECT_EQ(ShellLines(Shell::Posix, variables), "export VALUE='x'\nunset VALUE\n");
  EXPECT_EQ(ThroughShell(ShellLines(Shell::Posix, variables)), "|");
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
}  // namespace cuaudit::harness::shell_lines_test
