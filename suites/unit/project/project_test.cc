// SPDX-License-Identifier: MIT
// cuaudit.toml: cases, defaults, includes, and what is wrong with a file that cannot be used.
#include "harness/project/project.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/options/option_rows.h"
#include "harness/process/files.h"
#include "harness/process/shell.h"
#include "harness/process/status.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::project_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Project : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFile(dir_.File(name), text, Exit::Failure).ok());
    return dir_.File(name);
  }

  std::vector<ProjectCase> Read(const std::string& text) const {
    Result<std::vector<ProjectCase>> cases = ReadProject(Write("cuaudit.toml", text));
    EXPECT_TRUE(cases.ok()) << cases.status().message();
    return cases.ok() ? std::move(*cases) : std::vector<ProjectCase>();
  }

  // The one line that says why, with the folder of the file left out.
  std::string WhyNot(const std::string& text) const {
    const Result<std::vector<ProjectCase>> cases = ReadProject(Write("cuaudit.toml", text));
    Status status = cases.status();
    if (cases.ok()) {
      for (const ProjectCase& one : *cases) {
        if (status.ok()) status = CheckCase(one);
      }
    }
    EXPECT_EQ(status.exit(), Exit::Usage) << text;
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    std::string why = status.message();
    for (std::size_t at = why.find(dir_.path() + "/"); at != std::string::npos; at = why.find(dir_.path() + "/"))
      why.erase(at, dir_.path().size() + 1);
    return why;
  }

  const TemporaryDir dir_;
};

TEST_F(Project, InputsAreFoundFromTheFolderOfTheFileAndHaveToBeThere) {
  Write("weights.bin", "");
  const std::vector<ProjectCase> cases = Read("[case.a]\ncommand = \"./a\"\ninputs = [\"weights.bin\", \".\"]\n");
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_THAT(cases[0].options.inputs, ElementsAre(dir_.File("weights.bin"), dir_.File(".")));
  EXPECT_TRUE(CheckCase(cases[0]).ok());
  EXPECT_EQ(WhyNot("[case.a]\ncommand = \"./a\"\ninputs = [\"weights.bin\", \"none\"]\n"),
            "cuaudit.toml:3:1: inputs: 'none': expected a file or a folder");
  EXPECT_THAT(WhyNot("[case.a]\ncommand = \"./a\"\ninputs = \"weights.bin\"\n"), HasSubstr("expected a list of texts: PATH"));
}

TEST_F(Project, HasCasesInTheOrderOfTheFile) {
  const std::vector<ProjectCase> cases = Read(R"([case.z]
command = ["./z", "a b", "3"]
tags = ["slow", "pool"]
weight = 7

[case."a.b-1"]
command = "./a 'b c' {n}"
)");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].name, "z");
  EXPECT_THAT(cases[0].options.program, ElementsAre("./z", "a b", "3"));
  EXPECT_THAT(cases[0].tags, ElementsAre("slow", "pool"));
  EXPECT_EQ(cases[0].weight, 7U);
  EXPECT_EQ(cases[1].name, "a.b-1");
  EXPECT_THAT(cases[1].options.program, ElementsAre("./a", "b c", "{n}"));
  EXPECT_EQ(cases[1].options.directory, dir_.path()) << "it runs in the folder of the file";
  EXPECT_THAT(cases[1].from.at("command"), EndsWith("cuaudit.toml:7:1"));
}

