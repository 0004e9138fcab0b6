// SPDX-License-Identifier: MIT
#include "reports/text_writer.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "suites/golden/sample_runs.h"

namespace cuaudit::report {
namespace {

std::string Written(const Run& run, bool colour = false) {
  std::ostringstream out;
  EXPECT_TRUE(WriteText(run, out, colour));
  return out.str();
}

bool Holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(TextWriter, ASimulatedDriverAlwaysSaysSo) {
  for (suites::Sample& sample : suites::Samples()) {
    sample.run.driver.kind = "sim";
    EXPECT_TRUE(Holds(Written(sample.run), "driver   simulated")) << sample.name;
    EXPECT_TRUE(Holds(Written(sample.run), " on the simulated driver: ")) << sample.name;
    sample.run.driver.kind = "real";
    EXPECT_FALSE(Holds(Written(sample.run), "driver   simulated")) << sample.name;
    EXPECT_TRUE(Holds(Written(sample.run), " on the real driver: ")) << sample.name;
  }
}

TEST(TextWriter, AFindingNamesWhereItWasAcquiredAndWhatLostIt) {
  const std::string text = Written(suites::SweepWithFindings());
  EXPECT_TRUE(Holds(text, "1. leak: 1 stream, in 3 trials"));
  EXPECT_TRUE(Holds(text, "acquired by cuStreamCreate\n       make_stream src/picture.c:61"));
  EXPECT_TRUE(Holds(text, "lost when cuEventCreate#2=OUT_OF_MEMORY,refuse failed\n       make_events src/picture.c:88"));
  EXPECT_TRUE(Holds(text, "reproduce cuaudit replay"));
  EXPECT_TRUE(Holds(text, "notes: 1 not_exercised, 1 release_refused"));
}

TEST(TextWriter, FramesWithoutSourceAreLeftOutWhereOthersHaveOne) {
  std::vector<Frame> stack = {{"libplug.so", "hook", "", 0, 1}, {"prog", "work", "a.c", 3, 2}};
  ASSERT_EQ(ShownFrames(stack).size(), 1U);
  EXPECT_EQ(ShownFrames(stack)[0].function, "work");
  stack.pop_back();
  ASSERT_EQ(ShownFrames(stack).size(), 1U);
  EXPECT_EQ(ShownFrames(stack)[0].function, "hook");
}

TEST(TextWriter, AFrameIsDescribedAsFarAsItIsKnown) {
  EXPECT_EQ(Describe({"prog", "work", "a.c", 3, 2}), "work a.c:3");
  EXPECT_EQ(Describe({"prog", "work", "a.c", 0, 2}), "work a.c");
  EXPECT_EQ(Describe({"prog", "work", "", 0, 2}), "work (prog)");
  EXPECT_EQ(Describe({"prog", "", "", 0, 0x1f30}), "prog+0x1f30");
  EXPECT_EQ(Describe({"", "", "", 0, 16}), "?+0x10");
}

TEST(TextWriter, CyclesShowOneColumnPerCount) {
  const std::string text = Written(suites::CyclesWithGrowth());
  EXPECT_TRUE(Holds(text, "N=1  N=10  per cycle"));
  EXPECT_TRUE(Holds(text, "malloc < state_init src/state.c:40"));
  EXPECT_TRUE(Holds(text, "growth per cycle: host_heap +2, stream +0.50"));
}

TEST(TextWriter, NothingAliveAfterCyclesIsSaid) {
  report::Run run;
  run.mode = "cycles";
  run.cycle_counts = {1, 10};
  EXPECT_TRUE(Holds(Written(run), "nothing was alive at exit"));
}

TEST(TextWriter, ColourOnlyWhenAsked) {
  for (const suites::Sample& sample : suites::Samples()) {
    EXPECT_FALSE(Holds(Written(sample.run, false), "\x1b")) << sample.name;
    EXPECT_TRUE(Holds(Written(sample.run, true), "\x1b[")) << sample.name;
  }
}

TEST(TextWriter, ControlCharactersNeverReachTheTerminal) {
  const std::string text = Written(suites::HostileStrings());
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  EXPECT_TRUE(Holds(text, "\\x1b[31mred"));
}

TEST(TextWriter, AFailedStreamIsTold) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(WriteText(report::Run{}, out, false));
}

}  // namespace
}  // namespace cuaudit::report
