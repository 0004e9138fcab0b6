// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reports/html/place_table.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::suites::html_writer_test {
namespace {

using nlohmann::json;
using report::html::SourceLines;

constexpr char kOpens[] = "<script type=\"application/json\" id=\"data\">";

std::string Written(const report::Audit& audit, const std::string& root = "/nowhere") {
  std::ostringstream out;
  EXPECT_TRUE(report::WriteHtml(audit, report::SourceRoot(root), out));
  return out.str();
}

std::string Written(const report::Run& run, const std::string& root = "/nowhere") {
  report::Audit audit = {.generated = run.generated, .tool_version = run.tool_version};
  audit.cases.emplace_back().runs.push_back(run);
  return Written(audit, root);
}

// The text of the element that holds the data, as a browser would cut it out: up to the first end of a script.
std::string DataText(const std::string& page) {
  const std::size_t begin = page.find(kOpens);
  EXPECT_NE(begin, std::string::npos);
  const std::size_t from = begin + sizeof(kOpens) - 1;
  return page.substr(from, page.find("</script", from) - from);
}

json Data(const std::string& page) { return json::parse(DataText(page), nullptr, false); }

std::size_t Times(const std::string& text, const std::string& what) {
  std::size_t times = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++times;
  return times;
}

class SourceFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "html_writer_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Put(const std::string& name, const std::string& text) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string directory_;
};

TEST(HtmlWriter, AllThatARunHasIsInTheData) {
  for (const Sample& sample : Samples()) {
    const json data = Data(Written(sample.run));
    ASSERT_FALSE(data.is_discarded()) << sample.name;
    EXPECT_EQ(data["findings"].size(), sample.run.findings.size()) << sample.name;
    EXPECT_EQ(data["defects"].size(), sample.run.defects.size()) << sample.name;
    ASSERT_EQ(data["runs"].size(), 1U) << sample.name;
    EXPECT_EQ(data["runs"][0]["notes"].size(), sample.run.notes.size()) << sample.name;
    EXPECT_EQ(data["runs"][0]["cycles"]["rows"].size(), sample.run.cycle_rows.size()) << sample.name;
    EXPECT_EQ(data["runs"][0]["live"].size(), sample.run.live.size()) << sample.name;
  }
}

TEST(HtmlWriter, NumbersOfPlacesAndFindingsAreOfThePage) {
  report::Audit audit;
  audit.cases.push_back({"a", {}, {SweepWithFindings()}, ""});
  audit.cases.push_back({"b", {}, {SecondFaults(), CyclesWithGrowth()}, ""});
  const json data = Data(Written(audit));
  ASSERT_EQ(data["runs"].size(), 3U);
  EXPECT_EQ(data["cases"][1]["runs"], json({1, 2}));
  EXPECT_EQ(data["runs"][2]["first_defect"], audit.cases[0].runs[0].defects.size() + audit.cases[1].runs[0].defects.size());
  for (const json& defect : data["defects"]) {
    for (const json& member : defect["members"]) {
      for (const json& finding : member["findings"]) EXPECT_LT(finding.get<std::size_t>(), data["findings"].size());
    }
  }
  for (const json& stack : data["stacks"]) {
    for (const json& frame : stack) EXPECT_LT(frame.get<std::size_t>(), data["frames"].size());
  }
}

