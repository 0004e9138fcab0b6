// SPDX-License-Identifier: MIT
// Whole programs that lose something in one place: each sweep is one defect, with its rule, the function that is to blame and the release
// that it did not make. Optimisation must not change who is blamed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "suites/e2e/blame_rows.h"

namespace cuaudit::e2e::blame_test {
namespace {

using blame::Row;
using ::testing::SizeIs;

// "Encoder::Open" of "(anonymous namespace)::Encoder::Open()", and the function around a lambda.
std::string Plain(const nlohmann::json& frame, int level) {
  std::string function = frame["function"];
  const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = function.find(anonymous)) != std::string::npos;) function.erase(at, anonymous.size());
  function = function.substr(0, function.find('('));
  for (const char* const lambda : {"::<lambda", "::{lambda", "::$_"}) function = function.substr(0, function.find(lambda));
  if (!function.empty()) return function;
  std::string module = frame["module"];
  const std::string built = "_O" + std::to_string(level);
  if (const std::size_t at = module.find(built); at != std::string::npos) module.erase(at, built.size());
  return module + "+";
}

class Blame : public ::testing::TestWithParam<Row> {};

TEST_P(Blame, IsOneDefectAndWhoeverLostItIsNamed) {
  const Row& row = GetParam();
  for (const int level : {0, 3}) {
    const Audit audit = blame::SweepRow(row, level, "wrong");
    SCOPED_TRACE("-O" + std::to_string(level) + ": " + audit.outcome.err);
    EXPECT_EQ(audit.outcome.exit, 1);
    ASSERT_FALSE(audit.report.is_null());
    const nlohmann::json& defects = audit.report["defects"];
    ASSERT_THAT(defects, SizeIs(row.second == nullptr ? 1 : 2)) << defects.dump(1);
    for (const nlohmann::json& defect : defects) {
      EXPECT_EQ(defect["rule"], row.rule);
      ASSERT_FALSE(defect["blame"].is_null());
    }
    EXPECT_EQ(Plain(defects[0]["blame"]["function"], level), row.blamed);
    if (row.second != nullptr) {
      EXPECT_EQ(Plain(defects[1]["blame"]["function"], level), row.second);
    }
    if (row.release != nullptr) {
      EXPECT_EQ(defects[0]["released"]["call"], row.release);
      EXPECT_THAT(defects[0]["says"].get<std::string>(), ::testing::HasSubstr(row.release));
    }
    if (row.members[0] == '\0') continue;
    std::string members;
    for (const nlohmann::json& member : defects[0]["members"]) {
      members += (members.empty() ? "" : " ") + member["kind"].get<std::string>();
    }
    EXPECT_EQ(members, row.members);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Blame, ::testing::ValuesIn(blame::kRows),
                         [](const auto& test) { return std::string(test.param.program) + "_" + test.param.name; });

}  // namespace
}  // namespace cuaudit::e2e::blame_test
