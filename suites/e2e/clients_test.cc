// SPDX-License-Identifier: MIT
// Every way in which a program can come by its driver: it must be audited, work as before, and be reached by faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "suites/support/tool.h"

namespace cuaudit::e2e::clients_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Client {
  const char* name;
  const char* command;  // the first word is a fixture program; @NAME in others stands for a fixture's path
  std::uint64_t calls;  // asking cuGetProcAddress for a pointer is a call too
};

std::vector<std::string> CommandOf(const std::string& line) {
  std::vector<std::string> words = Words(line);
  words.front() = Program(words.front());
  for (std::string& word : words) {
    if (word.front() == '@') word = Program(word.substr(1));
  }
  return words;
}

void PrintTo(const Client& client, std::ostream* out) { *out << client.name; }

class Clients : public ::testing::TestWithParam<Client> {};

TEST_P(Clients, IsAuditedAndWorksUnchanged) {
  const Audit audit = RunAudit({"run"}, CommandOf(GetParam().command));
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "answer 42\n");
  EXPECT_EQ(audit.result(), "clean");
  EXPECT_EQ(audit.calls(), GetParam().calls);
}

// Host probes stand between the program and dlopen: it must find what it finds without them.
TEST_P(Clients, IsAuditedUnderHostProbesToo) {
  const Audit audit = RunAudit({"run", "--host"}, CommandOf(GetParam().command));
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.outcome.out, "answer 42\n");
  EXPECT_EQ(audit.calls(), GetParam().calls);
}

TEST_P(Clients, IsReachedByAFault) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, CommandOf(GetParam().command));
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.verdicts(), R"({"pass":1})") << audit.findings();
}

TEST_P(Clients, HasALeakSeenWhenAReleaseIsLost) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemFree#1=INVALID_VALUE,refuse"}, CommandOf(GetParam().command));
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.verdicts(), R"({"release_refused":1})") << audit.findings();
}

INSTANTIATE_TEST_SUITE_P(
    Every, Clients,
    ::testing::Values(
        Client{"NotSanitized", "client_asan", 12}, Client{"LinkedLazily", "client_lazy", 8}, Client{"LinkedNow", "client_now", 8},
        Client{"LinkedTable", "client_linked", 12}, Client{"RunPathElsewhere", "client_runpath", 8},
        Client{"RPathElsewhere", "client_rpath", 8}, Client{"Dlopen", "client_dlopen", 12},
        Client{"DlopenWithoutVersion", "client_dlopen libcuda.so", 12}, Client{"DlopenDeepBind", "client_dlopen libcuda.so.1 deepbind", 12},
        Client{"DlopenRunPathElsewhere", "client_dlopen_runpath", 12}, Client{"DlopenRPathElsewhere", "client_dlopen_rpath", 12},
        Client{"PluginByRunPath", "client_plugin_runpath libe2e_plugin.so", 12},
        Client{"PluginByRPath", "client_plugin_rpath libe2e_plugin.so", 12}, Client{"CodecTable", "client_table", 12},
        Client{"ProcAddressV1", "client_proc_address 1 0", 24}, Client{"ProcAddressV1PerThread", "client_proc_address 1 2", 24},
        Client{"ProcAddressV2", "client_proc_address 2 0", 24}, Client{"ProcAddressV2Legacy", "client_proc_address 2 1", 24},
        Client{"ProcAddressV2PerThread", "client_proc_address 2 2", 24}, Client{"DeepBindPlugin", "client_plugin @libe2e_plugin.so", 12}),
    [](const auto& test) { return std::string(test.param.name); });

