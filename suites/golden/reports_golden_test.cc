// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "reports/json_writer.h"
#include "reports/junit_writer.h"
#include "reports/text_writer.h"
#include "suites/golden/golden_file.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::suites::reports_golden_test {
namespace {

// An object with the report of each sample, so that it can be held to the schema.
TEST(ReportsGolden, JsonIsWrittenAsChecked) {
  std::string all = "{";
  for (const Sample& sample : Samples()) {
    std::ostringstream out;
    ASSERT_TRUE(report::WriteJson(sample.run, out));
    std::string report = out.str();
    ASSERT_EQ(report.back(), '\n');
    report.pop_back();
    all.append(all.size() == 1 ? "\n\"" : ",\n\"").append(sample.name).append("\": ").append(report);
  }
  CompareWithGolden("all.json", all + "\n}\n");
}

using Written = bool (*)(const Sample& sample, std::ostream& out);
std::string InOneFile(Written write) {
  std::ostringstream out;
  for (const Sample& sample : Samples()) {
    out << "=== " << sample.name << "\n";
    EXPECT_TRUE(write(sample, out)) << sample.name;
  }
  return out.str();
}

TEST(ReportsGolden, JunitIsWrittenAsChecked) {
  CompareWithGolden("junit.txt", InOneFile([](const Sample& sample, std::ostream& out) { return report::WriteJunit(sample.run, out); }));
}

TEST(ReportsGolden, TextIsWrittenAsChecked) {
  CompareWithGolden("text.txt", InOneFile([](const Sample& sample, std::ostream& out) { return report::WriteText(sample.run, out, {}); }));
}

TEST(ReportsGolden, ColouredTextIsWrittenAsChecked) {
  std::ostringstream out;
  ASSERT_TRUE(report::WriteText(SweepWithFindings(), out, {.colour = true}));
  CompareWithGolden("sweep_with_findings.colour.txt", out.str());
}

}  // namespace
}  // namespace cuaudit::suites::reports_golden_test
