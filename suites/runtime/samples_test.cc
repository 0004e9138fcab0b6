// SPDX-License-Identifier: MIT
// Ordinary programs of the shared CUDA runtime, unmodified, on the simulated driver: same output as on a GPU, clean under a sweep and over
// cycles, and each planted defect is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/runtime/runtime_programs.h"

namespace cuaudit::e2e {
namespace {

using ::testing::HasSubstr;

struct Sample {
  const char* name;
  const char* output;   // what an H200 prints too
  const char* planted;  // kind of what the planted form leaves
};

void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name; }

class Samples : public ::testing::TestWithParam<Sample> {};

TEST_P(Samples, PrintsWhatAGpuPrints) {
  CUAUDIT_NEEDS(GetParam().name);
  const Audit audit = RunAudit(WithKernels("run"), {RuntimeProgram(GetParam().name)});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, GetParam().output);
  EXPECT_EQ(audit.result(), "clean");
  EXPECT_EQ(audit.report["driver"]["runtime"], "cuaudit's own, 13.0");
  EXPECT_THAT(audit.report["driver"]["world"].get<std::string>(), HasSubstr(";kernels=" + KernelsFile()));
}

TEST_P(Samples, IsCleanUnderASweep) {
  CUAUDIT_NEEDS(GetParam().name);
  const Audit audit = RunAudit(WithKernels("sweep"), {RuntimeProgram(GetParam().name)});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  ASSERT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_EQ(audit.report["totals"]["trials"], audit.report["totals"]["fired"]);
  EXPECT_GE(audit.report["totals"]["trials"], 40);
}