// The answers that genuine drivers give, question by question.
TEST(ProcAddress, AnswersAsGenuineDriversDo) {
  const CommandResult run = RunCommand({Program("proc_address_answers")},
                                       {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory(), "CUAUDIT_OPTIONS=driver=sim"}});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(run.out,
            "'cuMemAlloc' 3020 0: v1 0 cuMemAlloc_v2, v2 0 0 cuMemAlloc_v2\n"
            "'cuMemAlloc' 12000 1: v1 0 cuMemAlloc_v2, v2 0 0 cuMemAlloc_v2\n"
            "'cuMemAlloc' 99000 0: v1 0 cuMemAlloc_v2, v2 0 0 cuMemAlloc_v2\n"
            "'cuMemcpyHtoD' 12000 2: v1 0 cuMemcpyHtoD_v2_ptds, v2 0 0 cuMemcpyHtoD_v2_ptds\n"
            "'cuStreamSynchronize' 12000 2: v1 0 cuStreamSynchronize_ptsz, v2 0 0 cuStreamSynchronize_ptsz\n"
            "'cuStreamSynchronize' 12000 0: v1 0 cuStreamSynchronize, v2 0 0 cuStreamSynchronize\n"
            "'cuStreamSynchronize' 6000 2: v1 500 untouched, v2 0 2 null\n"
            "'cuNoSuchCall' 12000 0: v1 500 untouched, v2 0 1 null\n"
            "'cuMemAlloc_v2' 12000 0: v1 500 untouched, v2 0 1 null\n"
            "'' 0 0: v1 500 untouched, v2 0 1 null\n"
            "'cuGraphCreate' 9000 0: v1 500 untouched, v2 0 2 null\n"
            "'cuMemAlloc' 12000 7: v1 1 untouched, v2 1\n"
            "'cuGraphInstantiate' 11000 0: v1 0 cuGraphInstantiate_v2, v2 0 0 cuGraphInstantiate_v2\n"
            "'cuGraphInstantiate' 12000 0: v1 0 cuGraphInstantiate_v2, v2 0 0 cuGraphInstantiate_v2\n"
            "'cuCtxCreate' 3020 0: v1 0 cuCtxCreate_v2, v2 0 0 cuCtxCreate_v2\n"
            "'cuCtxCreate' 11040 0: v1 0 cuCtxCreate_v3, v2 0 0 cuCtxCreate_v3\n"
            "'cuGetProcAddress' 12000 0: v1 0 cuGetProcAddress_v2, v2 0 0 cuGetProcAddress_v2\n");
}

// Two installations in one search path, each the other's first libcuda.so.1.
TEST(TwoDropIns, NeitherTakesTheOtherForTheDriver) {
  const std::string other = TemporaryDirectory();
  std::filesystem::copy_file(DropInDirectory() + "/libcuda.so.1", other + "/libcuda.so.1");
  const CommandResult run = RunCommand(
      {Program("client_linked")},
      {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory() + ":" + other, "CUAUDIT_OPTIONS=driver=real"}, .deadline_ms = 10000});
  EXPECT_FALSE(run.timed_out);
  EXPECT_EQ(run.exit, 3);
  EXPECT_THAT(run.err, HasSubstr(other + "/libcuda.so.1: is, or links to, a drop-in of cuaudit"));
  EXPECT_EQ(LineCount(run.err), 1U) << run.err;
}

TEST(Threads, EightWithStreamsOfTheirOwnAreCountedExactly) {
  const Audit audit = RunAudit({"run"}, {Program("threads")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "good 800\n");
  // init, retain, release, 8 pushes and pops, 7 calls a round
  EXPECT_EQ(audit.calls(), 3U + 16U + 7U * 800U);
  EXPECT_EQ(audit.result(), "clean");
}

class SanitizedThreads : public ::testing::TestWithParam<const char*> {};

TEST_P(SanitizedThreads, AreCountedExactlyAndShowNoRace) {
#ifdef CUAUDIT_INSTRUMENTED
  GTEST_SKIP() << "the whole build is instrumented";
#endif
  if (access(Program(GetParam()).c_str(), X_OK) != 0) GTEST_SKIP() << "no compiler or runtime for " << GetParam();
  const Audit audit = RunAudit({"run"}, {Program(GetParam())});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "good 800\n");
  EXPECT_EQ(audit.calls(), 3U + 16U + 7U * 800U);
  EXPECT_THAT(audit.outcome.err, Not(HasSubstr("Sanitizer")));
}