TEST(HtmlWriter, NothingInTheDataEndsItsElement) {
  report::Run run = HostileStrings();
  const std::string evil = "</script><!--<script>&amp;\xe2\x80\xa8\x7f\xff" + std::string(1, '\0') + "]]>";
  run.command.push_back(evil);
  run.findings.front().acquired.call = evil;
  run.findings.front().acquired.stack = {{evil, evil, evil, 1, 2}};
  run.findings.front().kind = evil;
  run.sequence = report::Sequence{{{evil, std::nullopt}}, {{0, evil, 1}}, 0, {{{evil}, 0, {}, report::Verdict::Leak, {}}}};
  run.defects.front().suppressed = report::Suppressed{evil, evil, evil, true, evil};
  report::Audit audit;
  audit.cases.push_back({evil, {evil}, {run}, ""});
  audit.comparison = report::Comparison{evil, {{report::Change::Fixed, evil, evil, report::Mode::Run, evil, report::Rule::Leak, evil}}};
  audit.unused_suppressions = {evil};
  audit.generated = evil;
  const std::string page = Written(audit);
  const std::string data = DataText(page);
  ASSERT_FALSE(json::parse(data, nullptr, false).is_discarded());
  EXPECT_TRUE(
      std::all_of(data.begin(), data.end(), [](char one) { return one >= 0x20 && one < 0x7f && one != '<' && one != '>' && one != '&'; }));
  EXPECT_EQ(Times(page, "</script"), 2U);
  EXPECT_EQ(Times(page, "<script"), 2U);
  EXPECT_EQ(Data(page)["unused"][0], "</script><!--<script>&amp;\xe2\x80\xa8\x7f\xef\xbf\xbd" + std::string(1, '\0') + "]]>");
}

TEST(HtmlWriter, EqualAuditsAreEqualBytes) {
  for (const Sample& sample : Samples()) EXPECT_EQ(Written(sample.run), Written(sample.run)) << sample.name;
}

TEST(HtmlWriter, OnePageAsksNobodyForAnything) {
  const std::string page = Written(CyclesWithGrowth());
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(Times(page, "<link"), 1U);  // the empty icon, so that no browser asks for one
  EXPECT_EQ(Times(page, " src="), 0U);
  EXPECT_EQ(Times(page, "@import"), 0U);
  EXPECT_EQ(Times(page, "innerHTML"), 0U);
}

TEST(HtmlWriter, OnlyGrowthBringsThePlotLibraryAndItsLicence) {
  EXPECT_EQ(Times(Written(SweepWithFindings()), "uPlot ("), 0U);
  const std::string page = Written(CyclesWithGrowth());
  EXPECT_NE(page.find("The MIT License"), std::string::npos);
  EXPECT_EQ(Times(page, "<script"), 3U);
}

TEST(HtmlWriter, AMarkerInTheDataIsNoMarker) {
  report::Run run = CleanSweep();
  run.command = {"@SCRIPT@", "@DATA@"};
  const std::string page = Written(run);
  EXPECT_EQ(Data(page)["runs"][0]["command"], "@SCRIPT@ @DATA@");
  EXPECT_NE(page.find("'use strict'"), std::string::npos);
}

TEST(HtmlWriter, AStackThatManyFindingsShareStandsOnce) {
  const json data = Data(Written(OnePlaceManyCalls()));
  ASSERT_GT(data["findings"].size(), 1U);
  EXPECT_GT(std::count_if(data["findings"].begin(), data["findings"].end(),
                          [&](const json& finding) { return finding["acquired"] == data["findings"][0]["acquired"]; }),
            3);
  EXPECT_NE(data["findings"][0]["acquired"][1], data["findings"][0]["faults"][0][1]);
}

TEST(HtmlWriter, AStreamThatFailsIsTold) {
  std::ostringstream out;
  out.setstate(std::ios::failbit);
  EXPECT_FALSE(report::WriteHtml(report::Audit(), report::SourceRoot("."), out));
}

TEST_F(SourceFile, LinesAroundACallAreTaken) {
  const std::string file = Put("a.cu", "one\ntwo\r\nthree\nfour\nfive\nsix\n");
  const report::SourceRoot root(directory_);
  SourceLines lines(&root);
  const auto middle = lines.Around(file, 3);
  ASSERT_TRUE(middle.has_value());
  EXPECT_EQ(middle->first, 1);
  EXPECT_EQ(middle->lines, (std::vector<std::string>{"one", "two", "three", "four", "five"}));
  EXPECT_EQ(lines.Around(file, 1)->lines.size(), 3U);
  EXPECT_EQ(lines.Around(file, 6)->first, 4);
  EXPECT_FALSE(lines.Around(file, 7).has_value());
  EXPECT_FALSE(lines.Around(file, 0).has_value());
  EXPECT_FALSE(lines.Around(file, -3).has_value());
}

