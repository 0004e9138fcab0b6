// SPDX-License-Identifier: MIT
#include "harness/sweep/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::plan_file_test {
namespace {

using testing::HasSubstr;

PlanFile Sample() {
  PlanFile plan;
  plan.subject = 0x1234;
  plan.faults = {"cuInit#1=INVALID_VALUE,refuse", "cuMemAlloc#2=OUT_OF_MEMORY,after"};
  plan.sites = {0xfedcba9876543210U, 0};
  return plan;
}

std::string WhyNot(const std::string& text) {
  const Result<PlanFile> plan = ParsePlan(text, "plan.txt");
  EXPECT_FALSE(plan.ok()) << text;
  EXPECT_EQ(plan.status().exit(), Exit::Usage);
  EXPECT_EQ(plan.status().message().find('\n'), std::string::npos);
  return plan.status().message();
}

TEST(PlanFile, RoundTrips) {
  const Result<PlanFile> read = ParsePlan(FormatPlan(Sample()), "plan.txt");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, Sample());
}

TEST(PlanFile, RoundTripsWithoutFaults) {
  PlanFile plan;
  const Result<PlanFile> read = ParsePlan(FormatPlan(plan), "plan.txt");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, plan);
}

TEST(PlanFile, DigestTellsSubjectFaultsAndOrderApart) {
  PlanFile other = Sample();
  other.subject = 0x1235;
  EXPECT_NE(other.Digest(), Sample().Digest());
  other = Sample();
  std::swap(other.faults[0], other.faults[1]);
  EXPECT_NE(other.Digest(), Sample().Digest());
  other = Sample();
  other.sites[1] = 7;
  EXPECT_NE(other.Digest(), Sample().Digest());
  other = Sample();
  other.faults.pop_back();
  other.sites.pop_back();
  EXPECT_NE(other.Digest(), Sample().Digest());
}

TEST(PlanFile, RefusesAnotherFirstLine) {
  for (const char* const text : {"", "\n", "cuaudit-plan 1 x\n", "cuaudit-plan 2 subject=12 faults=0 digest=0\n",
                                 "cuaudit-plan 2 subject=0000000000000000 faults=x digest=0000000000000000\n",
                                 "cuaudit-plan 2 subject=0000000000000000 faults=0 digest=0000000000000000 more\n"}) {
    EXPECT_THAT(WhyNot(text), HasSubstr("plan.txt:1: expected ")) << text;
  }
}

TEST(PlanFile, NamesLineAndColumnOfAMalformedFault) {
  std::string text = FormatPlan(Sample());
  text.replace(text.find("cuMemAlloc#2"), 12, "cuMemAlloc#0");
  EXPECT_THAT(WhyNot(text), HasSubstr("plan.txt:3:12: expected "));
}

TEST(PlanFile, RefusesACutFileAtEveryByte) {
  const std::string text = FormatPlan(Sample());
  for (std::size_t size = 0; size < text.size(); ++size) WhyNot(text.substr(0, size));
}

TEST(PlanFile, RefusesAMissingOrExtraLine) {
  const std::string text = FormatPlan(Sample());
  EXPECT_THAT(WhyNot(text.substr(0, text.find("cuMemAlloc"))), HasSubstr("2 faults, found 1"));
  EXPECT_THAT(WhyNot(text + "cuInit#2=INVALID_VALUE,refuse site=0000000000000001\n"), HasSubstr("2 faults, found 3"));
}

TEST(PlanFile, RefusesALineWithoutItsSite) {
  const std::string text = FormatPlan(Sample());
  const std::size_t site = text.find(" site=");
  for (const char* const instead : {"", " site=", " site=12", " site=fedcba9876543210 more", " 7"}) {
    std::string changed = text;
    EXPECT_THAT(WhyNot(changed.replace(site, 22, instead)), HasSubstr("plan.txt:2")) << instead;
  }
}

TEST(PlanFile, RefusesAChangedLine) {
  std::string text = FormatPlan(Sample());
  text.replace(text.find("cuMemAlloc#2"), 12, "cuMemAlloc#3");
  EXPECT_THAT(WhyNot(text), HasSubstr("the plan was changed"));
}

}  // namespace
}  // namespace cuaudit::harness::plan_file_test