TEST_F(Project, TakesEverySortOfOption) {
  const std::vector<ProjectCase> cases = Read(R"([case.all]
command = ["p"]
driver = "sim"
depth = 1
host = true
how = ["refuse", "after"]
codes = "all"
call = ["cuMemAlloc", "cuMemFree"]
benign = ["cuMemHostRegister"]
coverage_at_least = 97.5
deadline_ms = 500
expect_exit = 3
cycles = [1, 10, 100]
kernels = "libk.so"
real_driver = "/x/libcuda.so.1"
environment = { A = "b c", N = 3 }
directory = "sub"
)");
  ASSERT_EQ(cases.size(), 1U);
  const Options& options = cases[0].options;
  EXPECT_EQ(options.driver, "sim");
  EXPECT_EQ(options.depth, 1U);
  EXPECT_TRUE(options.host);
  EXPECT_EQ(options.how, "refuse,after");
  EXPECT_EQ(options.codes, "all");
  EXPECT_THAT(options.call, ElementsAre("cuMemAlloc", "cuMemFree"));
  EXPECT_THAT(options.benign, ElementsAre("cuMemHostRegister"));
  EXPECT_EQ(options.coverage_at_least, "97.5");
  EXPECT_EQ(options.deadline_ms, 500U);
  EXPECT_EQ(options.expect_exit, 3U);
  EXPECT_EQ(CountsOf(cases[0]), "1,10,100");
  EXPECT_EQ(options.kernels, dir_.File("libk.so")) << "from the folder of the file";
  EXPECT_EQ(options.real_driver, "/x/libcuda.so.1");
  EXPECT_THAT(options.environment, ElementsAre("A=b c", "N=3"));
  EXPECT_EQ(options.directory, dir_.File("sub"));
  EXPECT_TRUE(CheckCase(cases[0]).ok());
}

TEST_F(Project, CyclesAreOffOnOrCounts) {
  const std::vector<ProjectCase> cases = Read(
      "[case.a]\ncommand = \"p\"\n[case.b]\ncommand = \"p\"\ncycles = true\n[case.c]\ncommand = \"p\"\ncycles = false\n"
      "[case.d]\ncommand = \"p\"\ncycles = \"2,4\"\n");
  ASSERT_EQ(cases.size(), 4U);
  EXPECT_EQ(CountsOf(cases[0]), "");
  EXPECT_EQ(CountsOf(cases[1]), "1,10");
  EXPECT_EQ(CountsOf(cases[2]), "");
  EXPECT_EQ(CountsOf(cases[3]), "2,4");
}

TEST_F(Project, DefaultsHoldForTheFileAndWhatItIncludes) {
  Write("inner.toml", "[defaults]\ndepth = 1\nenvironment = { B = \"inner\" }\n[case.in]\ncommand = \"p\"\nenvironment = { C = \"c\" }\n");
  const std::vector<ProjectCase> cases = Read(R"(include = ["inner.toml"]
[case.out]
command = "p"
[defaults]
driver = "sim"
depth = 2
environment = { A = "a", B = "b" }
)");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].name, "in");
  EXPECT_EQ(cases[0].options.driver, "sim");
  EXPECT_EQ(cases[0].options.depth, 1U) << "the nearer file wins";
  EXPECT_THAT(cases[0].options.environment, ElementsAre("A=a", "B=inner", "C=c"));
  EXPECT_THAT(cases[0].from.at("driver"), EndsWith("cuaudit.toml:5:1"));
  EXPECT_THAT(cases[0].from.at("depth"), EndsWith("inner.toml:2:1"));
  EXPECT_THAT(ShowCase(cases[0]),
              testing::ContainsRegex("environment = [^\n]*# [^ ]*cuaudit.toml:7:1, [^ ]*inner.toml:3:1, [^ ]*inner.toml:6:1\n"));
  EXPECT_EQ(cases[1].options.depth, 2U) << "what an included file says is its own";
  EXPECT_THAT(cases[1].options.environment, ElementsAre("A=a", "B=b"));
}

TEST_F(Project, ACaseTurnsRoundWhatTheDefaultsSay) {
  const std::vector<ProjectCase> cases = Read(R"([defaults]
no_host = true
prune = "all"
[case.a]
command = "p"
host = true
no_prune = true
)");
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_TRUE(cases[0].options.host);
  EXPECT_FALSE(cases[0].options.no_host);
  EXPECT_TRUE(CheckCase(cases[0]).ok());
}

