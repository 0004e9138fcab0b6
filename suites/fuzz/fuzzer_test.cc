// SPDX-License-Identifier: MIT
// That cuaudit/fuzz.h finds what is planted, and stays silent where nothing is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "cuaudit/fuzz.h"
#include "suites/fuzz/subjects.h"

namespace cuaudit::fuzz {
namespace {

using ::testing::HasSubstr;

FaultChoice Choose(const std::vector<std::uint8_t>& bytes) {
  FuzzInput input(bytes.data(), bytes.size());
  return FaultChoice(&input);
}

// What a fuzzer would do without looking at coverage.
std::vector<FuzzTrial> TryMany(Fuzzer* fuzzer, int trials) {
  std::mt19937 random(7);
  std::vector<FuzzTrial> found;
  for (int i = 0; i < trials; ++i) {
    std::vector<std::uint8_t> bytes(13);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    FuzzTrial trial = fuzzer->Try(Choose(bytes));
    if (trial.finding) found.push_back(std::move(trial));
  }
  return found;
}

TEST(Fuzzer, FindsWhatOneFaultLoses) {
  Fuzzer fuzzer(Lifecycle::Of<ForgetsTheStream>("forgets_the_stream", 0).WithCurrentContext());
  // One fault, the second call that can fail, refused.
  const FuzzTrial trial = fuzzer.Try(Choose({1, 0, 1, 0, 0}));
  EXPECT_TRUE(trial.finding);
  EXPECT_THAT(trial.text, HasSubstr("leak: 1 stream"));
  EXPECT_THAT(trial.text, HasSubstr("CUAUDIT_FAULT="));
  ASSERT_EQ(trial.faults.size(), 1U);
  EXPECT_THAT(trial.faults[0], HasSubstr("cuEventCreate#1="));
  const FuzzTrial again = fuzzer.Try(Choose({1, 0, 1, 0, 0}));
  EXPECT_TRUE(again.finding) << "as when libFuzzer makes an input smaller";
  EXPECT_EQ(again.text, trial.text);
}

TEST(Fuzzer, FindsWhatNeedsASecondFaultWhileUnwinding) {
  Fuzzer fuzzer(Lifecycle::Of<GivesUpUnwinding>("gives_up_unwinding").WithCurrentContext());
  // cuEventCreate#2 fails, then the first call after it.
  const FuzzTrial trial = fuzzer.Try(Choose({2, 0, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(trial.finding);
  EXPECT_THAT(trial.text, HasSubstr("leak: 1 stream"));
  ASSERT_EQ(trial.faults.size(), 2U);
  EXPECT_THAT(trial.faults[1], HasSubstr("cuEventDestroy#1="));
  EXPECT_FALSE(fuzzer.Try(Choose({1, 0, 2, 0, 0})).finding) << "the first fault alone loses nothing";
}

TEST(Fuzzer, GarbageInOutputsIsForThoseWhoAskForIt) {
  const Lifecycle lifecycle = Lifecycle::Of<TrustsItsOutput>("trusts_its_output").WithCurrentContext();
  const FaultChoice garbage = Choose({1, 0, 0, 0, 1});
  EXPECT_FALSE(Fuzzer(lifecycle).Try(garbage).finding);
  const FuzzTrial trial = Fuzzer(lifecycle, {.garbage = true}).Try(garbage);
  EXPECT_TRUE(trial.finding);
  EXPECT_THAT(trial.text, HasSubstr("unknown_handle: 1 stream"));
}

TEST(Fuzzer, SilentWhereNothingIsLost) {
  Fuzzer picture(Lifecycle::Of<Picture>("picture", 3).WithCurrentContext(), {.garbage = true});
  Fuzzer program(Lifecycle::Of<Program>("program").WithCurrentContext(), {.garbage = true});
  for (Fuzzer* const fuzzer : {&picture, &program}) {
    const std::vector<FuzzTrial> found = TryMany(fuzzer, 200);
    EXPECT_TRUE(found.empty()) << found.size() << " findings, the first:\n" << found.front().text;
  }
}

TEST(Fuzzer, RandomInputsReachManyFaults) {
  Fuzzer fuzzer(Lifecycle::Of<Picture>("picture", 3).WithCurrentContext());
  std::mt19937 random(3);
  std::set<std::string> first;
  int fired = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint8_t> bytes(13);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const FuzzTrial trial = fuzzer.Try(Choose(bytes));
    if (!trial.fired) continue;
    ++fired;
    first.insert(trial.faults.front().substr(0, trial.faults.front().find('=')));
  }
  EXPECT_GT(fired, 100);
  EXPECT_GE(first.size(), 10U) << "of 15 calls that can fail";
}

TEST(Fuzzer, ALifecycleThatIsNotNeutralWithoutFaultsSaysSo) {
  auto leaks = Lifecycle("leaks").WithCurrentContext();
  leaks.Init([](DriverRef driver) {
    CUstream stream = nullptr;
    return driver.StreamCreate(&stream, 0);
  });
  const FuzzTrial trial = Fuzzer(leaks).Try(Choose({0}));
  EXPECT_TRUE(trial.finding);
  EXPECT_THAT(trial.text, HasSubstr("without faults leaves something"));
}

TEST(Fuzzer, ALifecycleThatCallsNothingProvesNothing) {
  auto idle = Lifecycle("idle").WithCurrentContext();
  idle.Init([] { return true; });
  const FuzzTrial trial = Fuzzer(idle).Try(Choose({1, 0, 0, 0, 0}));
  EXPECT_TRUE(trial.finding);
  EXPECT_THAT(trial.text, HasSubstr("no call of the lifecycle can fail"));
}

TEST(FuzzInput, PastItsEndEverythingIsZero) {
  const std::uint8_t bytes[] = {7, 1, 2};
  FuzzInput input(bytes, 3);
  EXPECT_EQ(input.Below(5), 2U);
  EXPECT_EQ(input.left(), 2U);
  EXPECT_EQ(input.Number(), 0x01020000U);
  EXPECT_TRUE(input.empty());
  EXPECT_EQ(input.Byte(), 0U);
  EXPECT_EQ(input.Below(0), 0U);
  EXPECT_EQ(input.Rest(), "");
}

}  // namespace
}  // namespace cuaudit::fuzz
