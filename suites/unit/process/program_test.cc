// SPDX-License-Identifier: MIT
// What a command line starts: the program that is found, and how words are quoted for a shell.
#include "harness/process/program.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <vector>

#include "harness/process/files.h"
#include "harness/process/shell.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::program_test {
namespace {

// The program that is started: which file it is, and with which environment.

using testing::HasSubstr;

class ProgramTest : public testing::Test {
 protected:
  std::string MakeFile(const std::string& name, mode_t mode) {
    const std::string path = dir_.File(name);
    EXPECT_TRUE(WriteFile(path, "#!/bin/sh\n", Exit::Failure).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string WhyNot(const std::string& name) {
    const Result<Program> program = ResolveProgram(name);
    EXPECT_FALSE(program.ok());
    EXPECT_EQ(program.status().exit(), Exit::Usage);
    return program.status().message();
  }
  TemporaryDir dir_;
};

TEST_F(ProgramTest, TakesANameWithASlashAsItIs) {
  const std::string path = MakeFile("tool", 0755);
  const Result<Program> program = ResolveProgram(path);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->path, path);
  EXPECT_FALSE(program->is_static);
}

TEST_F(ProgramTest, SaysWhyAFileIsNoProgram) {
  EXPECT_THAT(WhyNot(dir_.File("none")), HasSubstr(": not found"));
  EXPECT_THAT(WhyNot(dir_.path()), HasSubstr(": is a directory"));
  EXPECT_THAT(WhyNot(MakeFile("data", 0644)), HasSubstr(": not executable"));
  EXPECT_THAT(WhyNot(MakeFile("file", 0755) + "/below"), HasSubstr(": not found"));
  EXPECT_THAT(WhyNot(""), HasSubstr("empty"));
}

TEST_F(ProgramTest, SearchesPathAsTheShellDoes) {
  const std::string before = getenv("PATH");
  const TemporaryDir second;
  MakeFile("cuaudit-test-tool", 0644);
  ASSERT_EQ(setenv("PATH", (dir_.path() + ":" + second.path()).c_str(), 1), 0);
  EXPECT_THAT(WhyNot("cuaudit-test-tool"), HasSubstr("not executable"));
  ASSERT_TRUE(WriteFile(second.File("cuaudit-test-tool"), "#!/bin/sh\n", Exit::Failure).ok());
  ASSERT_EQ(chmod(second.File("cuaudit-test-tool").c_str(), 0755), 0);
  const Result<Program> program = ResolveProgram("cuaudit-test-tool");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->path, second.File("cuaudit-test-tool"));
  EXPECT_THAT(WhyNot("cuaudit-no-such-tool"), HasSubstr("not found"));
  setenv("PATH", before.c_str(), 1);
}

TEST_F(ProgramTest, ReadsADynamicProgramAsNotStatic) {
  const Result<Program> self = ResolveProgram("/proc/self/exe");
  ASSERT_TRUE(self.ok()) << self.status().message();
  EXPECT_FALSE(self->is_static);
}

// A 64-bit ELF file of the least that names its libraries: one loaded segment, which is the whole file, and a dynamic section.
class TinyElf {
 public:
  explicit TinyElf(const std::vector<std::string>& needed) {
    std::string strings(1, '\0');
    std::vector<Elf64_Dyn> dynamic(1);
    dynamic[0].d_tag = DT_STRTAB;
    for (const std::string& name : needed) {
      Elf64_Dyn row = {};
      row.d_tag = DT_NEEDED;
      row.d_un.d_val = strings.size();
      dynamic.push_back(row);
      strings += name + '\0';
    }
    dynamic.emplace_back();
    constexpr std::size_t kDynamicAt = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
    const std::size_t strings_at = kDynamicAt + dynamic.size() * sizeof(Elf64_Dyn);
    dynamic[0].d_un.d_val = kBase + strings_at;
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof(header);
    header.e_phnum = 2;
    Elf64_Phdr segments[2] = {};
    segments[0].p_type = PT_LOAD;
    segments[0].p_vaddr = kBase;
    segments[0].p_filesz = strings_at + strings.size();
    segments[1].p_type = PT_DYNAMIC;
    segments[1].p_offset = kDynamicAt;
    segments[1].p_filesz = dynamic.size() * sizeof(Elf64_Dyn);
    Append(&header, sizeof(header));
    Append(segments, sizeof(segments));
    Append(dynamic.data(), dynamic.size() * sizeof(Elf64_Dyn));
    bytes_ += strings;
  }
  Program Read() const {
    Program program;
    ReadElf(bytes_, &program);
    return program;
  }