TEST_F(Project, FlagsComeBeforeTheFile) {
  std::vector<ProjectCase> cases =
      Read("[case.a]\ncommand = \"p\"\ndepth = 2\nhost = true\ncodes = \"all\"\nenvironment = { A = \"1\", B = \"2\" }\n");
  ASSERT_EQ(cases.size(), 1U);
  const std::vector<std::string> words = {"audit", "--depth=1", "--no-host", "--environment=A=9", "--cycles=2,3"};
  const Result<Options> flags = ParseOptions(words);
  ASSERT_TRUE(flags.ok()) << flags.status().message();
  ApplyGiven(*flags, "command line", &cases[0]);
  const Options& options = cases[0].options;
  EXPECT_EQ(options.depth, 1U);
  EXPECT_TRUE(options.no_host);
  EXPECT_FALSE(options.host);
  EXPECT_EQ(options.codes, "all") << "a flag that was not given changes nothing";
  EXPECT_THAT(options.environment, ElementsAre("A=9", "B=2"));
  EXPECT_EQ(CountsOf(cases[0]), "2,3");
  const std::string page = ShowCase(cases[0]);
  EXPECT_THAT(page, testing::ContainsRegex("depth = 1 +# command line\n"));
  EXPECT_THAT(page, testing::ContainsRegex("codes = \"all\" +# [^\n]*cuaudit.toml:5:1\n"));
  EXPECT_THAT(page, testing::ContainsRegex("stacks = 16 +# default\n"));
  EXPECT_THAT(page, testing::ContainsRegex("\n# kernels = \"\" +# default\n")) << "no value that could be given";
}

TEST_F(Project, WhatIsShownCanBeReadBack) {
  const std::vector<ProjectCase> cases = Read("[case.a]\ncommand = [\"p\", \"q\\u0007\\\"\\\\\"]\ncycles = [1, 4]\ntags = [\"x y\"]\n");
  ASSERT_EQ(cases.size(), 1U);
  const std::vector<ProjectCase> again = Read(ShowCase(cases[0]));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].options.program, cases[0].options.program);
  EXPECT_EQ(again[0].tags, cases[0].tags);
  EXPECT_EQ(CountsOf(again[0]), "1,4");
  EXPECT_EQ(again[0].options.directory, cases[0].options.directory);
}

TEST_F(Project, AWrongKeyNamesItsPlaceAndTheNearestOne) {
  EXPECT_EQ(WhyNot("[case.a]\ncommand = \"p\"\ndept = 1\n"),
            "cuaudit.toml:3:1: dept: no such key, expected a key of a case, did you mean depth?");
  EXPECT_EQ(WhyNot("[defaults]\ncommand = \"p\"\n"), "cuaudit.toml:2:1: command: expected it in a case, not in the defaults");
  EXPECT_EQ(WhyNot("[default]\n"),
            "cuaudit.toml:1:2: default: no such key, expected include, [defaults] or [case.NAME], did you mean defaults?");
  EXPECT_THAT(WhyNot("[case.a]\ncommand = \"p\"\nformat = [\"json\"]\n"), StartsWith("cuaudit.toml:3:1: format: no such key"))
      << "not every option is one of a case";
}

TEST_F(Project, DefaultsAloneAreCheckedAsWell) {
  const auto why_not = [this](const std::string& text) {
    const std::string message = ReadDefaults(Write("cuaudit.toml", text)).status().message();
    return message.empty() ? message : message.substr(dir_.path().size() + 1);
  };
  EXPECT_EQ(why_not("[defaults]\ndepth = 1\n"), "");
  EXPECT_EQ(why_not("defaults = 3\n"), "cuaudit.toml:1:1: defaults: found 3, expected a section: [defaults]");
  EXPECT_THAT(why_not("[defalts]\ndepth = 1\n"), HasSubstr("did you mean defaults?"));
}

