// SPDX-License-Identifier: MIT
#include "harness/process/program.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstring>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::program_test {
namespace {

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

}  // namespace
}  // namespace cuaudit::harness::program_test
