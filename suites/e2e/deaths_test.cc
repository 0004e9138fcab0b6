// SPDX-License-Identifier: MIT
// Whole programs that die or hang: the report names the place where that happens and its cause. Programs that handle signals on their own
// do not notice that they are audited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::deaths_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Death {
  const char* mode;
  const char* rule;
  const char* where;
  const char* function;  // the innermost one of its stack
  const char* cause;
};

void PrintTo(const Death& death, std::ostream* out) { *out << death.mode; }

nlohmann::json TheFinding(const std::string& mode, const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Audit audit = RunAudit(arguments, {Program("deaths"), mode});
  if (audit.report.is_null() || audit.report["findings"].size() != 1) {
    ADD_FAILURE() << mode << ": " << audit.outcome.err << audit.findings();
    return nlohmann::json();
  }
  return audit.report["findings"][0];
}

void ExpectPlace(const nlohmann::json& finding, const Death& death) {
  ASSERT_FALSE(finding.is_null());
  EXPECT_EQ(finding["rule"], death.rule);
  EXPECT_EQ(finding["where"], death.where);
  ASSERT_FALSE(finding["where_stack"].empty()) << finding.dump(1);
  EXPECT_EQ(finding["where_stack"][0]["function"], death.function) << finding.dump(1);
  EXPECT_THAT(finding["detail"].get<std::string>(), AllOf(HasSubstr(death.cause), HasSubstr("its last calls were cu")));
}

class Deaths : public ::testing::TestWithParam<Death> {};

TEST_P(Deaths, AreToldWhereTheyHappenAndWhy) { ExpectPlace(TheFinding(GetParam().mode), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Every, Deaths,
    ::testing::Values(Death{"null", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x0, in the null page;"},
                      Death{"field", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x18, in the null page;"},
                      Death{"unmapped", "crash", "SIGSEGV", "write_to", "SIGSEGV in released host_mapping;"},
                      Death{"protected", "crash", "SIGSEGV", "write_to", "SIGSEGV in live host_mapping, which does not allow the access;"},
                      Death{"argument", "crash", "SIGSEGV", "pass_bad_argument", ", inside cuMemcpyHtoD;"},
                      Death{"bus", "crash", "SIGBUS", "write_to", "SIGBUS in live host_mapping"},
                      Death{"abort", "abort", "SIGABRT", "give_up", "SIGABRT;"}, Death{"assert", "abort", "SIGABRT", "die", "SIGABRT;"},
                      Death{"divide", "crash", "SIGFPE", "divide", "SIGFPE, integer division by zero or out of range;"},
                      Death{"illegal", "crash", "SIGILL", "die", "SIGILL, an instruction that the processor does not know;"},
                      Death{"overflow", "crash", "SIGSEGV", "recurse", "SIGSEGV at the end of the stack: it overflowed;"},
                      Death{"thread", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x0, in the null page;"},
                      Death{"after_reset", "crash", "SIGSEGV", "write_to", "SIGSEGV at 0x0"},
                      Death{"chained", "abort", "SIGABRT", "write_to", "SIGABRT;"},
                      Death{"sent", "crash", "SIGFPE", "die", "SIGFPE, raised by a call;"}),
    [](const auto& test) { return std::string(test.param.mode); });

#if defined(__x86_64__)
TEST(Deaths, OfATrapAreToldWhereItIs) { ExpectPlace(TheFinding("trap"), {"trap", "crash", "SIGTRAP", "die", "SIGTRAP;"}); }

TEST(Deaths, OfANonCanonicalAddressSayThatItIsNone) {
  ExpectPlace(TheFinding("noncanonical"),
              {"noncanonical", "crash", "SIGSEGV", "write_to", "SIGSEGV at an address that no pointer can have;"});
}
#endif

TEST(Deaths, OfACallOfNothingNameTheCaller) {
  const nlohmann::json finding = TheFinding("call");
  ASSERT_FALSE(finding.is_null());
  ASSERT_GE(finding["where_stack"].size(), 2U) << finding.dump(1);
  EXPECT_EQ(finding["where_stack"][0]["function"], "");
  EXPECT_EQ(finding["where_stack"][1]["function"], "call_nothing");
}

// By the functions of the stack.
TEST(Deaths, HaveTheSameFingerprintInEveryRun) {
  EXPECT_EQ(TheFinding("null")["fingerprint"], TheFinding("null")["fingerprint"]);
  EXPECT_NE(TheFinding("null")["fingerprint"], TheFinding("thread")["fingerprint"]);
}

class Hangs : public ::testing::TestWithParam<Death> {};

TEST_P(Hangs, AreToldWhereTheThreadIsStuck) { ExpectPlace(TheFinding(GetParam().mode, {"--deadline-ms", "500"}), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Every, Hangs,
                         ::testing::Values(Death{"event", "hang", "cuEventSynchronize", "wait_for_event", "stuck in cuEventSynchronize;"},
                                           Death{"beside", "hang", "cuEventSynchronize", "wait_for_event", "stuck in cuEventSynchronize;"},
                                           Death{"loop", "hang", "(no driver call)", "loop_for_ever", "stuck outside of the driver;"},
                                           Death{"lock", "hang", "(no driver call)", "lock_twice", "stuck outside of the driver;"},
                                           Death{"request", "hang", "cuMemAlloc", "main", "stuck at an unknown place;"}),
                         [](const auto& test) { return std::string(test.param.mode); });

TEST(Hangs, AProgramThatUsesTheSignalItselfIsNotAsked) {
  const std::string log = TemporaryDirectory() + "/output";
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse", "--deadline-ms", "500"},
                               {"/bin/sh", "-c", "exec \"" + Program("deaths") + "\" request > " + log});
  EXPECT_EQ(audit.findings(), "hang  1") << audit.outcome.err;
  EXPECT_THAT(ReadFile(log), Not(HasSubstr("asked")));
}

// What the program prints and how it ends, with and without cuaudit.
TEST(Handlers, OfTheProgramAreNotDisturbed) {
  for (const char* const mode : {"recovers", "own_stack", "caught_abort", "ignores", "asks"}) {
    const Outcome alone = RunCommand({Program("deaths"), mode}, {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory()}});
    EXPECT_EQ(alone.exit, 0) << mode << alone.err;
    const std::string report = TemporaryDirectory() + "/report";
    const Outcome audited = RunCommand({Tool(), "run", "--driver=sim", "--output", report, "--", Program("deaths"), mode});
    EXPECT_EQ(audited.exit, 0) << mode << audited.err;
    EXPECT_EQ(audited.out, alone.out) << mode;
  }
}

TEST(Handlers, OfTheProgramThatEndItLeaveThePlaceUnknown) {
  const Audit audit = RunAudit({"replay", "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("deaths"), "own_death"});
  ASSERT_EQ(audit.findings(), "crash  1") << audit.outcome.err;
  const nlohmann::json& finding = audit.report["findings"][0];
  EXPECT_EQ(finding["where"], "cuMemAlloc");
  EXPECT_THAT(finding["detail"].get<std::string>(), HasSubstr("SIGSEGV at an unknown place: the program handles it itself"));
}

}  // namespace
}  // namespace cuaudit::e2e::deaths_test