TEST_F(Project, AWrongValueNamesItsPlaceAndWhatWasExpected) {
  const auto of = [this](const std::string& line) { return WhyNot("[case.a]\ncommand = \"p\"\n" + line + "\n"); };
  EXPECT_EQ(of("depth = 3"), "cuaudit.toml:3:9: depth: found 3, expected a number from 1 to 2");
  EXPECT_EQ(of("depth = \"1\""), "cuaudit.toml:3:9: depth: found \"1\", expected a number from 1 to 2");
  EXPECT_EQ(of("depth = -1"), "cuaudit.toml:3:9: depth: found -1, expected a number from 1 to 2");
  EXPECT_EQ(of("driver = \"cpu\""), "cuaudit.toml:3:10: driver: found \"cpu\", expected one of auto, sim, real");
  EXPECT_EQ(of("host = 1"), "cuaudit.toml:3:8: host: found 1, expected true or false");
  EXPECT_EQ(of("call = \"cuInit\""), "cuaudit.toml:3:8: call: found \"cuInit\", expected a list of texts: NAME");
  EXPECT_EQ(of("weight = -1"), "cuaudit.toml:3:10: weight: found -1, expected a number from 0 to 1000000");
  EXPECT_EQ(of("environment = { A = [] }"), "cuaudit.toml:3:15: environment: found a table, expected variables: { NAME = \"value\" }");
  for (const char* const variables :
       {R"({ "A\u0000B" = "1" })", R"({ "A=B" = "1" })", R"({ "" = "1" })", R"({ A = "x\u0000" })", R"(["=1"])", R"(["A"])"}) {
    EXPECT_THAT(of(std::string("environment = ") + variables),
                AllOf(StartsWith("cuaudit.toml:3:15: environment: found "), HasSubstr("expected variables: { NAME = \"value\" }")))
        << variables;
  }
  EXPECT_THAT(of("how = \"refuse,explode\""), AllOf(StartsWith("cuaudit.toml:3:1: how: "), HasSubstr("explode")));
  EXPECT_THAT(of("cycles = [10, 1]"), StartsWith("cuaudit.toml:3:1: cycles: '10,1': expected off, on or increasing counts"));
  EXPECT_THAT(of("detect = \"much\""), StartsWith("cuaudit.toml:3:1: detect: "));
  EXPECT_THAT(of("benign = [\"@@\"]"), StartsWith("cuaudit.toml:3:1: benign: "));
  EXPECT_THAT(of("coverage_at_least = 101"), StartsWith("cuaudit.toml:3:1: coverage_at_least: "));
  EXPECT_THAT(of("host = true\nno_host = true"), AllOf(StartsWith("cuaudit.toml:1:7: case a: "), HasSubstr("not both")));
  EXPECT_THAT(of("deadline_ms = 1979-05-27"), HasSubstr("found a date,"));
}

// It would be taken for the default, and as a flag it is an error.
TEST_F(Project, AnEmptyTextIsNoValueOfAnyOption) {
  const auto of = [this](const std::string& line) { return WhyNot("[case.a]\ncommand = \"p\"\n" + line + "\n"); };
  std::size_t texts = 0;
  for (const OptionRow& row : OptionRows()) {
    if (!row.IsKey() || (row.text == nullptr && row.list == nullptr)) continue;
    ++texts;
    const std::string key = row.Key();
    const std::string place = "cuaudit.toml:3:" + std::to_string(key.size() + 4) + ": " + key + ": found \"\", expected ";
    EXPECT_THAT(of(key + " = \"\""), StartsWith(place));
    if (row.list == nullptr) continue;
    const std::string in_list = "cuaudit.toml:3:" + std::to_string(key.size() + 12) + ": " + key + ": found \"\", expected ";
    EXPECT_THAT(of(key + " = [\"A=1\", \"\"]"), StartsWith(in_list));
  }
  EXPECT_GE(texts, 20U);
  EXPECT_EQ(of("driver = \"\""), "cuaudit.toml:3:10: driver: found \"\", expected one of auto, sim, real");
  EXPECT_EQ(of("kernels = \"\""), "cuaudit.toml:3:11: kernels: found \"\", expected a text: FILE");
  EXPECT_EQ(of("how = [\"refuse\", \"\"]"), "cuaudit.toml:3:18: how: found \"\", expected a text: LIST");
  EXPECT_EQ(of("how = []"), "cuaudit.toml:3:7: how: found an empty list, expected a text: LIST");
  EXPECT_EQ(of("tags = [\"x\", \"\"]"), "cuaudit.toml:3:14: tags: found \"\", expected a list of texts");
  EXPECT_EQ(WhyNot("[defaults]\nkernels = \"\"\n[case.a]\ncommand = \"p\"\n"),
            "cuaudit.toml:2:11: kernels: found \"\", expected a text: FILE");
}

TEST_F(Project, EmptyVariablesArgumentsAndListsAreValues) {
  const std::vector<ProjectCase> cases = Read("[case.a]\ncommand = [\"p\", \"\"]\nenvironment = { A = \"\" }\ncall = []\ntags = []\n");
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_THAT(cases[0].options.program, ElementsAre("p", ""));
  EXPECT_THAT(cases[0].options.environment, ElementsAre("A="));
  EXPECT_TRUE(CheckCase(cases[0]).ok());
}