INSTANTIATE_TEST_SUITE_P(Every, SanitizedThreads, ::testing::Values("threads_asan_gcc", "threads_tsan_gcc", "threads_tsan_clang"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Threads, ASweepOverThemBlamesNobody) {
  const Audit audit = RunAudit({"sweep", "--limit", "40"}, {Program("threads")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.report["totals"]["fired"], 40);
}

// What the loader is told by path it does not look up: documented, and never taken for a clean run.
TEST(AbsolutePath, AClientThatOpensItsDriverByPathIsNotExercised) {
  const Audit audit = RunAudit({"run"}, {Program("client_dlopen"), Program("other/libcuda.so.1")});
  EXPECT_EQ(audit.outcome.exit, 3) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "not_exercised");
  EXPECT_THAT(audit.outcome.err, HasSubstr("not exercised"));
}

TEST(Script, AClientStartedByAScriptIsAudited) {
  const std::string script = TemporaryDirectory() + "/start me.sh";
  WriteFile(script, "#!/bin/sh\n\"" + Program("client_linked") + "\"\n");
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  const Audit run = RunAudit({"run"}, {script});
  EXPECT_EQ(run.outcome.exit, 0) << run.outcome.err;
  EXPECT_EQ(run.calls(), 12U);
  const Audit sweep = RunAudit({"sweep", "--depth", "1"}, {script});
  EXPECT_EQ(sweep.outcome.exit, 0) << sweep.outcome.err << sweep.findings();
  EXPECT_EQ(sweep.report["totals"]["fired"], 12);
}

TEST(Reopen, CallsAfterDlcloseStillAnswerAndThoseFromLateExitHandlersAreTurnedAway) {
  const Audit audit = RunAudit({"run"}, {Program("reopen")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "answer 42\nanswer 42\natexit 0\ndestructor 0\n");
  EXPECT_EQ(audit.calls(), 26U);
  EXPECT_EQ(audit.result(), "clean");
}

TEST(StaticPie, ThatOpensTheDriverIsAuditedThroughTheSearchPath) {
  if (access(Program("client_static_pie").c_str(), X_OK) != 0) GTEST_SKIP() << "this toolchain cannot link static-pie programs";
  const Audit audit = RunAudit({"run"}, {Program("client_static_pie")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "answer 42\n");
  EXPECT_EQ(audit.calls(), 12U);
}

class SweptClients : public ::testing::TestWithParam<const char*> {};

// With host probes: what the loader and the C library keep must not become a finding either.
TEST_P(SweptClients, HaveNoFindingWhicheverCallFails) {
  for (const bool heap : {false, true}) {
    const Audit audit = RunAudit(heap ? Words("sweep --host") : Words("sweep"), CommandOf(GetParam()));
    // Without heap blocks nobody knows whether one of them gave up: then it is not called clean.
    EXPECT_TRUE(audit.outcome.exit == 0 || (!heap && audit.result() == "not_exercised")) << audit.outcome.err;
    EXPECT_EQ(audit.findings(), "");
    ASSERT_FALSE(audit.report.is_null());
    EXPECT_GT(audit.report["totals"]["trials"], 7);
    EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, SweptClients,
                         ::testing::Values("client_lazy", "client_table", "client_dlopen", "client_proc_address 2 0",
                                           "client_plugin @libe2e_plugin.so", "reopen", "descriptors late", "limits seccomp",
                                           "forks exec @client_linked"));

class Sanitized : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifdef CUAUDIT_INSTRUMENTED
    GTEST_SKIP() << "the whole build is instrumented";
#endif
    if (access(Program(GetParam()).c_str(), X_OK) != 0) GTEST_SKIP() << "no compiler or runtime for " << GetParam();
  }
};

TEST_P(Sanitized, IsAuditedAndLeakSanitizerStaysSilent) {
  const Audit audit = RunAudit({"run"}, {Program(GetParam())});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.outcome.out, "answer 42\n");
  EXPECT_EQ(audit.calls(), 12U);
  EXPECT_THAT(audit.outcome.err, Not(HasSubstr("Sanitizer")));
}

TEST_P(Sanitized, ItsOwnLeakIsReportedAsWithoutUs) {
  const CommandResult alone =
      RunCommand({Program(GetParam()), "leak"}, {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory(), "CUAUDIT_OPTIONS=driver=sim"}});
  const Audit audit =
      RunAudit({"run", "--expect-exit", "23"}, {Program(GetParam()), "leak"}, {.environment = {"LSAN_OPTIONS=exitcode=23"}});
  EXPECT_NE(alone.exit, 0);
  EXPECT_THAT(alone.err, HasSubstr("100 byte(s) leaked in 1 allocation(s)"));
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_THAT(audit.outcome.err, HasSubstr("100 byte(s) leaked in 1 allocation(s)"));
}

TEST_P(Sanitized, IsReachedByAFault) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program(GetParam())});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.verdicts(), R"({"pass":1})") << audit.findings();
}

TEST_P(Sanitized, IsSilentWithHostProbes) {
  const Audit audit = RunAudit({"run", "--host"}, {Program(GetParam())});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "");
}

INSTANTIATE_TEST_SUITE_P(AddressSanitizer, Sanitized, ::testing::Values("client_asan_gcc", "client_asan_clang"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cuaudit::e2e::clients_test
