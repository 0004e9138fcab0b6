// SPDX-License-Identifier: MIT
// Programs of the CUDA runtime under the tool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Where the programs of this room lie, and how cuaudit runs one with its kernels.
//
//   Threads   one thread.
//   Errors    a program that was not built (no nvcc) has no path: its test is skipped, and says so.

std::string RuntimeProgram(const std::string& name) { return std::string(CUAUDIT_RUNTIME_PROGRAMS) + "/" + name; }
bool Built(const std::string& name) { return access(RuntimeProgram(name).c_str(), X_OK) == 0; }

std::string KernelsFile() { return RuntimeProgram("libruntime_kernels.so"); }
std::vector<std::string> WithKernels(const std::string& command) { return {command, "--kernels=" + KernelsFile()}; }

#define CUAUDIT_NEEDS(name) \
  if (!Built(name)) GTEST_SKIP() << name << " was not built: no nvcc"

// Ordinary programs of the shared CUDA runtime, unmodified, on the simulated driver: same output as on a GPU, clean under a sweep and over
// cycles, and each planted defect is found.

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
  const CommandResult ran = RunCommand(run);
  EXPECT_THAT(ReadFile(directory + "/report"), HasSubstr("of kernels did nothing: register host kernels with --kernels")) << ran.err;
  const CommandResult told = RunCommand({Tool(), "explain", directory + "/run.journal"});
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

// How a program comes by its CUDA runtime: ours by search path or one more link; NVIDIA's is named in one line and never answered.

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// One line of ours, none of the program's, status 3, and a report that says so.
void ExpectTold(const Audit& audit, const std::string& advice) {
  EXPECT_EQ(audit.outcome.exit, 3);
  EXPECT_EQ(audit.outcome.out, "");
  EXPECT_EQ(std::count(audit.outcome.err.begin(), audit.outcome.err.end(), '\n'), 1) << audit.outcome.err;
  EXPECT_THAT(audit.outcome.err, AllOf(StartsWith("cuaudit: "), HasSubstr("not exercised"), HasSubstr(advice)));
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.result(), "not_exercised");
  EXPECT_THAT(audit.report["message"].get<std::string>(), HasSubstr(advice));
}

TEST(StaticRuntime, IsToldToBeLinkedAgain) {
  CUAUDIT_NEEDS("vector_add_static");
  for (const char* const mode : {"run", "sweep", "cycles"}) {
    ExpectTold(RunAudit({mode}, {RuntimeProgram("vector_add_static")}), "nvcc -L" CUAUDIT_CUDART_DIRECTORY);
  }
}

TEST(StaticRuntime, IsToldWithoutTheToolToo) {
  CUAUDIT_NEEDS("vector_add_static");
  const CommandResult outcome =
      RunCommand({RuntimeProgram("vector_add_static")},
                 {.environment = {"CUAUDIT_OPTIONS=driver=sim", "LD_PRELOAD=" + DropInDirectory() + "/libcuda.so.1"}});
  EXPECT_EQ(outcome.exit, 3);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("cuaudit: "), HasSubstr("linked statically"), HasSubstr(CUAUDIT_CUDART_DIRECTORY)));
}

