// SPDX-License-Identifier: MIT
// What holds for every writer: no name breaks its format, one audit has one text, and a stream that fails is not taken for success. And
// what they share: words that a terminal or XML can take, the root of the sources, frames.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "reports/escape.h"
#include "reports/frames.h"
#include "reports/source_root.h"
#include "reports/writers.h"
#include "suites/support/report_checks.h"
#include "suites/support/sample_runs.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::report::every_writer_test {
namespace {

std::string WhyNoJson(const std::string& text) { return nlohmann::json::accept(text) ? "" : "no JSON: " + text; }

std::string WhyNoText(const std::string& text) {
  for (const char c : text) {
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) return "a control character: " + text;
  }
  return {};
}

// Two scripts, and a third when something is plotted; the first is data.
std::string WhyNoPage(const std::string& text) {
  constexpr std::string_view kOpens = "id=\"data\">";
  std::size_t scripts = 0;
  for (std::size_t at = text.find("<script"); at != std::string::npos; at = text.find("<script", at + 1)) ++scripts;
  if (scripts != 2 && scripts != 3) return std::to_string(scripts) + " scripts";
  const std::size_t from = text.find(kOpens);
  if (from == std::string::npos) return "no data";
  const std::string_view rest = std::string_view(text).substr(from + kOpens.size());
  const std::string_view data = rest.substr(0, rest.find("</script"));
  return nlohmann::json::accept(data) ? "" : "no JSON: " + std::string(data);
}

struct Writer {
  const char* name;
  std::function<bool(const Audit& audit, std::ostream& out)> write;
  std::function<std::string(const std::string& text)> why_not;
};

std::vector<Writer> Writers() {
  using suites::WhyNoCommands;
  using suites::WhyNoIssues;
  using suites::WhyNoMarkdown;
  using suites::WhyNoSarif;
  using suites::WhyNoXml;
  static const SourceRoot root(suites::kSampleRoot);
  const auto first = [](const Audit& audit) -> const Run& { return audit.cases.front().runs.front(); };
  return {
      {"text", [=](const Audit& audit, std::ostream& out) { return WriteText(first(audit), out, {}); }, WhyNoText},
      {"json", [=](const Audit& audit, std::ostream& out) { return WriteJson(first(audit), out); }, WhyNoJson},
      {"junit", [](const Audit& audit, std::ostream& out) { return WriteJunit(audit, out); }, WhyNoXml},
      {"sarif", [](const Audit& audit, std::ostream& out) { return WriteSarif(audit, root, SarifProfile::Full, out); },
       [](const std::string& text) { return WhyNoSarif(text, false); }},
      {"upload", [](const Audit& audit, std::ostream& out) { return WriteSarif(audit, root, SarifProfile::Github, out); },
       [](const std::string& text) { return WhyNoSarif(text, true); }},
      {"github", [](const Audit& audit, std::ostream& out) { return WriteGithub(audit, root, out); }, WhyNoCommands},
      {"gitlab", [](const Audit& audit, std::ostream& out) { return WriteGitlab(audit, root, out); }, WhyNoIssues},
      {"html", [](const Audit& audit, std::ostream& out) { return WriteHtml(audit, root, out); }, WhyNoPage},
      {"comparison", [](const Audit& audit, std::ostream& out) { return WriteComparisonText(audit, out, false); }, WhyNoText},
      {"comparison.json", [](const Audit& audit, std::ostream& out) { return WriteComparisonJson(audit, out); }, WhyNoJson},
      {"markdown", [](const Audit& audit, std::ostream& out) { return WriteMarkdown(audit, out); }, WhyNoMarkdown},
      {"summary", [](const Audit& audit, std::ostream& out) { return WriteMarkdown(audit, out, {2000}); }, WhyNoMarkdown},
  };
}

std::string Write(const Writer& writer, const Audit& audit) {
  std::ostringstream out;
  EXPECT_TRUE(writer.write(audit, out)) << writer.name;
  return out.str();
}

TEST(EveryWriter, NoNameBreaksAFormat) {
  for (const std::string& text : suites::HostileTexts()) {
    const Audit audit = suites::AuditOfOneText(text);
    for (const Writer& writer : Writers()) EXPECT_EQ(writer.why_not(Write(writer, audit)), "") << writer.name << " of " << text;
  }
}

