// SPDX-License-Identifier: MIT
// Every kind of driver object that the simulated driver models: one lost per cycle is growth of exactly one, none lost is silence.
#include "faults/driver/kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <set>
#include <string>

#include "suites/e2e/host_kinds.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::kinds_test {
namespace {

constexpr const char* kKinds[] = {"device_memory",
                                  "managed_memory",
                                  "pinned_memory",
                                  "host_registration",
                                  "stream_ordered_memory",
                                  "memory_pool",
                                  "address_reservation",
                                  "physical_memory",
                                  "mapping",
                                  "array",
                                  "mipmapped_array",
                                  "texture_object",
                                  "surface_object",
                                  "module",
                                  "library",
                                  "link_state",
                                  "context",
                                  "primary_context",
                                  "context_stack_entry",
                                  "stream",
                                  "event",
                                  "graph",
                                  "executable_graph",
                                  "user_object",
                                  "texture_reference",
                                  "callback",
                                  "green_context",
                                  "external_memory",
                                  "ipc_memory",
                                  "block"};

// Why no program can lose one on the simulated driver.
const std::map<std::string, std::string> kNowhere = {
    {"none", "is no kind"},
    {"graph_node", "dies with its graph"},
    {"external_semaphore", "no interface beside the driver makes one, and none of its own can be exported"},
    {"multicast_object", "is not modelled: CUDA_ERROR_NOT_SUPPORTED"},
    {"graphics_resource", "OpenGL, EGL and Direct3D have no simulated counterpart"},
    {"egl_stream", "OpenGL, EGL and Direct3D have no simulated counterpart"}};

class Kinds : public ::testing::TestWithParam<const char*> {};

TEST_P(Kinds, OneLostPerCycleIsGrowthOfExactlyOne) {
  const std::string kind = GetParam();
  const Audit audit = RunAudit({"cycles", "--n", "1,10"}, {Program("leak_kind"), kind, "{n}"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.report["per_cycle"].dump(), "{\"" + kind + "\":1}") << audit.findings();
  std::size_t growths = 0;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    EXPECT_EQ(finding["kind"], kind);
    if (finding["rule"] != "growth") continue;
    ++growths;
    ASSERT_FALSE(finding["acquired"]["stack"].empty());
    EXPECT_THAT(finding["acquired"]["stack"].dump(), ::testing::HasSubstr("\"" + kind + "\""))
        << "the site is in the function of that name";
  }
  EXPECT_EQ(growths, 1U) << audit.findings();
}

TEST_P(Kinds, NoneLostIsSilence) {
  const Audit audit = RunAudit({"cycles", "--n", "1,10"}, {Program("leak_kind"), GetParam(), "{n}", "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_EQ(audit.report["per_cycle"].dump(), "{}") << audit.findings();
  EXPECT_TRUE(audit.report["findings"].empty()) << audit.findings();
}

INSTANTIATE_TEST_SUITE_P(Every, Kinds, ::testing::ValuesIn(kKinds), [](const auto& test) { return std::string(test.param); });

TEST(KindList, EveryKindIsLostSomewhereOrSaysWhyNot) {
  std::set<std::string> lost(std::begin(kKinds), std::end(kKinds));
  lost.insert(std::begin(kHostKinds), std::end(kHostKinds));  // host_ways_test.cc
  for (std::size_t i = 0; i < driver::kKindCount; ++i) {
    const std::string name(driver::Name(static_cast<driver::Kind>(i)));
    EXPECT_NE(lost.count(name), kNowhere.count(name)) << name;
  }
}

TEST(KindList, TheProgramHasNoKindThatIsNotTestedHere) {
  const Outcome run =
      RunCommand({Program("leak_kind"), "--list"}, {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory(), "CUAUDIT_OPTIONS=driver=sim"}});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(Words(run.out), ::testing::UnorderedElementsAreArray(kKinds));
}

}  // namespace
}  // namespace cuaudit::e2e::kinds_test