TEST(StaticRuntime, LinkedAgainWithOursIsAudited) {
  CUAUDIT_NEEDS("vector_add_relinked");
  const Audit audit = RunAudit(WithKernels("sweep"), {RuntimeProgram("vector_add_relinked")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.result(), "clean");
  EXPECT_EQ(audit.report["driver"]["runtime"], "cuaudit's own, 13.0");
}

// A search path of its own leads the program to NVIDIA's; ours is there before it, and nobody has to do anything.
TEST(RPathRuntime, IsPrecededByOursAndAudited) {
  CUAUDIT_NEEDS("vector_add_rpath");
  for (const char* const mode : {"run", "sweep"}) {
    const Audit audit = RunAudit(WithKernels(mode), {RuntimeProgram("vector_add_rpath")});
    EXPECT_EQ(audit.outcome.exit, 0) << mode << audit.outcome.err << audit.findings();
    EXPECT_EQ(audit.result(), "clean") << mode;
    EXPECT_EQ(audit.report["driver"]["runtime"], "cuaudit's own, 13.0") << mode;
  }
}

// Not named by the program that is started, but by one that it starts: the advice can be followed as it stands.
TEST(RPathRuntime, OfAProgramThatAnotherStartsIsToldToBePreceded) {
  CUAUDIT_NEEDS("vector_add_rpath");
  const std::vector<std::string> program = {"/bin/sh", "-c", "exec \"$0\"", RuntimeProgram("vector_add_rpath")};
  ExpectTold(RunAudit({"run"}, program), "LD_PRELOAD=" CUAUDIT_CUDART_DIRECTORY "/libcudart.so.13");
#ifndef __SANITIZE_ADDRESS__  // the tool itself, built with AddressSanitizer, starts with no other library before it
  const How how = {.environment = {"LD_PRELOAD=" CUAUDIT_CUDART_DIRECTORY "/libcudart.so.13"}};
  const Audit audit = RunAudit(WithKernels("run"), program, how);
  EXPECT_EQ(audit.outcome.out, "vector_add: sum 1375113.0, wrong 0, c[7] 14.0, c[24575] 37.0\n") << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean");
#endif
}

TEST(Runtime12, HasItsOwnLayoutsAndRefusesWhatItDoesNotHave) {
  const Audit audit = RunAudit({"run"}, {RuntimeProgram("client_12")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out,
            "12040 hello type 2 device 0 same 1 overwritten 0\n"
            "cudaSuccess processors 132 function pointers 1 reserved 0 overwritten 0\n"
            "cudaSuccess cudaSuccess cudaErrorInvalidValue\n"
            "cudaErrorNotSupported cudaErrorNotSupported cudaSuccess\n"
            "edges 1 right 1 capturing 1 graph 1 dependencies 0\n");
  EXPECT_THAT(FirstLine(audit.outcome.err), HasSubstr("cudaSetDoubleForHost is not supported"));
  EXPECT_EQ(std::count(audit.outcome.err.begin(), audit.outcome.err.end(), '\n'), 1) << audit.outcome.err;
  EXPECT_EQ(audit.report["driver"]["runtime"], "cuaudit's own, 12.4");
}

TEST(Runtime, AnswersInChildrenThreadsAndExitHandlers) {
  const Audit audit = RunAudit({"run"}, {RuntimeProgram("client_late")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out,
            "first cudaSuccess\ninvalid cudaErrorInvalidMemcpyDirection\nother thread before cudaSuccess\n"
            "other thread cudaErrorMemoryAllocation\nother thread last cudaErrorMemoryAllocation\n"
            "this thread last cudaErrorInvalidMemcpyDirection\nchild 0\nexit handler cudaErrorCudartUnloading\ndestructor "
            "cudaErrorCudartUnloading\n");
}

TEST(Runtime, ADriverThatShutDownIsSaidToUnload) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemFree#1=DEINITIALIZED,refuse", "--keep"}, {RuntimeProgram("client_late")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
}

// The program never owned the primary context that the runtime retained.
TEST(Runtime, WhatItKeepsForItselfIsNotLeftByTheProgram) {
  const Audit freed = RunAudit({"run"}, {RuntimeProgram("client_late"), "left"});
  EXPECT_EQ(freed.outcome.exit, 0) << freed.outcome.err << freed.findings();
  EXPECT_EQ(freed.result(), "clean") << freed.findings();
  const Audit kept = RunAudit({"run"}, {RuntimeProgram("client_late"), "left_memory"});
  EXPECT_EQ(kept.outcome.exit, 1);
  ASSERT_EQ(kept.result(), "left") << kept.findings();
  ASSERT_EQ(kept.report["findings"].size(), 1U) << kept.findings();
  EXPECT_EQ(kept.report["findings"][0]["kind"], "device_memory");
  const auto& notes = kept.report["notes"];
  const auto retained = std::find_if(notes.begin(), notes.end(), [](const auto& note) { return note["kind"] == "primary_context"; });
  ASSERT_NE(retained, notes.end());
  EXPECT_EQ((*retained)["rule"], "kept_by_library");
}

// Without a driver there is an answer, and nothing on stderr.
TEST(Runtime, WithoutADriverSaysInsufficientDriver) {
  const CommandResult outcome = RunCommand({RuntimeProgram("client_late")}, {.environment = {"LD_LIBRARY_PATH=" CUAUDIT_CUDART_DIRECTORY}});
  if (outcome.out.find("first cudaSuccess") != std::string::npos) GTEST_SKIP() << "this machine has a driver";
  EXPECT_THAT(FirstLine(outcome.out), testing::AnyOf("first cudaErrorInsufficientDriver", "first cudaErrorNoDevice"));
}

}  // namespace
}  // namespace cuaudit::e2e