TEST_F(Project, RefusesCasesThatCannotBeTold) {
  EXPECT_EQ(WhyNot(""), "cuaudit.toml: no cases, expected at least one [case.NAME] with a command");
  EXPECT_EQ(WhyNot("[defaults]\n"), "cuaudit.toml: no cases, expected at least one [case.NAME] with a command");
  EXPECT_THAT(WhyNot("[case.a]\ndepth = 1\n"), StartsWith("cuaudit.toml:1:7: case a: no command, expected command = "));
  EXPECT_THAT(WhyNot("[case.a]\ncommand = []\n"), HasSubstr("2:11: command: found an empty list, expected a program"));
  EXPECT_THAT(WhyNot("[case.a]\ncommand = \"'p\"\n"), HasSubstr("expected a program"));
  EXPECT_THAT(WhyNot("[case.a]\ncommand = \"p\\u0000q\"\n"), HasSubstr("expected a program"));
  EXPECT_THAT(WhyNot("[case.\"../a\"]\ncommand = \"p\"\n"), HasSubstr("expected a name of at most 100 letters"));
  EXPECT_THAT(WhyNot("[case.\"\"]\ncommand = \"p\"\n"), HasSubstr("expected a name"));
  EXPECT_THAT(WhyNot("case = 3\n"), HasSubstr("found 3, expected a section: [case.NAME]"));
  EXPECT_THAT(WhyNot("[case]\na = 3\n"), HasSubstr("2:1: found 3, expected a section: [case.NAME]"));
  EXPECT_THAT(WhyNot("[case.a]\ncommand = \"p\"\n[case.a]\ncommand = \"q\"\n"), StartsWith("cuaudit.toml:3:"));
  Write("other.toml", "[case.a]\ncommand = \"p\"\n");
  EXPECT_EQ(WhyNot("include = [\"other.toml\"]\n[case.a]\ncommand = \"q\"\n"),
            "cuaudit.toml:2:7: case a: expected another name, other.toml:1:7 has this one");
}

TEST_F(Project, RefusesIncludesThatLeadBackOrNowhere) {
  Write("other.toml", "include = [\"cuaudit.toml\"]\n");
  EXPECT_THAT(WhyNot("include = [\"other.toml\"]\n"), AllOf(StartsWith("other.toml:1:12: include: "), HasSubstr("includes itself")));
  EXPECT_THAT(WhyNot("include = [\"./cuaudit.toml\"]\n"), HasSubstr("includes itself"));
  EXPECT_EQ(WhyNot("include = [\"none.toml\"]\n"), "cuaudit.toml:1:12: include: none.toml: no such file");
  EXPECT_THAT(WhyNot("include = \"other.toml\"\n"), HasSubstr("expected a list of files"));
  EXPECT_THAT(WhyNot("include = [3]\n"), HasSubstr("expected the name of a file"));
}

TEST_F(Project, RefusesWhatIsNoToml) {
  EXPECT_THAT(WhyNot("[case.a\n"), StartsWith("cuaudit.toml:1:"));
  EXPECT_THAT(WhyNot("[case.a]\ncommand = \"p\ndepth = 1\n"), StartsWith("cuaudit.toml:2:"));
  EXPECT_THAT(WhyNot(std::string("[case.a]\ncommand = \"\xff\xfe\"\n")), StartsWith("cuaudit.toml:2:"));
  EXPECT_THAT(WhyNot(std::string("\0\0\0", 3)), StartsWith("cuaudit.toml:1:"));
  EXPECT_THAT(WhyNot("[case." + std::string(10000, 'a') + "]\ncommand = \"p\"\n"), HasSubstr("expected a name of at most 100 letters"));
  EXPECT_THAT(WhyNot("a = " + std::string(5000, '[')), StartsWith("cuaudit.toml:1:"));
  EXPECT_THAT(WhyNot(std::string((1U << 20U) + 1, '#')), HasSubstr("at most 1 MiB"));
  std::string deep = "a";
  for (int dots = 0; dots < 200000; ++dots) deep += ".a";
  EXPECT_THAT(WhyNot("\n" + deep + " = 1\n"), HasSubstr("cuaudit.toml:2: expected at most 64 dots in a key"));
  const Result<std::vector<ProjectCase>> device = ReadProject("/dev/zero");
  EXPECT_THAT(device.status().message(), HasSubstr("expected a regular file"));
  const Result<std::vector<ProjectCase>> none = ReadProject(dir_.File("none"));
  EXPECT_THAT(none.status().message(), HasSubstr("no such file"));
}