TEST_P(Samples, IsCleanOverCycles) {
  CUAUDIT_NEEDS(GetParam().name);
  const Audit audit = RunAudit(WithKernels("cycles"), {RuntimeProgram(GetParam().name), "{n}"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
}

TEST_P(Samples, PlantedFormIsFound) {
  const std::string planted = std::string(GetParam().name) + "_planted";
  CUAUDIT_NEEDS(planted);
  const Audit audit = RunAudit(WithKernels("sweep"), {RuntimeProgram(planted)});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  ASSERT_FALSE(audit.report["findings"].empty());
  for (const auto& finding : audit.report["findings"]) EXPECT_EQ(finding["kind"], GetParam().planted) << finding.dump();
}

INSTANTIATE_TEST_SUITE_P(
    Every, Samples,
    ::testing::Values(Sample{"vector_add", "vector_add: sum 1375113.0, wrong 0, c[7] 14.0, c[24575] 37.0\n", "stream"},
                      Sample{"graph_capture", "graph_capture: 3 nodes, sum 11104944.0000, out[31] 5422.335938\n", "graph"},
                      Sample{"pool_user", "pool_user: total 20000, used 0, reserved after trimming 0\n", "stream_ordered_memory"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Samples, PerThreadDefaultStreamCallsTheDriversTwins) {
  CUAUDIT_NEEDS("vector_add_per_thread");
  const Audit audit = RunAudit(WithKernels("run"), {RuntimeProgram("vector_add_per_thread")});
  EXPECT_EQ(audit.outcome.out, "vector_add: sum 1375113.0, wrong 0, c[7] 14.0, c[24575] 37.0\n") << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean");
}

TEST(Samples, SymbolsAreReachedByTheirHostNames) {
  CUAUDIT_NEEDS("symbols");
  const Audit audit = RunAudit({"run"}, {RuntimeProgram("symbols")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out,
            "to cudaSuccess\nfrom cudaSuccess 1.0 2.5\nsize cudaSuccess 96\ninitial cudaSuccess 5 7\naddress cudaSuccess cudaSuccess "
            "cudaSuccess 41\n"
            "beyond cudaErrorInvalidValue\ndirection cudaErrorInvalidMemcpyDirection\nforeign cudaErrorInvalidSymbol\n"
            "last cudaErrorInvalidSymbol cudaErrorInvalidSymbol cudaSuccess\nmanaged cudaSuccess cudaSuccess 1 9\nblock "
            "cudaErrorInvalidValue\n"
            "sync cudaSuccess\nreset cudaSuccess cudaSuccess cudaSuccess\n");
}

// The runtime gives its context back at exit, which is not what loses the program's objects: they are leaks, and their stacks begin
// in the program.
void ExpectLeaksOfTheProgram(const Audit& audit, const std::string& program) {
  ASSERT_FALSE(audit.report.is_null());
  ASSERT_FALSE(audit.report["findings"].empty());
  for (const auto& finding : audit.report["findings"]) {
    EXPECT_EQ(finding["rule"], "leak") << finding.dump();
    EXPECT_EQ(finding["acquired"]["stack"][0]["module"], program) << finding.dump();
    EXPECT_THAT(finding["acquired"]["stack"][0]["function"].get<std::string>(), HasSubstr("Lane::Open"));
    EXPECT_THAT(finding.dump(), testing::Not(testing::AnyOf(HasSubstr("genuine_driver.cc"), HasSubstr("cuaudit::"))));
  }
}

TEST(Samples, WhatStaysBehindIsALeakOfTheProgram) {
  CUAUDIT_NEEDS("vector_add_planted");
  ExpectLeaksOfTheProgram(RunAudit(WithKernels("sweep"), {RuntimeProgram("vector_add_planted")}), "vector_add_planted");
}

TEST(Samples, WhatStaysBehindIsALeakOfTheProgramLinkedAgain) {
  CUAUDIT_NEEDS("vector_add_relinked_planted");
  ExpectLeaksOfTheProgram(RunAudit(WithKernels("sweep"), {RuntimeProgram("vector_add_relinked_planted")}), "vector_add_relinked_planted");
}

// Without host kernels nothing is computed, and that is said; with them it is said how many there were.
TEST(Kernels, ThatDidNothingAreCounted) {
  CUAUDIT_NEEDS("vector_add");
  const Audit idle = RunAudit({"run"}, {RuntimeProgram("vector_add")});
  ASSERT_FALSE(idle.report.is_null()) << idle.outcome.err;
  EXPECT_EQ(idle.report["driver"]["kernels"]["hosted"], 0);
  EXPECT_GE(idle.report["driver"]["kernels"]["idle"], 1);
  const Audit hosted = RunAudit(WithKernels("run"), {RuntimeProgram("vector_add")});
  ASSERT_FALSE(hosted.report.is_null()) << hosted.outcome.err;
  EXPECT_EQ(hosted.report["driver"]["kernels"]["idle"], 0);
  EXPECT_EQ(hosted.report["driver"]["kernels"]["hosted"], idle.report["driver"]["kernels"]["idle"]);
  const Audit none = RunAudit({"run"}, {RuntimeProgram("client_late")});
  ASSERT_FALSE(none.report.is_null()) << none.outcome.err;
  EXPECT_FALSE(none.report["driver"].contains("kernels"));
}

TEST(Kernels, ThatDidNothingAreToldByExplain) {
  CUAUDIT_NEEDS("vector_add");
  const std::string directory = TemporaryDirectory();
  const std::vector<std::string> run = {Tool(),
                                        "run",
                                        "--driver=sim",
                                        "--keep",
                                        "--work-dir=" + directory,
                                        "--output=" + directory + "/report",
                                        "--",
                                        RuntimeProgram("vector_add")};
  const Outcome ran = RunCommand(run);
  EXPECT_THAT(ReadFile(directory + "/report"), HasSubstr("of kernels did nothing: register host kernels with --kernels")) << ran.err;
  const Outcome told = RunCommand({Tool(), "explain", directory + "/run.journal"});
  EXPECT_THAT(told.out, HasSubstr("of kernels did nothing: register host kernels with --kernels")) << told.err;
}

TEST(Kernels, AreRepeatedInReproduceLines) {
  CUAUDIT_NEEDS("vector_add_planted");
  const Audit audit = RunAudit(WithKernels("sweep"), {RuntimeProgram("vector_add_planted")});
  ASSERT_FALSE(audit.report.is_null());
  ASSERT_FALSE(audit.report["findings"].empty());
  EXPECT_THAT(audit.report["findings"][0]["reproduce"].get<std::string>(), HasSubstr("--kernels=" + KernelsFile()));
}

// A finding names the program's own line, not the runtime's.
TEST(Samples, AFindingPointsIntoTheProgram) {
  CUAUDIT_NEEDS("graph_capture_planted");
  const Audit audit = RunAudit(WithKernels("sweep"), {RuntimeProgram("graph_capture_planted")});
  ASSERT_FALSE(audit.report.is_null());
  ASSERT_FALSE(audit.report["findings"].empty());
  const auto& frame = audit.report["findings"][0]["acquired"]["stack"][0];
  EXPECT_EQ(frame["module"], "graph_capture_planted");
  EXPECT_THAT(frame["function"].get<std::string>(), HasSubstr("Pipeline::Capture"));
}

}  // namespace
}  // namespace cuaudit::e2e
