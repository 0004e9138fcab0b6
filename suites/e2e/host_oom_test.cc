// SPDX-License-Identifier: MIT
// Host allocations and threads made to fail one by one, in the same sweep as driver calls, and only those that the program's own modules
// ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "suites/support/tool.h"

namespace cuaudit::e2e::host_oom_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* mode;
  const char* findings;
  const char* verdicts;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.mode; }

class HostOom : public ::testing::TestWithParam<Case> {};

TEST_P(HostOom, EveryAllocationOfTheProgramFailsOnce) {
  const Audit audit = RunAudit({"sweep", "--how", "host_oom"}, {Program("host_oom"), GetParam().mode});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["trials"], 3) << "malloc, calloc and realloc; strdup allocates in the C library";
  EXPECT_EQ(audit.findings(), GetParam().findings);
  EXPECT_EQ(audit.verdicts(), GetParam().verdicts);
  EXPECT_THAT(audit.report["totals"]["skipped"].dump(), HasSubstr("host_oom: allocations by the C library"));
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_THAT(finding["reproduce"].get<std::string>(), HasSubstr("--fault 'malloc#"));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, HostOom,
                         ::testing::Values(Case{"repaired", "", R"({"pass":3})"},
                                           Case{"pinned", "orphaned pinned_memory 1", R"({"leak":1,"pass":2})"},
                                           Case{"block", "leak host_heap 1", R"({"leak":1,"pass":2})"},
                                           Case{"crashes", "crash  1", R"({"crash":1,"pass":2})"}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(HostOom, SharesASweepWithDriverFaults) {
  const Audit audit = RunAudit({"sweep", "--depth=1", "--how", "refuse,host_oom"}, {Program("host_oom"), "repaired"});
  ASSERT_FALSE(audit.report.is_null()) << audit.outcome.err;
  EXPECT_EQ(audit.report["totals"]["trials"], audit.calls() + 3);
  EXPECT_EQ(audit.report["totals"]["fired"], audit.report["totals"]["trials"]);
}

TEST(HostOom, ReplaysOneFault) {
  const Audit audit = RunAudit({"replay", "--fault", "malloc#2=host_oom"}, {Program("host_oom"), "pinned"});
  EXPECT_EQ(audit.findings(), "orphaned pinned_memory 1") << audit.outcome.err;
  const Audit never = RunAudit({"replay", "--fault", "malloc#99=host_oom"}, {Program("host_oom"), "pinned"});
  EXPECT_EQ(never.result(), "not_exercised");
}

// The name of the file says who asks. A Python wheel has the runtime under a name with a hash in it.
TEST(HostOom, AllocationsByACudaRuntimeAreLeftAlone) {
  const std::string directory = TemporaryDirectory();
  const auto under = [&](const std::string& name) {
    std::filesystem::copy_file(Program("host_oom"), directory + "/" + name);
    return RunAudit({"sweep", "--how", "host_oom"}, {directory + "/" + name, "repaired"});
  };
  for (const char* const runtime : {"libcudart.so.13", "libcudart-1a2b3c4d.so.13.0.96"}) {
    EXPECT_EQ(under(runtime).result(), "not_exercised") << runtime;
  }
  EXPECT_EQ(under("libcudart-mine.so").verdicts(), R"({"pass":3})");
}

TEST(HostThread, EveryThreadOfTheProgramFailsOnce) {
  const Audit repaired = RunAudit({"sweep", "--how", "host_thread"}, {Program("host_thread"), "repaired"});
  ASSERT_FALSE(repaired.report.is_null()) << repaired.outcome.err;
  EXPECT_EQ(repaired.findings(), "");
  EXPECT_EQ(repaired.verdicts(), R"({"pass":3})") << "the detached one too";
  const Audit forgets = RunAudit({"sweep", "--how", "host_thread"}, {Program("host_thread"), "forgets"});
  EXPECT_EQ(forgets.findings(), "leak thread 1, leak thread 1");
  EXPECT_EQ(forgets.verdicts(), R"({"leak":2,"pass":1})");
  for (const nlohmann::json& finding : forgets.report["findings"]) {
    EXPECT_THAT(finding["reproduce"].get<std::string>(), HasSubstr("--fault 'pthread_create#"));
    EXPECT_EQ(finding["fault"]["code"], "EAGAIN");
  }
}

TEST(HostThread, ReplaysOneFault) {
  const Audit third = RunAudit({"replay", "--fault", "pthread_create#3=EAGAIN"}, {Program("host_thread"), "forgets"});
  EXPECT_EQ(third.findings(), "leak thread 1") << third.outcome.err;
  const Audit never = RunAudit({"replay", "--fault", "pthread_create#4=EAGAIN"}, {Program("host_thread"), "forgets"});
  EXPECT_EQ(never.result(), "not_exercised");
}

TEST(HostThread, AProgramWithoutThreadsIsNotExercised) {
  const Audit audit = RunAudit({"sweep", "--how", "host_thread"}, {Program("host_oom"), "repaired"});
  EXPECT_EQ(audit.result(), "not_exercised");
  EXPECT_THAT(audit.report["totals"]["skipped"].dump(), HasSubstr("host_thread: no thread was started by the program's own modules"));
}

// A copy of the program in the folder of a release, by whose name it knows what to forget.
std::string Released(const std::string& directory, const std::string& release, const std::string& program) {
  const std::string folder = directory + "/" + release;
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(Program(program), folder + "/" + program, std::filesystem::copy_options::skip_existing);
  return folder + "/" + program;
}

// What is refused has rows of coverage as calls of the driver have: by them a comparison knows what was tried again.
TEST(HostFaults, ALossThatIsMendedIsFixed) {
  const std::string directory = TemporaryDirectory();
  for (const char* const program : {"host_oom", "host_thread"}) {
    const std::string how = std::string("--how=") + program;
    const auto sweep = [&](const char* release, const std::string& name, const std::string& option, const char* more = "--limit=0") {
      const std::string result = directory + "/" + name + ".json";
      (void)RunCommand(
          {Tool(), "sweep", "--driver=sim", option, more, "--format=json=" + result, "--", Released(directory, release, program)});
      return result;
    };
    const std::string base = sweep("wrong", "base", how);
    const nlohmann::json coverage = nlohmann::json::parse(ReadFile(base))["coverage"];
    EXPECT_EQ(coverage["reachable"], 3) << program;
    EXPECT_EQ(coverage["tried"][0]["how"], program);
    const auto fate = [&](const std::string& head) { return RunCommand({Tool(), "compare", base, head}).out; };
    EXPECT_THAT(fate(sweep("repaired", "repaired", how)), HasSubstr(" 0 not run, ")) << program;
    EXPECT_THAT(fate(directory + "/repaired.json"), Not(HasSubstr(" 0 fixed, "))) << program;
    EXPECT_THAT(fate(sweep("wrong", "again", how)), AllOf(HasSubstr(" 0 not run, 0 fixed, "), Not(HasSubstr(" 0 unchanged"))));
    EXPECT_THAT(fate(sweep("repaired", "calls", "--how=refuse", "--host")), HasSubstr(std::string(program) + " in "));
    EXPECT_THAT(fate(sweep("repaired", "limited", how, "--limit=1")), AllOf(Not(HasSubstr(" 0 not run, ")), HasSubstr(" 0 fixed, ")));
  }
}

// So does a replay, which says in which function something was refused.
TEST(HostFaults, ReplaysOfALossAreCompared) {
  const std::string directory = TemporaryDirectory();
  for (const std::string program : {"host_oom", "host_thread"}) {
    const auto replay = [&](const char* release, const std::string& name, const std::string& number) {
      const std::string result = directory + "/" + name + ".json";
      const std::string fault = program == "host_oom" ? "malloc#" + number + "=host_oom" : "pthread_create#" + number + "=EAGAIN";
      (void)RunCommand({Tool(), "replay", "--driver=sim", "--host", "--fault", fault, "--format=json=" + result, "--",
                        Released(directory, release, program)});
      return result;
    };
    const std::string base = replay("wrong", "base", "3");
    const auto fate = [&](const std::string& head) { return RunCommand({Tool(), "compare", base, head}).out; };
    EXPECT_THAT(fate(replay("repaired", "repaired", "3")), HasSubstr("0 changed, 0 not run, 1 fixed, 0 unchanged")) << program;
    EXPECT_THAT(fate(replay("wrong", "again", "3")), HasSubstr("0 changed, 0 not run, 0 fixed, 1 unchanged")) << program;
    EXPECT_THAT(fate(replay("repaired", "elsewhere", "2")), HasSubstr("0 changed, 1 not run, 0 fixed, 0 unchanged")) << program;
  }
}

TEST(HostOom, SaysThatASanitizersHeapCannotBeRefused) {
  const std::string program = Program("host_kind_address_gcc");
#ifdef CUAUDIT_INSTRUMENTED
  GTEST_SKIP() << "the whole build is instrumented";
#endif
  if (!std::filesystem::exists(program)) GTEST_SKIP() << program << " could not be built";
  const Audit audit = RunAudit({"sweep", "--how", "host_oom"}, {program, "host_heap", "1", "clean"});
  EXPECT_EQ(audit.outcome.exit, 3) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "not_exercised");
  EXPECT_THAT(audit.report["totals"]["skipped"].dump(), HasSubstr("a sanitizer owns the heap"));
}

}  // namespace
}  // namespace cuaudit::e2e::host_oom_test