TEST(EveryWriter, SamplesAreWellFormed) {
  for (const suites::SampleAudit& sample : suites::SampleAudits()) {
    for (const Writer& writer : Writers())
      EXPECT_EQ(writer.why_not(Write(writer, sample.audit)), "") << writer.name << " of " << sample.name;
  }
}

TEST(EveryWriter, AnAuditIsOneText) {
  for (const Writer& writer : Writers()) {
    EXPECT_EQ(Write(writer, suites::ReleaseAudit()), Write(writer, suites::ReleaseAudit())) << writer.name;
  }
}

TEST(EveryWriter, AFailedStreamIsNoSuccess) {
  for (const Writer& writer : Writers()) {
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_FALSE(writer.write(suites::ReleaseAudit(), out)) << writer.name;
  }
}

TEST(EveryWriter, AnAuditOfNothingIsWritten) {
  for (const Writer& writer : Writers()) {
    if (std::string(writer.name) == "text" || std::string(writer.name) == "json") continue;  // they write one report
    EXPECT_EQ(writer.why_not(Write(writer, Audit{})), "") << writer.name;
  }
}

// The checks themselves: each must refuse what a careless writer makes.
TEST(ReportChecks, RefuseWhatIsBroken) {
  using namespace suites;
  for (const char* const page : {"## cuaudit: 1 defect\n\n| a | b |\n| - | - |\n| <code>x|y</code> | |\n", "```text\nnever closed\n",
                                 "What: <code>a</code><script>\n", "What: <code>a\n", "# heading of a name\n", "What: <code>`a`</code>\n",
                                 "<details><summary>a</summary>\n", "What: \x1b[31m\n", "```text\n```\n```js\n```\n"}) {
    EXPECT_NE(WhyNoMarkdown(page), "") << page;
  }
  for (const char* const commands : {"::error file=a::x", "text\n", "::error title=a,b::x\n", "::error title=a::50%\n", "::debug x=1::a\n",
                                     "::error title=a::b\x1b\n"}) {
    EXPECT_NE(WhyNoCommands(commands), "") << commands;
  }
  std::string many;
  for (int i = 0; i < 11; ++i) many += "::error title=a::b\n";
  EXPECT_NE(WhyNoCommands(many), "");
  EXPECT_NE(WhyNoSarif("{", false), "");
  EXPECT_NE(WhyNoIssues("{}"), "");
  EXPECT_NE(WhyNoXml("<a>"), "");
}

constexpr char kBad[] = "\xEF\xBF\xBD";

TEST(Escape, WellFormedTextStaysAsItIs) {
  const std::string text = "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 plain";
  EXPECT_EQ(ForTerminal(text), text);
  EXPECT_EQ(ForXml(text), text);
}

