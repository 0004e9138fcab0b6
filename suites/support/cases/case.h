// SPDX-License-Identifier: MIT
// case.h: a test that also counts as a planted or a positive case of a rule, and that writes down what the harness found.
//
//   CUAUDIT_CASE(rule, name) { ... }   defines TEST(rule, name) and registers the rule
//   const CaseRow row(kind);           in a loop of a case: one row, with the findings until the end of the scope
//   Causes(2);                         within a row: what is wrong has two causes, so each result of it is two defects and not one
//   Also(rule, kind);                  within a case: the harness rightly finds this too; any other finding fails the kill matrix
//   const Aside aside;                 findings until the end of the scope belong to no case
//
// The set of rules is filled before main; cases run on one thread. A rule without a case fails EveryRule.HasACase
// (completeness_test.cc). scripts/gen_kill_matrix.py reads the properties of the tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "harness/ledger/rules.h"
#include "suites/support/trace.h"

namespace cuaudit::testing {

inline std::set<harness::Rule>& RulesWithCases() {
  static std::set<harness::Rule> rules;
  return rules;
}

inline bool RegisterCase(harness::Rule rule) {
  RulesWithCases().insert(rule);
  return true;
}

// Findings that the current row is declared to have besides its own rule.
inline Sightings& Declared() {
  static Sightings declared;
  return declared;
}

inline void Also(harness::Rule rule, driver::Kind kind) { Declared().emplace(harness::Name(rule), driver::Name(kind)); }

// Number of defects that each result of the current row must be.
inline std::size_t& CausesOfRow() {
  static std::size_t causes = 1;
  return causes;
}

inline void Causes(std::size_t count) { CausesOfRow() = count; }

// Rows of the current case: "row=rule kind,rule kind,+rule kind;row=". A plus marks declared findings.
inline std::string& RowsOfCase() {
  static std::string rows;
  return rows;
}

inline void EndRow(std::string_view label) {
  std::string& rows = RowsOfCase();
  if (!rows.empty()) rows += ';';
  rows.append(label).append("=");
  const char* separator = "";
  for (const auto& [rule, kind] : Seen()) {
    rows.append(separator).append(rule).append(" ").append(kind);
    separator = ",";
  }
  for (const auto& [rule, kind] : Declared()) {
    rows.append(separator).append("+").append(rule).append(" ").append(kind);
    separator = ",";
  }
  for (const std::size_t defects : SeenDefects()) EXPECT_EQ(defects, CausesOfRow()) << "defects of row '" << label << "'";
  Seen().clear();
  SeenDefects().clear();
  CausesOfRow() = 1;
  Declared().clear();
}

class CaseScope {
 public:
  explicit CaseScope(harness::Rule rule) : rule_(rule) {
    Seen().clear();
    SeenDefects().clear();
    CausesOfRow() = 1;
    Declared().clear();
    RowsOfCase().clear();
  }
  CaseScope(const CaseScope&) = delete;
  CaseScope& operator=(const CaseScope&) = delete;
  ~CaseScope() {
    if (RowsOfCase().empty() || !Seen().empty()) EndRow("");
    ::testing::Test::RecordProperty("rule", std::string(harness::Name(rule_)));
    ::testing::Test::RecordProperty("rows", RowsOfCase());
  }

 private:
  harness::Rule rule_;
};

class CaseRow {
 public:
  explicit CaseRow(driver::Kind kind) : CaseRow(driver::Name(kind)) {}
  explicit CaseRow(std::string_view label) : trace_(__FILE__, __LINE__, std::string(label)), label_(label) {}
  CaseRow(const CaseRow&) = delete;
  CaseRow& operator=(const CaseRow&) = delete;
  ~CaseRow() { EndRow(label_); }

 private:
  ::testing::ScopedTrace trace_;
  std::string label_;
};

class Aside {
 public:
  Aside() : before_(std::exchange(Seen(), {})), defects_before_(std::exchange(SeenDefects(), {})) {}
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    Seen() = std::move(before_);
    SeenDefects() = std::move(defects_before_);
  }

 private:
  Sightings before_;
  std::vector<std::size_t> defects_before_;
};

// No call is wrong, and nothing is left.
inline void ExpectSilent(const harness::Ledger& ledger) {
  EXPECT_THAT(Wrong(ledger), ::testing::IsEmpty());
  EXPECT_THAT(Left(ledger), ::testing::IsEmpty());
}
inline void ExpectSilent(const Trace& t) { ExpectSilent(t.Fold()); }

}  // namespace cuaudit::testing

#define CUAUDIT_CASE(rule, name)                                                                                             \
  [[maybe_unused]] const bool registered_##rule##_##name = ::cuaudit::testing::RegisterCase(::cuaudit::harness::Rule::rule); \
  void Case_##rule##_##name();                                                                                               \
  TEST(rule, name) {                                                                                                         \
    const ::cuaudit::testing::CaseScope scope(::cuaudit::harness::Rule::rule);                                               \
    Case_##rule##_##name();                                                                                                  \
  }                                                                                                                          \
  void Case_##rule##_##name()
