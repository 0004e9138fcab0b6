// SPDX-License-Identifier: MIT
// Programs that share memory by file descriptors: what the driver makes for them must be closed, and what it takes over must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::exports_test {
namespace {

using ::testing::HasSubstr;

class Exports : public ::testing::TestWithParam<const char*> {};

TEST_P(Exports, ADescriptorThatTheFailingPathForgetsIsALeak) {
  const Audit audit = RunAudit({"sweep", "--call", "cuEventCreate"}, {Program("exports"), GetParam()});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "leak file_descriptor 1");
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_THAT(audit.report["findings"][0]["acquired"]["stack"].dump(), HasSubstr("export_"));
}

TEST_P(Exports, OneThatEveryPathClosesIsSilence) {
  for (const char* const isolation : {"fork", "spawn"}) {
    const Audit audit = RunAudit({"sweep", "--isolation", isolation}, {Program("exports"), GetParam(), "clean"});
    EXPECT_EQ(audit.outcome.exit, 0) << isolation << ": " << audit.findings() << audit.outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Exports, ::testing::Values("allocation", "pool", "range"));

class Imports : public ::testing::TestWithParam<const char*> {};

TEST_P(Imports, ADescriptorThatTheDriverTookOverIsClosed) {
  const Audit audit = RunAudit({"sweep", "--call", "cuEventCreate"}, {Program("exports"), GetParam()});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "closed_after_import file_descriptor 1");
  ASSERT_FALSE(audit.report.is_null());
  EXPECT_THAT(audit.report["findings"][0]["other"].dump(), HasSubstr("cuImportExternalMemory"));
}

TEST_P(Imports, OneThatIsLeftToTheDriverIsSilence) {
  const Audit audit = RunAudit({"sweep", "--how", "refuse,after"}, {Program("exports"), GetParam(), "clean"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Exports, Imports, ::testing::Values("import", "unseen"));

// The program closes its own file, which has the number of the descriptor that the driver took over and closed.
TEST(ImportsOfExports, AFileUnderTheSameNumberIsTheProgramsToClose) {
  const Audit audit = RunAudit({"sweep", "--call", "cuEventCreate"}, {Program("exports"), "reused"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
}

}  // namespace
}  // namespace cuaudit::e2e::exports_test
