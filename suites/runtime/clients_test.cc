// SPDX-License-Identifier: MIT
// How a program comes by its CUDA runtime: ours by search path or one more link; NVIDIA's is named in one line and never answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "suites/runtime/runtime_programs.h"

namespace cuaudit::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  const Outcome outcome = RunCommand({RuntimeProgram("vector_add_static")},
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
  const Outcome outcome = RunCommand({RuntimeProgram("client_late")}, {.environment = {"LD_LIBRARY_PATH=" CUAUDIT_CUDART_DIRECTORY}});
  if (outcome.out.find("first cudaSuccess") != std::string::npos) GTEST_SKIP() << "this machine has a driver";
  EXPECT_THAT(FirstLine(outcome.out), testing::AnyOf("first cudaErrorInsufficientDriver", "first cudaErrorNoDevice"));
}

}  // namespace
}  // namespace cuaudit::e2e
