// SPDX-License-Identifier: MIT
// Files that a result is compared with: directories, archives, baseline files.
#include "harness/compare/result_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "harness/compare/baseline.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"
#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::result_files_test {
namespace {

namespace fs = std::filesystem;

class ResultFiles : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(testing::TempDir()) / ("result_files_" + std::to_string(getpid()));
    fs::remove_all(dir_);
    fs::create_directories(dir_ / "audit");
    std::ostringstream report;
    ASSERT_TRUE(report::WriteJson(suites::SweepWithFindings(), report));
    Put("audit/player.sweep.json", report.str());
    Put("audit/audit.json", R"({"schema": 1, "cases": [{"name": "player", "tags": [], "reports": ["player.sweep.json"]}],
        "unused_suppressions": [], "header": {"generated": "", "tool_version": ""}})");
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Put(const std::string& name, const std::string& text) { std::ofstream(dir_ / name, std::ios::binary) << text; }
  std::string Path(const std::string& name) { return (dir_ / name).string(); }
  std::string Pack(const std::string& name, const std::string& command) {
    EXPECT_EQ(std::system(("cd '" + dir_.string() + "' && " + command).c_str()), 0) << command;
    return Path(name);
  }
  std::string Expected(const std::string& path) {
    const Result<report::Audit> audit = ReadResult(path);
    EXPECT_EQ(audit.status().exit(), audit.ok() ? Exit::Clean : Exit::Usage);
    return audit.ok() ? "" : audit.status().message();
  }

  fs::path dir_;
};

TEST_F(ResultFiles, ArchivesAreTheDirectoryThatWentIn) {
  for (const std::string& path : {Path("audit"), Path("audit/audit.json"), Pack("a.tar", "tar -cf a.tar audit"),
                                  Pack("a.tar.gz", "tar -czf a.tar.gz audit"), Pack("flat.tar.gz", "tar -C audit -czf flat.tar.gz .")}) {
    const Result<report::Audit> audit = ReadResult(path);
    ASSERT_TRUE(audit.ok()) << audit.status().message();
    ASSERT_EQ(audit->cases.size(), 1U) << path;
    EXPECT_EQ(audit->from_archive, path.find(".tar") != std::string::npos);
    EXPECT_EQ(audit->cases[0].runs.at(0).defects.size(), suites::SweepWithFindings().defects.size());
  }
}

TEST_F(ResultFiles, AZipIsReadToo) {
  const std::string zip =
      "python3 -c \"import zipfile; z = zipfile.ZipFile('a.zip', 'w', zipfile.ZIP_DEFLATED); "
      "[z.write('audit/' + n) for n in ('audit.json', 'player.sweep.json')]; z.close()\"";
  EXPECT_EQ(Expected(Pack("a.zip", zip)), "");
}

TEST_F(ResultFiles, EveryCompressionThatTheManualNamesIsRead) {
  Pack("a.tar", "tar -cf a.tar audit");
  for (const std::string module : {"bz2", "lzma"}) {
    const std::string name = "a.tar." + module;
    const std::string pack =
        "python3 -c \"import " + module + "; open('" + name + "', 'wb').write(" + module + ".compress(open('a.tar', 'rb').read()))\"";
    EXPECT_EQ(Expected(Pack(name, pack)), "");
  }
}

// libarchive would start a program of this name for a file that begins like this.
TEST_F(ResultFiles, AnArchiveStartsNoProgram) {
  const std::map<std::string, std::string> magics = {{"grzip", std::string("GRZipII\0\x02\x04:)", 12)},
                                                     {"lrzip", std::string("LRZI\0\x05", 6)},
                                                     {"lzop", std::string("\x89LZO\0\r\n\x1a\n", 9)}};
  fs::create_directories(dir_ / "bin");
  const std::string before = std::getenv("PATH");
  for (const auto& [program, magic] : magics) {
    Put("bin/" + program, "#!/bin/sh\n: > '" + Path("started") + "'\n");
    fs::permissions(dir_ / "bin" / program, fs::perms::owner_all);
    Put("result", magic + std::string(1000, 'x'));
    setenv("PATH", (Path("bin") + ":" + before).c_str(), 1);
    const std::string line = Expected(Path("result"));
    setenv("PATH", before.c_str(), 1);
    EXPECT_NE(line.find("expected a result directory, a JSON report"), std::string::npos) << line;
    EXPECT_FALSE(fs::exists(dir_ / "started")) << program;
  }
}

