// SPDX-License-Identifier: MIT
#include "faults/python/line_table.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "suites/support/pythons.h"

namespace cuaudit::python::line_table_test {
namespace {

int LineIn(const std::vector<unsigned char>& table, int first_line, std::size_t offset) {
  SafeMemory memory;
  return LineAt(&memory, reinterpret_cast<std::uintptr_t>(table.data()), table.size(), first_line, offset);
}

TEST(LineTable, EveryKindOfEntry) {
  // Line 10 for one unit, without columns; 2 further down for two, with short columns; no location for one; 200 up and back, long.
  const std::vector<unsigned char> table = {0xe8, 0x00, 0xe1, 0x01, 0x05, 0xf8, 0xf0, 0x51, 0x06, 0x00, 0x01, 0x01, 0x80, 0x22};
  EXPECT_EQ(LineIn(table, 10, 0), 10);
  EXPECT_EQ(LineIn(table, 10, 2), 12);
  EXPECT_EQ(LineIn(table, 10, 5), 12);
  EXPECT_EQ(LineIn(table, 10, 6), 12) << "no location: the nearest before";
  EXPECT_EQ(LineIn(table, 300, 8), 302 - 200);
  EXPECT_EQ(LineIn(table, 300, 10), 302 - 200) << "the same line, other columns";
  EXPECT_EQ(LineIn(table, 300, 4096), 302 - 200) << "past the end";
}

TEST(LineTable, DamagedTablesHaveNoLine) {
  EXPECT_EQ(LineIn({}, 10, 0), 0);
  EXPECT_EQ(LineIn({0x68, 0x00}, 10, 0), 0) << "no entry begins so";
  EXPECT_EQ(LineIn({0xe8}, 10, 0), 0) << "cut";
  EXPECT_EQ(LineIn({0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}, 10, 0), 0) << "a number without an end";
  EXPECT_EQ(LineIn({0xe8, 0x29}, 10, 0), 0) << "above the first line of a file";
  SafeMemory memory;
  EXPECT_EQ(LineAt(&memory, 8, 100, 10, 0), 0) << "not readable";
}

class OfInterpreter : public ::testing::TestWithParam<int> {};

TEST_P(OfInterpreter, LinesOfTheStandardLibrary) {
  for (const std::string& candidate : testing::PythonCandidates(GetParam())) {
    std::FILE* const pipe = popen((candidate + " " CUAUDIT_DUMP_LINES " 2>/dev/null").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string text;
    char part[4096];
    for (std::size_t count = 0; (count = std::fread(part, 1, sizeof(part), pipe)) != 0;) text.append(part, count);
    if (pclose(pipe) != 0) continue;  // a script that starts other versions
    std::istringstream functions(text);
    std::size_t units = 0;
    for (std::string function; std::getline(functions, function);) {
      std::istringstream words(function);
      int first_line = 0;
      std::string hex;
      words >> first_line >> hex;
      std::vector<unsigned char> table;
      for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        table.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
      std::size_t offset = 0;
      for (int line = 0; words >> line; offset += 2, ++units) {
        ASSERT_EQ(LineIn(table, first_line, offset), line) << candidate << " at " << offset << " of " << function.substr(0, 200);
      }
    }
    EXPECT_GT(units, 10000U);
    return;
  }
  GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
}

INSTANTIATE_TEST_SUITE_P(CPython3, OfInterpreter, ::testing::Values(11, 12, 13, 14),
                         [](const auto& test) { return std::to_string(test.param); });

}  // namespace
}  // namespace cuaudit::python::line_table_test