TEST(Escape, EachByteThatIsNotUtf8BecomesOneReplacement) {
  const std::string bad = kBad;
  EXPECT_EQ(ForXml("a\xff"
                   "b"),
            "a" + bad + "b");
  EXPECT_EQ(ForXml("\xc0\xaf"), bad + bad) << "overlong";
  EXPECT_EQ(ForXml("\xed\xa0\x80"), bad + bad + bad) << "surrogate";
  EXPECT_EQ(ForXml("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond U+10FFFF";
  EXPECT_EQ(ForXml("x\xe2\x82"), "x" + bad + bad) << "cut short";
  EXPECT_EQ(ForTerminal("\x80"), bad);
}

TEST(Escape, TerminalSeesNoControlCharacters) {
  EXPECT_EQ(ForTerminal("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(ForTerminal("a\nb\tc\x7f"), "a\\nb\\tc\\x7f");
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "31m"),
            "\\x9b31m")
      << "C1 control sequence introducer";
  EXPECT_EQ(ForTerminal(std::string_view("\0", 1)), "\\x00");
}

TEST(Escape, XmlSeesOnlyCharactersItAllows) {
  EXPECT_EQ(ForXml("a\x01\x1f\t\n\r"), std::string("a") + kBad + kBad + "\t\n\r");
  EXPECT_EQ(ForXml("\xef\xbf\xbe"), kBad) << "U+FFFE";
}

std::string ReadBack(const std::string& line) {
  const std::string command = "printf '[%s]' " + line;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 256> part{};
  for (std::size_t n = 0; (n = fread(part.data(), 1, part.size(), pipe.get())) > 0;) text.append(part.data(), n);
  return text;
}

TEST(Escape, AShellReadsTheSameWordsBack) {
  const std::vector<std::string> words = {"plain-1.0", "two words", "it's", "",  "$HOME", "`id`",
                                          "a\"b\\c",   "{n}",       "*",    "~", "#1",    "x;y&z|w"};
  std::string expected;
  for (const std::string& word : words) expected += "[" + word + "]";
  EXPECT_EQ(ReadBack(ForShell(words)), expected);
  EXPECT_EQ(ForShell({"./prog", "--n=1,10"}), "./prog --n=1,10") << "nothing is quoted without need";
  EXPECT_EQ(ForShell({"a\nb", "c"}), "$'a\\012b' c") << "one line";
}

// Names of source files.

namespace fs = std::filesystem;

std::string PathOf(const SourceRoot& root, const std::string& file) {
  const std::optional<SourcePlace> place = root.Find(Frame{"player", "f", file, 7, 0});
  return place ? place->path + ":" + std::to_string(place->line) : "";
}

TEST(SourceRoot, FilesBelowItAreNamedFromIt) {
  const SourceRoot root("/nowhere/player");
  EXPECT_EQ(PathOf(root, "/nowhere/player/src/a.c"), "src/a.c:7");
  EXPECT_EQ(PathOf(root, "/nowhere/player/src/../lib/./a.c"), "lib/a.c:7");
  EXPECT_EQ(PathOf(root, "src/a.c"), "src/a.c:7") << "a relative name";
  EXPECT_EQ(PathOf(root, "/nowhere/player2/a.c"), "") << "a folder whose name begins alike";
  EXPECT_EQ(PathOf(root, "/usr/include/stdio.h"), "");
  EXPECT_EQ(PathOf(root, "../other/a.c"), "");
  EXPECT_EQ(PathOf(root, "/nowhere/player"), "");
  EXPECT_EQ(PathOf(root, ""), "");
  EXPECT_EQ(PathOf(root, std::string("src/a\0b.c", 9)), "");
}

TEST(SourceRoot, SymbolicLinksAreResolved) {
  const harness::TemporaryDir dir;
  fs::create_directory(dir.File("real"));
  std::ofstream(dir.File("real/a.c")) << "int a;\n";
  fs::create_directory_symlink(dir.File("real"), dir.File("link"));
  EXPECT_EQ(PathOf(SourceRoot(dir.File("link")), dir.File("real/a.c")), "a.c:7");
  EXPECT_EQ(PathOf(SourceRoot(dir.File("real")), dir.File("link/a.c")), "a.c:7");
  fs::create_symlink(dir.File("real/a.c"), dir.File("link/b.c"));
  EXPECT_EQ(PathOf(SourceRoot(dir.File("real")), dir.File("real/b.c")), "a.c:7") << "the file itself is a link";
}

TEST(SourceRoot, TheInnermostFrameBelowItCountsAndTheRuntimeNever) {
  const SourceRoot root("/nowhere/player");
  const std::vector<Frame> stack = {Frame{"libc.so.6", "start", "csu/start.c", 1, 0}, Frame{"player", "inner", "/usr/include/x.h", 2, 0},
                                    Frame{"player", "outer", "src/a.c", 0, 0}, Frame{"player", "main", "src/main.c", 9, 0}};
  const std::optional<SourcePlace> place = root.Find(stack);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->path, "src/a.c");
  EXPECT_EQ(place->line, 1) << "an unknown line is the first";
  EXPECT_FALSE(root.Find(std::vector<Frame>{}));
}

std::vector<std::string> Shown(const std::vector<Frame>& stack) {
  std::vector<std::string> lines;
  for (const Frame& frame : ShownFrames(stack)) lines.push_back(Describe(frame));
  return lines;
}

TEST(Frames, TheFunctionThatMadeTheCallIsShownThoughItsModuleHasNoLines) {
  const std::vector<Frame> stack = {{"libplug.so", "plug_open", "", 0, 1}, {"prog", "work", "a.c", 3, 2}};
  EXPECT_EQ(Shown(stack), (std::vector<std::string>{"plug_open (libplug.so)", "work a.c:3"}));
  EXPECT_EQ(DescribeOrigin(stack), "plug_open (libplug.so) < work a.c:3");
}

TEST(Frames, FramesWithoutNamesAreShownByModuleAndOffset) {
  const std::vector<Frame> stack = {
      {"libplug.so", "", "", 0, 1}, {"libplug.so", "", "", 0, 2}, {"prog", "work", "a.c", 3, 4}, {"prog", "main", "", 0, 7}};
  EXPECT_EQ(Shown(stack), (std::vector<std::string>{"libplug.so+0x1", "libplug.so+0x2", "work a.c:3", "main (prog)"}));
  EXPECT_EQ(DescribeOrigin(stack), "libplug.so+0x1 < work a.c:3");
}

TEST(Frames, APlaceIsNotNamedByTheCLibraryWhereTheProgramHasOne) {
  const Frame abort = {"libc.so.6", "abort", "", 0, 1};
  const Frame start = {"libc.so.6", "__libc_start_call_main", "", 0, 2};
  EXPECT_EQ(DescribeOrigin({abort, {"prog", "", "", 0, 0x1139}, start}), "prog+0x1139");
  EXPECT_EQ(DescribeOrigin({abort, {"libstdc++.so.6", "std::terminate()", "", 0, 3}, {"prog", "work", "", 0, 4}, start}), "work (prog)");
  EXPECT_EQ(DescribeOrigin({abort, start}), "abort (libc.so.6)");
}

TEST(Frames, TheCppLibraryInsideTheProgramIsNotShown) {
  const std::string headers = "/usr/include/c++/12/bits/";
  const std::vector<Frame> stack = {{"prog", "helper(int)", "a.cc", 6, 1},
                                    {"prog", "void std::thread::_Invoker<int>::_M_invoke<0ul>()", headers + "std_thread.h", 252, 2},
                                    {"prog", "std::default_delete<Device>::operator()(Device*) const", headers + "unique_ptr.h", 95, 3},
                                    {"prog", "std::thread::_State_impl<int>::_M_run()", "", 0, 4},
                                    {"prog", "std::hash<Mine>::operator()(Mine const&) const", "mine.h", 9, 5},
                                    {"prog", "main", "a.cc", 30, 6}};
  const std::vector<std::string> shown = {"helper(int) a.cc:6", "std::hash<Mine>::operator()(Mine const&) const mine.h:9", "main a.cc:30"};
  EXPECT_EQ(Shown(stack), shown);
  EXPECT_EQ(DescribeOrigin({stack.begin() + 1, stack.end()}), shown[1]) << "nor does it name a place";
  const std::vector<Frame> only = {stack[1], stack[2]};
  EXPECT_EQ(Shown(only).size(), 2U) << "a stack of nothing else";
}

TEST(Frames, AStackWithoutNamesIsShownAsItIs) {
  const std::vector<Frame> stack = {{"prog", "", "", 0, 1}, {"prog", "", "", 0, 2}, {"prog", "", "", 0, 3}};
  EXPECT_EQ(Shown(stack), (std::vector<std::string>{"prog+0x1", "prog+0x2", "prog+0x3"}));
  EXPECT_EQ(DescribeOrigin(stack), "prog+0x1");
  EXPECT_EQ(DescribeOrigin({}), "");
}

TEST(Frames, AFrameIsDescribedAsFarAsItIsKnown) {
  EXPECT_EQ(Describe({"prog", "work", "a.c", 3, 2}), "work a.c:3");
  EXPECT_EQ(Describe({"prog", "work", "a.c", 0, 2}), "work a.c");
  EXPECT_EQ(Describe({"prog", "work", "", 0, 2}), "work (prog)");
  EXPECT_EQ(Describe({"prog", "", "", 0, 0x1f30}), "prog+0x1f30");
  EXPECT_EQ(Describe({"", "", "", 0, 16}), "?+0x10");
  EXPECT_EQ(Describe({}), "code without a file");
}

}  // namespace
}  // namespace cuaudit::report::every_writer_test