TEST_F(ResultFiles, ADamagedArchiveIsOneLine) {
  const std::string whole = Pack("a.tar.gz", "tar -czf a.tar.gz audit");
  std::ifstream file(whole, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const std::size_t size : {std::size_t{3}, std::size_t{20}, bytes.size() / 2, bytes.size() - 20}) {
    Put("cut.tar.gz", bytes.substr(0, size));
    if (size > 3) {
      EXPECT_EQ(Expected(Path("cut.tar.gz")), Path("cut.tar.gz") + ": expected a whole archive of a result directory") << size;
    }
    const std::string line = Expected(Path("cut.tar.gz"));
    EXPECT_TRUE(line.starts_with(Path("cut.tar.gz") + ": expected ")) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
  Put("text", "a text that is nothing of all this\n");
  EXPECT_NE(Expected(Path("text")).find("expected a result directory, a JSON report"), std::string::npos);
  Put("empty", "");
  EXPECT_EQ(Expected(Path("empty")), Path("empty") + ": line 1, column 1: expected JSON");
  EXPECT_NE(Expected(Pack("none.tar", "tar -cf none.tar a.tar.gz")).find("expected a file audit.json in the archive"), std::string::npos);
}

TEST_F(ResultFiles, ABaseThatAMergeHasLeftSaysSo) {
  const std::string text = BaselineText(BaselineOf(*ReadResult(Path("audit"))));
  Put("merged.txt", "<<<<<<< HEAD\n" + text);
  Put("marked.txt", "\xef\xbb\xbf" + text);
  EXPECT_NE(ReadBase(Path("merged.txt")).status().message().find("merged.txt: line 1: expected no marker of a merge"), std::string::npos);
  EXPECT_NE(ReadBase(Path("marked.txt")).status().message().find("found a byte order mark"), std::string::npos);
}

TEST_F(ResultFiles, ABaselineFileCanOnlyBeTheBase) {
  Put("base.txt", BaselineText(BaselineOf(*ReadResult(Path("audit")))));
  EXPECT_EQ(Expected(Path("base.txt")), Path("base.txt") + ": expected a result; a baseline file can only be the base");
  const Result<Base> base = ReadBase(Path("base.txt"));
  ASSERT_TRUE(base.ok());
  EXPECT_FALSE(base->audit);
  EXPECT_EQ(base->defects.size(), suites::SweepWithFindings().defects.size());
  EXPECT_EQ(ReadBase(Path("none")).status().message(), Path("none") + ": no such file");
}

using namespace small_audits;  // NOLINT(google-build-using-namespace)

Baseline Two() { return BaselineOf(AuditOf({Sweep({Leak(), {"load", "event", {"cuMemAlloc", "cuMemAlloc"}, "main", "cuEventCreate"}})})); }

std::string Expected(const std::string& text) {
  const Result<Baseline> known = ParseBaseline(text, "base");
  EXPECT_EQ(known.status().exit(), known.ok() ? Exit::Clean : Exit::Usage);
  return known.ok() ? "" : known.status().message();
}

TEST(Baseline, WhatIsReadIsWrittenAsItWas) {
  const std::string text = BaselineText(Two());
  const Result<Baseline> known = ParseBaseline(text, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ(known->defects.size(), 2U);
  EXPECT_EQ(known->runs.size(), 1U);
  EXPECT_EQ(BaselineText(*known), text);
}

TEST(Baseline, HasALineForEachRunAndDefectWhateverTheOrder) {
  Baseline two = Two();
  const std::string text = BaselineText(two);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_TRUE(text.starts_with("cuaudit baseline 2\n{\"case\":\"player\",\"mode\":\"sweep\"}\n")) << text;
  std::reverse(two.defects.begin(), two.defects.end());
  EXPECT_EQ(BaselineText(two), text);
  EXPECT_NE(text.find("\"title\":\"leak: 1 stream, acquired by cuStreamCreate < open_device; open_device"), std::string::npos) << text;
}

TEST(Baseline, LinesThatAMergeDoubledAreTakenTogether) {
  Leak more = {.failing = {"cuMemAlloc"}};
  const std::string ours = BaselineText(BaselineOf(AuditOf({Sweep({Leak()})})));
  const std::string theirs = BaselineText(BaselineOf(AuditOf({Sweep({more})})));
  const std::string merged = ours + theirs.substr(theirs.find('\n') + 1) + ours.substr(ours.find('\n') + 1);
  const Result<Baseline> known = ParseBaseline(merged, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  ASSERT_EQ(known->defects.size(), 1U);
  EXPECT_EQ(known->defects[0].failing.size(), 2U);
  EXPECT_EQ(known->runs.size(), 1U);
}

TEST(Baseline, LinesOfRunsStandBeforeTheirDefectsAndMerge) {
  report::Run cycles = {.mode = report::Mode::Cycles, .outcome = report::Outcome::Clean};
  report::Run interrupted = cycles;
  interrupted.outcome = report::Outcome::Interrupted;
  report::Audit audit = AuditOf({Sweep({Leak()}), cycles});
  audit.cases.push_back(AuditOf({cycles}, "aaa").cases[0]);
  audit.cases.push_back(AuditOf({interrupted}, "bbb").cases[0]);
  const std::string text = BaselineText(BaselineOf(audit));
  EXPECT_EQ(text.find("bbb"), std::string::npos) << "it proves nothing";
  const std::size_t first = text.find(R"({"case":"aaa","mode":"cycles"})");
  const std::size_t cycles_of_player = text.find(R"({"case":"player","mode":"cycles"})");
  const std::size_t sweep_of_player = text.find(R"({"case":"player","mode":"sweep"})");
  const std::size_t defect = text.find("fingerprint");
  EXPECT_TRUE(first < cycles_of_player && cycles_of_player < sweep_of_player && sweep_of_player < defect && defect != std::string::npos)
      << text;
  const Result<Baseline> known = ParseBaseline(text, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ(known->runs.size(), 3U);
  EXPECT_EQ(BaselineText(*known), text);
}

TEST(Baseline, NamesWhatAnEditorOrAMergeHasLeft) {
  const std::string text = BaselineText(Two());
  const std::string marked = "\xef\xbb\xbf" + text;
  EXPECT_TRUE(IsBaseline(marked));
  EXPECT_EQ(Expected(marked),
            "base: line 1: expected 'cuaudit baseline 2', found a byte order mark before it: save it as UTF-8 without one");
  const std::size_t second = text.find('\n') + 1;
  const std::string advice = "': keep the lines of both sides, and take the markers out";
  for (const char* const marker : {"<<<<<<<", "|||||||", "=======", ">>>>>>>"}) {
    EXPECT_EQ(Expected(text.substr(0, second) + marker + " main\r\n" + text.substr(second)),
              "base: line 2: expected no marker of a merge conflict, found '" + std::string(marker) + advice);
  }
  EXPECT_EQ(Expected("<<<<<<< HEAD\n" + text), "base: line 1: expected no marker of a merge conflict, found '<<<<<<<" + advice);
}

TEST(Baseline, HostileNamesStayOnTheirLine) {
  Leak leak = {.function = std::string("a\nb\x01\xff\"</script>") + std::string(10000, 'x')};
  const std::string text = BaselineText(BaselineOf(AuditOf({Sweep({leak})}, "p")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(Expected(text), "");
}

TEST(Baseline, SaysTheLineAndWhatWasExpected) {
  const std::string text = BaselineText(Two());
  EXPECT_EQ(Expected(""), "base: line 1: expected 'cuaudit baseline 2'");
  EXPECT_EQ(Expected("cuaudit baseline 3\n"), "base: line 1: expected 'cuaudit baseline 2'");
  EXPECT_EQ(Expected("cuaudit baseline 2\nours\n"), "base: line 2: expected a run or a defect as a JSON object");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":\"a\"}\n"), "base: line 2: mode: expected this key");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":\"a\",\"mode\":\"swept\"}\n"),
            "base: line 2: mode: expected sweep, cycles, run or replay");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":7,\"mode\":\"sweep\"}\n"), "base: line 2: case: expected a string");
  EXPECT_EQ(Expected("cuaudit baseline 2\n[]\n"), "base: line 2: expected an object");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":\"a\",\"mode\":\"sweep\",\"title\":\"a leak\"}\n"),
            "base: line 2: fingerprint: expected this key");
  EXPECT_EQ(Expected("cuaudit baseline 1\n\n{}\n"), "base: line 3: case: expected this key");
  EXPECT_EQ(Expected("cuaudit baseline 1\n"), "");
  EXPECT_EQ(Expected("cuaudit baseline 1"), "");
  std::string windows = text;
  for (std::size_t at = 0; (at = windows.find('\n', at)) != std::string::npos; at += 2) windows.replace(at, 1, "\r\n");
  EXPECT_EQ(Expected(windows), "");
  for (std::size_t size = 20; size + 1 < text.size(); size += 37) {
    const std::string line = Expected(text.substr(0, size));
    if (text[size - 1] == '\n' || text[size] == '\n') continue;  // a whole line
    EXPECT_NE(line, "") << size;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace cuaudit::harness::result_files_test