TEST_F(Project, SelectsByNameAndByTag) {
  const std::vector<ProjectCase> cases =
      Read("[case.a]\ncommand = \"p\"\ntags = [\"x\", \"y\"]\n[case.b]\ncommand = \"p\"\ntags = [\"y\"]\n[case.c]\ncommand = \"p\"\n");
  const auto selected = [&](const std::vector<std::string>& names, const std::vector<std::string>& tags) {
    const Result<std::vector<bool>> answer = SelectCases(cases, names, tags);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    std::string text;
    for (std::size_t i = 0; answer.ok() && i < cases.size(); ++i) text += (*answer)[i] ? cases[i].name : "";
    return text;
  };
  EXPECT_EQ(selected({}, {}), "abc");
  EXPECT_EQ(selected({"c", "a"}, {}), "ac");
  EXPECT_EQ(selected({}, {"y"}), "ab");
  EXPECT_EQ(selected({}, {"x", "y"}), "ab");
  EXPECT_EQ(selected({"b", "c"}, {"y"}), "b");
  const auto why_not = [&](const std::vector<std::string>& names, const std::vector<std::string>& tags) {
    return SelectCases(cases, names, tags).status().message();
  };
  EXPECT_EQ(why_not({"d"}, {}), "d: no such case");
  EXPECT_EQ(why_not({}, {"z"}), "--tag: 'z': no case has it");
  EXPECT_THAT(why_not({"c"}, {"x"}), HasSubstr("no case has both"));
}

// Words of a project file: command lines without a shell, and the nearest of several words.

using testing::IsEmpty;
using testing::Optional;

TEST(SplitWords, SplitsAtSpacesOutsideOfQuotes) {
  EXPECT_THAT(SplitWords("  ./a  b\tc\nd "), Optional(ElementsAre("./a", "b", "c", "d")));
  EXPECT_THAT(SplitWords("a 'b c' \"d  e\" f\\ g"), Optional(ElementsAre("a", "b c", "d  e", "f g")));
  EXPECT_THAT(SplitWords("'' \"\""), Optional(ElementsAre("", "")));
  EXPECT_THAT(SplitWords("a'b'\"c\"d"), Optional(ElementsAre("abcd")));
  EXPECT_THAT(SplitWords(""), Optional(IsEmpty()));
}

TEST(SplitWords, ExpandsNothing) {
  EXPECT_THAT(SplitWords("$HOME * `x` ~ a;b {n}"), Optional(ElementsAre("$HOME", "*", "`x`", "~", "a;b", "{n}")));
  EXPECT_THAT(SplitWords(R"('\' "\n\"\\" \\)"), Optional(ElementsAre("\\", "\\n\"\\", "\\")));
}

TEST(SplitWords, RefusesWhatIsNotClosed) {
  for (const char* const line : {"'a", "\"a", "a\\", "'a\"", "\"a\\\""}) EXPECT_EQ(SplitWords(line), std::nullopt) << line;
}

TEST(Nearest, IsTheWordWithTheFewestChanges) {
  const std::vector<std::string> known = {"deadline_ms", "depth", "detect", "directory"};
  EXPECT_EQ(Nearest("dept", known), "depth");
  EXPECT_EQ(Nearest("deadline", known), "deadline_ms");
  EXPECT_EQ(Nearest("directroy", known), "directory");
  EXPECT_EQ(DidYouMean("detct", known), ", did you mean detect?");
}

TEST(Nearest, IsNothingWhereNoneIsNear) {
  const std::vector<std::string> known = {"depth", "how"};
  EXPECT_EQ(Nearest("command", known), "");
  EXPECT_EQ(DidYouMean("", known), "");
  EXPECT_EQ(Nearest(std::string(10000, 'd'), known), "") << "and takes no time";
  EXPECT_EQ(Nearest("depth", {}), "");
}

}  // namespace
}  // namespace cuaudit::harness::project_test
