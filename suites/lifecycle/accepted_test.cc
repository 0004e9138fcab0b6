// SPDX-License-Identifier: MIT
// accepted_test.cc: defects of a lifecycle that a file of suppressions accepts (CUAUDIT_SWEEP='--suppressions FILE').
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cuaudit/gtest.h"
#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::accepted_test {
namespace {

using ::testing::HasSubstr;

// Loses its stream when the event cannot be made.
struct ForgetsAStream {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUresult Init(DriverRef driver) {
    const CUresult code = driver.StreamCreate(&stream, 0);
    return code == CUDA_SUCCESS ? driver.EventCreate(&event, 0) : code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.EventDestroy(event);
    const CUresult two = driver.StreamDestroy(stream);
    return one == CUDA_SUCCESS ? two : one;
  }
};

Lifecycle Forgetting() { return Lifecycle::Of<ForgetsAStream>("forgets_a_stream").WithCurrentContext(); }

class Accepted : public ::testing::Test {
 protected:
  Accepted() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cuaudit_accepted.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    setenv("CUAUDIT_SWEEP", ("--suppressions '" + Path("s.toml") + "'").c_str(), 1);
    setenv("CUAUDIT_TODAY", "2026-01-02", 1);
  }
  ~Accepted() override {
    unsetenv("CUAUDIT_SWEEP");
    unsetenv("CUAUDIT_TODAY");
    std::filesystem::remove_all(folder_);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Accept(const std::string& entry) const { std::ofstream(Path("s.toml")) << "[[suppression]]\n" << entry; }

 private:
  std::string folder_;
};

TEST_F(Accepted, DefectsAreNotesAndCounted) {
  unsetenv("CUAUDIT_SWEEP");
  const Audit found = Sweep(Forgetting());
  ASSERT_EQ(found.defects.size(), 1U);
  setenv("CUAUDIT_SWEEP", ("--suppressions '" + Path("s.toml") + "'").c_str(), 1);
  Accept("kind = 'stream'\nreason = 'r'\nowner = 'o'\nuntil = 2027-03-31\n");
  const Audit accepted = Sweep(Forgetting(), {.formats = {"json=" + Path("accepted.json")}});
  EXPECT_EQ(accepted.outcome, AuditOutcome::Clean);
  EXPECT_THAT(accepted.message, HasSubstr("; 1 defect suppressed"));
  EXPECT_TRUE(accepted.findings.empty() && accepted.defects.empty());
  EXPECT_EQ(accepted.notes.size(), found.notes.size() + found.findings.size());
  std::ostringstream report;
  report << std::ifstream(Path("accepted.json")).rdbuf();
  EXPECT_THAT(report.str(), HasSubstr("\"outcome\": \"clean\""));
  EXPECT_THAT(report.str(), HasSubstr("\"suppressed\":{\"reason\":\"r\",\"owner\":\"o\",\"until\":\"2027-03-31\",\"expired\":false"));
}

TEST_F(Accepted, OthersAndExpiredOnesCount) {
  Accept("kind = 'event'\nreason = 'r'\nowner = 'o'\nuntil = 2027-03-31\n");
  EXPECT_EQ(Sweep(Forgetting()).outcome, AuditOutcome::Findings);
  Accept("kind = 'stream'\nreason = 'r'\nowner = 'o'\nuntil = 2026-01-01\n");
  EXPECT_EQ(Sweep(Forgetting()).outcome, AuditOutcome::Findings);
}

TEST_F(Accepted, AWrongFileIsAnErrorOfTheAudit) {
  Accept("kind = 'stream'\n");
  const Audit audit = Sweep(Forgetting());
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
  EXPECT_THAT(audit.message, HasSubstr("s.toml:1:1: expected reason in each suppression"));
}

}  // namespace
}  // namespace cuaudit::testing::accepted_test