TEST_F(SourceFile, WhatIsNoSourceFileIsNotRead) {
  const report::SourceRoot root(directory_);
  SourceLines lines(&root);
  EXPECT_FALSE(lines.Around(Put("secret", "a\nb\n"), 1).has_value());
  EXPECT_FALSE(lines.Around(Put("key.pem", "a\nb\n"), 1).has_value());
  EXPECT_FALSE(lines.Around("/usr/include/stdlib.h", 1).has_value());
  EXPECT_FALSE(lines.Around(directory_ + "/absent.c", 1).has_value());
  std::filesystem::create_directory(directory_ + "/folder.c");
  EXPECT_FALSE(lines.Around(directory_ + "/folder.c", 1).has_value());
  EXPECT_FALSE(lines.Around(Put("a.c", "a\n") + std::string("\0b.c", 4), 1).has_value());
  EXPECT_FALSE(lines.Around("", 1).has_value());
}

TEST_F(SourceFile, ALongLineIsCutAndAnyByteIsText) {
  const std::string file = Put("a.c", std::string(100000, 'x') + "\n\xff</script>\n");
  const report::SourceRoot root(directory_);
  const auto found = SourceLines(&root).Around(file, 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->lines[0].size(), 300U);
  report::Run run = SweepWithFindings();
  run.findings.front().acquired.stack = {{"p", "f", file, 2, 0}};
  const json data = Data(Written(run, directory_));
  ASSERT_EQ(data["sources"].size(), 1U);
  EXPECT_EQ(data["sources"][0][1], 2);
  EXPECT_EQ(data["sources"][0][2][1], "\xef\xbf\xbd</script>");
}

// Whoever writes a report must not choose which files of the reader's machine go into a page.
TEST_F(SourceFile, OnlyFilesBelowTheRootAreRead) {
  namespace fs = std::filesystem;
  fs::create_directory(directory_ + "/root");
  const std::string outside = Put("secret.py", "password\n");
  const std::string inside = Put("root/a.c", "a\n");
  Put("root/key", "secret\n");
  fs::create_symlink(outside, directory_ + "/root/link.py");
  fs::create_symlink("key", directory_ + "/root/key.c");
  fs::create_symlink(inside, directory_ + "/to_inside.c");
  fs::create_directory_symlink("..", directory_ + "/root/up");
  const report::SourceRoot root(directory_ + "/root");
  SourceLines lines(&root);
  EXPECT_TRUE(lines.Around(inside, 1).has_value());
  EXPECT_TRUE(lines.Around("a.c", 1).has_value());
  EXPECT_TRUE(lines.Around(directory_ + "/to_inside.c", 1).has_value());
  for (const char* const name : {"../secret.py", "link.py", "up/secret.py", "key.c", "a.c/../../secret.py"}) {
    EXPECT_FALSE(lines.Around(name, 1).has_value()) << name;
  }
  EXPECT_FALSE(lines.Around(outside, 1).has_value());
  EXPECT_FALSE(SourceLines(nullptr).Around(inside, 1).has_value());
}

TEST_F(SourceFile, AnAuditFromAnArchiveHasNoLinesOfThisMachine) {
  report::Run run = SweepWithFindings();
  run.findings.front().acquired.stack = {{"p", "f", Put("a.c", "a\n"), 1, 0}};
  report::Audit audit;
  audit.cases.push_back({"a", {}, {run}, ""});
  EXPECT_EQ(Data(Written(audit, directory_))["sources"].size(), 1U);
  audit.from_archive = true;
  EXPECT_EQ(Data(Written(audit, directory_))["sources"].size(), 0U);
}

}  // namespace
}  // namespace cuaudit::suites::html_writer_test