 private:
  static constexpr std::uint64_t kBase = 0x400000;
  void Append(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string bytes_;
};

TEST_F(ProgramTest, KnowsTheRuntimeAndTheSanitizerThatAProgramNeeds) {
  const Program program = TinyElf({"libcudart.so.13", "libasan.so.8", "libc.so.6"}).Read();
  EXPECT_EQ(program.cudart, "libcudart.so.13");
  EXPECT_EQ(program.asan_library, "libasan.so.8");
  EXPECT_TRUE(program.is_static) << "no interpreter is named";
  EXPECT_EQ(TinyElf({"libcudart-1a2b3c4d.so.13.0.96"}).Read().cudart, "libcudart-1a2b3c4d.so.13.0.96");
  const Program plain = TinyElf({"libc.so.6", "libcudartist.so"}).Read();
  EXPECT_EQ(plain.cudart, "");
  EXPECT_EQ(plain.asan_library, "");
}

TEST_F(ProgramTest, SurvivesAnElfCutAtAnyPlace) {
  Result<std::string> bytes = ReadFile("/proc/self/exe");
  ASSERT_TRUE(bytes.ok());
  for (std::size_t size = 0; size < 4096; size += 7) {
    Program program;
    ReadElf(std::string_view(*bytes).substr(0, size), &program);
    EXPECT_EQ(program.asan_library, "") << size;
  }
}

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

LaunchOptions Sample() {
  LaunchOptions options;
  options.drop_in_dir = "/opt/cuaudit/lib";
  return options;
}

TEST(Environment, OrdersNameJournalDriverScopeStacksAndFaults) {
  LaunchOptions options = Sample();
  const std::vector<std::string> faults = {"cuInit#1=INVALID_VALUE,refuse", "cuMemAlloc#2=OUT_OF_MEMORY,after"};
  EXPECT_EQ(OptionsText(options, "/tmp/j", faults),
            "journal=/tmp/j;driver=sim;scope=pinned;host=none;fault=cuInit#1=INVALID_VALUE,refuse;fault=cuMemAlloc#2=OUT_OF_MEMORY,after");
  options.world = "schedule=fifo;devices=2";
  EXPECT_EQ(OptionsText(options, "/tmp/j", {}), "journal=/tmp/j;driver=sim;scope=pinned;host=none;schedule=fifo;devices=2");
  options.world.clear();
  options.driver = DriverKind::Genuine;
  options.genuine_driver = "/usr/lib/libcuda.so.1";
  options.pinned_scope = false;
  options.stack_depth = 0;
  EXPECT_EQ(OptionsText(options, "/tmp/j", {}), "journal=/tmp/j;driver=real;real_driver=/usr/lib/libcuda.so.1;scope=process;host=none");
}

TEST(Environment, PutsTheDropInBeforeTheUsersOwn) {
  const std::vector<std::string> base = {"HOME=/h", "LD_LIBRARY_PATH=/a:/b", "LD_PRELOAD=/x.so"};
  EXPECT_THAT(MakeEnvironment(Sample(), "", "journal=/j", base),
              ElementsAre("HOME=/h", "LD_LIBRARY_PATH=/opt/cuaudit/lib:/a:/b", "LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1:/x.so",
                          "CUAUDIT_OPTIONS=journal=/j"));
}

TEST(Environment, LeavesNoEmptyEntries) {
  EXPECT_THAT(MakeEnvironment(Sample(), "", "o", std::vector<std::string>{"LD_PRELOAD=", "CUAUDIT_OPTIONS="}),
              ElementsAre("LD_LIBRARY_PATH=/opt/cuaudit/lib", "LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1", "CUAUDIT_OPTIONS=o"));
}

TEST(Environment, OwnRuntimeServesTheSimulatedDriverOnly) {
  LaunchOptions options = Sample();
  options.cudart_dir = "/opt/cuaudit/lib/cudart";
  const std::vector<std::string> base = {"LD_LIBRARY_PATH=/a"};
  EXPECT_THAT(MakeEnvironment(options, "", "", base), Contains("LD_LIBRARY_PATH=/opt/cuaudit/lib:/opt/cuaudit/lib/cudart:/a"));
  options.driver = DriverKind::Genuine;
  EXPECT_THAT(MakeEnvironment(options, "", "", base), Contains("LD_LIBRARY_PATH=/opt/cuaudit/lib:/a"));
}

TEST(Environment, PreloadsTheOwnRuntimeThatTheProgramNames) {
  LaunchOptions options = Sample();
  options.cudart = "/opt/cuaudit/lib/cudart/libcudart.so.13";
  EXPECT_THAT(MakeEnvironment(options, "", "", {}),
              Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1:/opt/cuaudit/lib/cudart/libcudart.so.13"));
  options.driver = DriverKind::Genuine;
  EXPECT_THAT(MakeEnvironment(options, "", "", {}), Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuda.so.1"));
}

TEST(Environment, PreloadsTheHostProbesThatWereAskedFor) {
  LaunchOptions options = Sample();
  EXPECT_THAT(MakeEnvironment(options, "", "", {}), Not(Contains(HasSubstr("libcuaudit_host"))));
  options.host_probes = HostProbes::Heap;
  EXPECT_THAT(MakeEnvironment(options, "", "", {}),
              Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuaudit_host.so:/opt/cuaudit/lib/libcuda.so.1"));
  EXPECT_THAT(OptionsText(options, "/j", {}), HasSubstr(";host=heap"));
  options.host_probes = HostProbes::Basic;
  EXPECT_THAT(MakeEnvironment(options, "", "", {}),
              Contains("LD_PRELOAD=/opt/cuaudit/lib/libcuaudit_host_basic.so:/opt/cuaudit/lib/libcuda.so.1"));
  EXPECT_THAT(OptionsText(options, "/j", {}), HasSubstr(";host=basic"));
}

TEST(Environment, PutsAddressSanitizerFirst) {
  EXPECT_THAT(MakeEnvironment(Sample(), "libasan.so.8", "", {}),
              Contains(StartsWith("LD_PRELOAD=libasan.so.8:/opt/cuaudit/lib/libcuda.so.1")));
}

TEST(Environment, RefusesAPathThatTheLoaderWouldSplit) {
  EXPECT_TRUE(CheckDropInPath("/opt/cuaudit/lib").ok());
  for (const char* const path : {"/opt/cu audit/lib", "/opt/cu:audit", "/opt/cu;audit"}) {
    const Status status = CheckDropInPath(path);
    EXPECT_EQ(status.exit(), Exit::Environment) << path;
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(Environment, RefusesOrdersOfTheUsersOwn) {
  ASSERT_EQ(setenv("CUAUDIT_OPTIONS", "", 1), 0);
  EXPECT_TRUE(CurrentEnvironment().ok());
  ASSERT_EQ(setenv("CUAUDIT_OPTIONS", "driver=sim", 1), 0);
  EXPECT_EQ(CurrentEnvironment().status().exit(), Exit::Usage);
  unsetenv("CUAUDIT_OPTIONS");
}

// Words and variables written for shells, read back by these shells.

// What a shell makes of the words, each ended by a NUL.
std::string ThroughShell(const std::string& line) {
  const std::string command = "exec bash -c " + ShellQuote("printf '%s\\0' " + line);
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(ShellQuote, LeavesPlainWordsAsTheyAre) {
  for (const char* const word : {"prog", "./a/b.sh", "--driver=sim", "cuMemAlloc", "1,10"}) EXPECT_EQ(ShellQuote(word), word);
}

TEST(ShellQuote, QuotesWhatTheShellWouldTakeApart) {
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("a b"), "'a b'");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote("cuInit#1=X,refuse"), "'cuInit#1=X,refuse'");
  EXPECT_EQ(ShellQuote("{n}"), "'{n}'");
  EXPECT_EQ(ShellQuote("~"), "'~'");
}

TEST(ShellQuote, KeepsControlCharactersOnOneLine) { EXPECT_EQ(ShellQuote("a\nb'\\"), "$'a\\012b\\'\\\\'"); }

std::vector<std::string> WordsOfEverySort() {
  return {"plain",
          "",
          " ",
          "a b",
          "$HOME",
          "`id`",
          "it's",
          "\"",
          "\\",
          "a\nb",
          "\t'\\",
          "*",
          "ünïcode",
          "\x01"
          "7"};
}

TEST(ShellQuote, ShellReadsEveryWordBack) {
  const std::vector<std::string> words = WordsOfEverySort();
  std::string expected;
  for (const std::string& word : words) expected += word + '\0';
  EXPECT_EQ(ThroughShell(ShellJoin(words)), expected);
}

TEST(ShellSplit, GivesBackTheWordsOfShellJoin) {
  std::vector<std::string> words = WordsOfEverySort();
  words.emplace_back("\xff");
  EXPECT_EQ(ShellSplit(ShellJoin(words)), words);
  EXPECT_EQ(ShellSplit(""), std::vector<std::string>());
  EXPECT_EQ(ShellSplit("  a  b "), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ShellSplit(std::string(10000, 'x')), std::vector<std::string>{std::string(10000, 'x')});
}

TEST(ShellSplit, RefusesWhatAShellWouldDoMoreWith) {
  for (const char* const line : {"a 'b", "a $'b", "$'\\", "$'\\01'", "$'\\000'", "$'\\777'", "$'\\x41'", "a; b", "a | b", "a > b", "$(a)",
                                 "`a`", "a & b", "\"a\"", "*", "~", "a \\", "a\nb"})
    EXPECT_FALSE(ShellSplit(line).has_value()) << line;
}

using Strings = std::vector<std::string>;

const Strings kHostile = {
    "",         " a  b ", "it's", "''", "\"$HOME\"", "`id` $(id) ${x}", "\\", "\\'", "a\nb\n\n", "#~*?[x]{a,b};&|<>()", "\xff\x01\x7f",
    "\xc3\xbc", "\\n\\'"};

// What the POSIX shell `sh` has in the variable after the lines.
std::string ValueAfter(const std::string& lines) {
  std::string quoted = "'";
  for (const char c : lines + "printf '%s|' \"$VALUE\"") quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  FILE* const pipe = popen(("exec sh -c " + quoted + "'").c_str(), "r");
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << lines;
  return text;
}

TEST(ShellLines, AShellReadsEveryValueBack) {
  for (const std::string& value : kHostile) {
    const std::vector<Variable> variables = {{"VALUE", value}};
    EXPECT_EQ(ValueAfter(ShellLines(Shell::Posix, variables)), value + "|");
  }
}

TEST(ShellLines, RemovesAVariableWithoutAValue) {
  const std::vector<Variable> variables = {{"VALUE", "x"}, {"VALUE", std::nullopt}};
  EXPECT_EQ(ShellLines(Shell::Posix, variables), "export VALUE='x'\nunset VALUE\n");
  EXPECT_EQ(ValueAfter(ShellLines(Shell::Posix, variables)), "|");
  EXPECT_EQ(ShellLines(Shell::Fish, variables), "set -gx VALUE 'x'\nset -e VALUE\n");
}

TEST(ShellLines, FishReadsBackslashesInsideOfQuotes) {
  const std::vector<Variable> variables = {{"VALUE", "it's \\n $HOME\n"}};
  EXPECT_EQ(ShellLines(Shell::Fish, variables), "set -gx VALUE 'it\\'s \\\\n $HOME\n'\n");
}

TEST(WithoutEntries, KeepsTheOthersWithTheirSeparators) {
  const Strings ours = {"/our", "/own"};
  EXPECT_EQ(WithoutEntries("", ours, ":;"), "");
  EXPECT_EQ(WithoutEntries("/a;/b::/c:", ours, ":;"), "/a;/b::/c:");
  EXPECT_EQ(WithoutEntries("/our:/own:/a;/b", ours, ":;"), "/a;/b");
  EXPECT_EQ(WithoutEntries("/a;/our:/b", ours, ":;"), "/a:/b");
  EXPECT_EQ(WithoutEntries("/our", ours, ":;"), "");
  EXPECT_EQ(WithoutEntries("/ours:/a/our:our", ours, ":;"), "/ours:/a/our:our");
  EXPECT_EQ(WithoutEntries("/a b;/our", ours, ": "), "/a b;/our");
}

}  // namespace
}  // namespace cuaudit::harness::program_test
