// SPDX-License-Identifier: MIT
#include "harness/compare/similarity.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cuaudit::harness::similarity_test {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

KnownDefect Known(const std::string& fingerprint, const std::string& function, const std::vector<std::string>& failing = {"cuMemAlloc"}) {
  KnownDefect defect;
  defect.case_name = "player";
  defect.mode = report::Mode::Sweep;
  defect.fingerprint = fingerprint;
  defect.rule = report::Rule::Leak;
  defect.kinds = {"stream"};
  defect.call = "cuStreamCreate";
  defect.stack = {function, "setup", "main"};
  defect.blame = function;
  for (const std::string& call : failing) defect.failing.push_back({call, "OUT_OF_MEMORY", "refuse", false, function, 1});
  return defect;
}

FunctionNames NamesOf(const std::vector<KnownDefect>& before, const std::vector<KnownDefect>& after) {
  FunctionNames names;
  for (const KnownDefect& defect : before) AddFunctions(defect, &names.before);
  for (const KnownDefect& defect : after) AddFunctions(defect, &names.after);
  return names;
}

double Alike(const KnownDefect& before, const KnownDefect& after) { return LikenessOf(before, after, NamesOf({before}, {after})); }

TEST(Similarity, EqualIsOneAndRulesAndCallsDecide) {
  const KnownDefect one = Known("a", "open");
  EXPECT_DOUBLE_EQ(Alike(one, one), 1);
  KnownDefect other = one;
  other.rule = report::Rule::DoubleRelease;
  EXPECT_DOUBLE_EQ(Alike(one, other), 0);
  other.rule = report::Rule::Orphaned;
  EXPECT_DOUBLE_EQ(Alike(one, other), 1) << "the same loss";
  other.call = "cuStreamCreateWithPriority";
  EXPECT_DOUBLE_EQ(Alike(one, other), 0);
  other.call = "cuStreamCreate_v2";
  EXPECT_DOUBLE_EQ(Alike(one, other), 1);
}

TEST(Similarity, AFunctionMayBeRenamedMovedOrInlined) {
  const KnownDefect one = Known("a", "open");
  EXPECT_GE(Alike(one, Known("b", "device_open")), kAlike);
  EXPECT_GT(Alike(one, Known("b", "player::Device<ns::Tag>::open")), Alike(one, Known("b", "device_open")));
  KnownDefect inlined = Known("b", "setup");
  inlined.stack = {"setup", "main"};
  EXPECT_GE(Alike(one, inlined), kAlike);
  EXPECT_GE(Alike(inlined, one), kAlike) << "and split again";
}

TEST(Similarity, FunctionsThatBothExistAreTwo) {
  const KnownDefect one = Known("a", "open");
  const KnownDefect other = Known("b", "load");
  FunctionNames names = NamesOf({one}, {other});
  names.after.insert("open");
  EXPECT_LT(LikenessOf(one, other, names), kAlike);
  names = NamesOf({one}, {other});
  names.before.insert("load");
  EXPECT_LT(LikenessOf(one, other, names), kAlike);
}

TEST(Similarity, FingerprintsComeFirstAndEachDefectIsPairedOnce) {
  const std::vector<KnownDefect> before = {Known("v2-1", "open"), Known("v2-2", "load")};
  const std::vector<KnownDefect> after = {Known("v2-2", "load"), Known("v2-9", "device_open")};
  EXPECT_EQ(PairDefects(before, after, NamesOf(before, after)), (Pairs{{0, 1}, {1, 0}}));
  const std::vector<KnownDefect> twice = {Known("v2-1", "open"), Known("v2-8", "open2")};
  const std::vector<KnownDefect> renamed = {Known("v2-9", "device_open")};
  EXPECT_EQ(PairDefects(twice, renamed, NamesOf(twice, renamed)).size(), 1U);
}

// When the first of two defects of one function is repaired, the second one gets the number of the first.
TEST(Similarity, ANumberBehindAFingerprintIsNoName) {
  const std::vector<KnownDefect> before = {Known("v2-1", "open", {"cuMemAlloc"}), Known("v2-1-2", "open", {"cuEventCreate"})};
  const std::vector<KnownDefect> after = {Known("v2-1", "open", {"cuEventCreate"})};
  EXPECT_EQ(PairDefects(before, after, NamesOf(before, after)), (Pairs{{1, 0}}));
}

}  // namespace
}  // namespace cuaudit::harness::similarity_test
