// SPDX-License-Identifier: MIT
// What reading the Python frames of a thread rests on: layouts of interpreters, tables of lines, text, memory that may not be there,
// symbols.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "faults/python/interpreter.h"
#include "faults/python/layout.h"
#include "faults/python/safe_memory.h"
#include "suites/support/pythons.h"

namespace cuaudit::python::frames_test {
namespace {

constexpr std::uint32_t kFinal = 0xf0;
constexpr std::uint32_t Version(std::uint32_t minor, std::uint32_t level = kFinal) { return 3U << 24 | minor << 16 | 2U << 8 | level; }

// The start of _PyRuntime as CPython 3.13.0 has it, up to the layout of objects.
struct Runtime {
  explicit Runtime(std::uint32_t version) {
    std::memcpy(word.data(), "xdebugpy", 8);
    word[1] = version;
    const std::array<std::uint64_t, 43> rest = {0,   0, 0, 632, 0, 0, 7264, 7344, 0,  0,  0, 0,   0,   0,   0,   0,  0, 0, 0, 8,   16, 72,
                                                152, 0, 0, 0,   0, 8, 0,    56,   72, 70, 0, 112, 120, 128, 136, 68, 0, 0, 0, 200, 16};
    std::copy(rest.begin(), rest.end(), word.begin() + 2);
    word[45] = 8;
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(word.data()); }
  std::array<std::uint64_t, 64> word{};
};

bool Reads(std::uint32_t version, const Runtime& runtime, Layout* layout = nullptr) {
  Layout none;
  SafeMemory memory;
  return ChooseLayout(version, runtime.address(), &memory, layout == nullptr ? &none : layout);
}

TEST(Layout, OfVersionsWithATableOfTheirOwnIsTakenFromIt) {
  const Runtime runtime(Version(13));
  Layout layout;
  ASSERT_TRUE(Reads(Version(13), runtime, &layout));
  EXPECT_EQ(layout.first_interpreter, 632U);
  EXPECT_EQ(layout.next_interpreter, 7264U);
  EXPECT_EQ(layout.first_thread, 7344U);
  EXPECT_EQ(layout.thread_id, 152U);
  EXPECT_EQ(layout.current, 72U);
  EXPECT_FALSE(layout.held);
  EXPECT_EQ(layout.instruction, 56U);
  EXPECT_EQ(layout.owner, 70U);
  EXPECT_EQ(layout.qualname, 128U);
  EXPECT_EQ(layout.instructions, 200U);
}

// The start of _PyRuntime as CPython 3.14.8 and 3.14.10 have it.
TEST(Layout, Of314IsTakenFromItsTable) {
  Runtime runtime(Version(14));
  const std::array<std::uint64_t, 50> rest = {0,   316616, 784, 808,  225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680,
                                              16,  7784,   0,   7800, 7792,   7992, 0,    832,  0,    8,    16,   72,   152,
                                              160, 232,    32,  88,   8,      0,    56,   80,   74,   64,   0,    216,  112,
                                              120, 128,    136, 68,   52,     96,   104,  208,  0,    16,   8};
  std::copy(rest.begin(), rest.end(), runtime.word.begin() + 2);
  Layout layout;
  ASSERT_TRUE(Reads(Version(14), runtime, &layout));
  EXPECT_EQ(layout.first_interpreter, 808U);
  EXPECT_EQ(layout.next_interpreter, 7272U);
  EXPECT_EQ(layout.first_thread, 7344U);
  EXPECT_EQ(layout.next_thread, 8U);
  EXPECT_EQ(layout.thread_interpreter, 16U);
  EXPECT_EQ(layout.thread_id, 152U);
  EXPECT_EQ(layout.current, 72U);
  EXPECT_FALSE(layout.held);
  EXPECT_EQ(layout.previous, 8U);
  EXPECT_EQ(layout.code, 0U);
  EXPECT_EQ(layout.instruction, 56U);
  EXPECT_EQ(layout.owner, 74U);
  EXPECT_EQ(layout.filename, 112U);
  EXPECT_EQ(layout.qualname, 128U);
  EXPECT_EQ(layout.lines, 136U);
  EXPECT_EQ(layout.first_line, 68U);
  EXPECT_EQ(layout.instructions, 208U);
  runtime.word[50] = 32;
  EXPECT_FALSE(Reads(Version(14), runtime)) << "objects with other headers";
}

TEST(Layout, OfOlderVersionsNeedsNone) {
  const Runtime runtime(0);
  EXPECT_TRUE(Reads(Version(11), runtime));
  EXPECT_TRUE(Reads(Version(12), runtime));
}

TEST(Layout, OfOtherVersionsIsUnknown) {
  for (const std::uint32_t minor : {0U, 10U, 15U, 99U}) {
    const Runtime runtime(Version(minor));
    EXPECT_FALSE(Reads(Version(minor), runtime)) << minor;
  }
  EXPECT_FALSE(Reads(0, Runtime(0)));
  EXPECT_FALSE(Reads(0x040b00f0, Runtime(0x040b00f0))) << "another major version";
  const std::uint32_t beta = Version(13, 0xb3);
  EXPECT_FALSE(Reads(beta, Runtime(beta)));
  const std::uint32_t candidate = Version(13, 0xc1);
  EXPECT_TRUE(Reads(candidate, Runtime(candidate)));
}

TEST(Layout, OfAnotherBuildIsUnknown) {
  const auto changed = [](std::size_t at, std::uint64_t value) {
    Runtime runtime(Version(13));
    runtime.word[at] = value;
    return Reads(Version(13), runtime);
  };
  EXPECT_TRUE(changed(60, 1)) << "beyond what is read";
  EXPECT_FALSE(changed(0, 0)) << "no table";
  EXPECT_FALSE(changed(1, Version(14))) << "of another version";
  EXPECT_FALSE(changed(2, 1)) << "free-threaded";
  EXPECT_FALSE(changed(44, 32)) << "objects with other headers";
  EXPECT_FALSE(changed(31, 100)) << "a frame that is longer than what is read of it";
  EXPECT_FALSE(changed(9, std::uint64_t{1} << 40)) << "no offset";
}

TEST(Layout, ThatCannotBeReadIsUnknown) {
  Layout layout;
  SafeMemory memory;
  EXPECT_FALSE(ChooseLayout(Version(13), 4096, &memory, &layout));
}

int LineIn(const std::vector<unsigned char>& table, int first_line, std::size_t offset) {
  SafeMemory memory;
  return LineAt(&memory, reinterpret_cast<std::uintptr_t>(table.data()), table.size(), first_line, offset);
}

TEST(LineTable, EveryKindOfEntry) {
  // Line 10 for one unit, without columns; 2 further down for two, with short columns; no location for one; 200 up and back, long.
  const std::vector<unsigned char> table = {0xe8, 0x00, 0xe1, 0x01, 0x05, 0xf8, 0xf0, 0x51, 0x06, 0x00, 0x01, 0x01, 0x80, 0x22};
  EXPECT_EQ(LineIn(table, 10, 0), 10);
  EXPECT_EQ(LineIn(table, 10, 2), 12);
  EXPECT_EQ(LineIn(table, 10, 5), 12);
  EXPECT_EQ(LineIn(table, 10, 6), 12) << "no location: the nearest before";
  EXPECT_EQ(LineIn(table, 300, 8), 302 - 200);
  EXPECT_EQ(LineIn(table, 300, 10), 302 - 200) << "the same line, other columns";
  EXPECT_EQ(LineIn(table, 300, 4096), 302 - 200) << "past the end";
}

TEST(LineTable, DamagedTablesHaveNoLine) {
  EXPECT_EQ(LineIn({}, 10, 0), 0);
  EXPECT_EQ(LineIn({0x68, 0x00}, 10, 0), 0) << "no entry begins so";
  EXPECT_EQ(LineIn({0xe8}, 10, 0), 0) << "cut";
  EXPECT_EQ(LineIn({0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}, 10, 0), 0) << "a number without an end";
  EXPECT_EQ(LineIn({0xe8, 0x29}, 10, 0), 0) << "above the first line of a file";
  SafeMemory memory;
  EXPECT_EQ(LineAt(&memory, 8, 100, 10, 0), 0) << "not readable";
}

class OfInterpreter : public ::testing::TestWithParam<int> {};

TEST_P(OfInterpreter, LinesOfTheStandardLibrary) {
  for (const std::string& candidate : testing::PythonCandidates(GetParam())) {
    std::FILE* const pipe = popen((candidate + " " CUAUDIT_DUMP_LINES " 2>/dev/null").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string text;
    char part[4096];
    for (std::size_t count = 0; (count = std::fread(part, 1, sizeof(part), pipe)) != 0;) text.append(part, count);
    if (pclose(pipe) != 0) continue;  // a script that starts other versions
    std::istringstream functions(text);
    std::size_t units = 0;
    for (std::string function; std::getline(functions, function);) {
      std::istringstream words(function);
      int first_line = 0;
      std::string hex;
      words >> first_line >> hex;
      std::vector<unsigned char> table;
      for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        table.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
      std::size_t offset = 0;
      for (int line = 0; words >> line; offset += 2, ++units) {
        ASSERT_EQ(LineIn(table, first_line, offset), line) << candidate << " at " << offset << " of " << function.substr(0, 200);
      }
    }
    EXPECT_GT(units, 10000U);
    return;
  }
  GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
}

INSTANTIATE_TEST_SUITE_P(CPython3, OfInterpreter, ::testing::Values(11, 12, 13, 14),
                         [](const auto& test) { return std::to_string(test.param); });

constexpr std::uintptr_t kType = 0x1234;

Layout LayoutOf312() {
  Layout layout{};
  SafeMemory memory;
  EXPECT_TRUE(ChooseLayout(0x030c01f0, 0, &memory, &layout));
  return layout;
}

// A str of CPython 3.12: count of references, type, length, hash, state; then the characters.
template <typename Character>
std::vector<char> Text(const std::vector<Character>& characters, bool ascii) {
  std::vector<char> bytes((ascii ? 40 : 56) + characters.size() * sizeof(Character));
  const std::uint64_t length = characters.size();
  const std::uint32_t state = static_cast<std::uint32_t>(sizeof(Character)) << 2 | 1U << 5 | (ascii ? 1U << 6 : 0U);
  std::memcpy(bytes.data() + 8, &kType, 8);
  std::memcpy(bytes.data() + 16, &length, 8);
  std::memcpy(bytes.data() + 32, &state, 4);
  if (!characters.empty()) std::memcpy(bytes.data() + (ascii ? 40 : 56), characters.data(), characters.size() * sizeof(Character));
  return bytes;
}

std::string Copied(const std::vector<char>& text, std::size_t room = 32) {
  std::vector<char> to(room, '#');
  SafeMemory memory;
  const bool done = CopyText(&memory, LayoutOf312(), kType, reinterpret_cast<std::uintptr_t>(text.data()), to.data(), room);
  return done ? std::string(to.data()) : "unread";
}

std::vector<char> Ascii(const std::string& text) { return Text(std::vector<char>(text.begin(), text.end()), true); }

TEST(Text, OfEveryWidthBecomesUtf8) {
  EXPECT_EQ(Copied(Ascii("Encoder.step")), "Encoder.step");
  EXPECT_EQ(Copied(Ascii("")), "");
  EXPECT_EQ(Copied(Text<unsigned char>({'a', 0xfc}, false)), "a\u00fc");
  EXPECT_EQ(Copied(Text<char16_t>({u'a', 0x3b1, 0x20ac}, false)), "a\u03b1\u20ac");
  EXPECT_EQ(Copied(Text<char32_t>({U'a', 0x1f600}, false)), "a\U0001f600");
}

TEST(Text, SurrogatesBecomeQuestionMarks) { EXPECT_EQ(Copied(Text<char16_t>({u'a', 0xdcff}, false)), "a?"); }

TEST(Text, KeepsItsEndWhereThereIsNotEnoughRoom) {
  EXPECT_EQ(Copied(Ascii("/a/long/way/to/file.py"), 8), "file.py");
  EXPECT_EQ(Copied(Text<char32_t>({U'a', 0x1f600, U'b'}, false), 9), "\U0001f600b");
}

TEST(Text, OfAnotherTypeIsNotRead) {
  std::vector<char> text = Ascii("a");
  text[8] = 0;
  EXPECT_EQ(Copied(text), "unread");
  text = Ascii("a");
  text[32] = 0;  // no compact text
  EXPECT_EQ(Copied(text), "unread");
  text = Ascii("a");
  text[22] = 1;  // longer than any memory
  EXPECT_EQ(Copied(text), "unread");
  char to[8];
  SafeMemory memory;
  EXPECT_FALSE(CopyText(&memory, LayoutOf312(), kType, 0, to, sizeof(to)));
}

constexpr std::size_t kPage = 4096;

class Pages : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const memory = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    start_ = reinterpret_cast<std::uintptr_t>(memory);
    std::memset(memory, 7, 3 * kPage);
    ASSERT_EQ(munmap(static_cast<char*>(memory) + kPage, kPage), 0);
  }
  void TearDown() override {
    munmap(reinterpret_cast<void*>(start_), kPage);
    munmap(reinterpret_cast<void*>(start_ + 2 * kPage), kPage);
  }
  std::uintptr_t start_ = 0;
};

TEST_F(Pages, ReadsWhatIsThere) {
  SafeMemory memory;
  unsigned char bytes[16] = {};
  EXPECT_TRUE(memory.Read(start_ + 100, bytes, sizeof(bytes)));
  EXPECT_EQ(bytes[15], 7);
  EXPECT_TRUE(memory.Read(start_ + kPage - 16, bytes, sizeof(bytes)));
  EXPECT_TRUE(memory.Read(start_ + 2 * kPage, bytes, sizeof(bytes)));
}

TEST_F(Pages, RefusesWhatIsNotThere) {
  SafeMemory memory;
  char bytes[2 * kPage + 1];
  std::uint64_t word = 0;
  EXPECT_FALSE(memory.Read(start_ + kPage, &word));
  EXPECT_FALSE(memory.Read(start_ + kPage - 4, &word)) << "its end is missing";
  EXPECT_FALSE(memory.Read(start_ + 2 * kPage - 4, &word)) << "its beginning is missing";
  EXPECT_FALSE(memory.Read(start_, bytes, 2 * kPage + 1)) << "the page between is missing";
  EXPECT_FALSE(memory.Read(0, &word));
  EXPECT_FALSE(memory.Read(~std::uintptr_t{0} - 3, &word)) << "it would go round";
  EXPECT_FALSE(memory.Read(std::uintptr_t{1} << 62, &word)) << "no address at all";
  EXPECT_TRUE(memory.Read(start_ + kPage, &word, 0));
}

TEST_F(Pages, RefusesWhatMayNotBeRead) {
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(start_), kPage, PROT_NONE), 0);
  SafeMemory memory;
  std::uint64_t word = 0;
  EXPECT_FALSE(memory.Read(start_, &word));
}

TEST_F(Pages, LeavesErrnoAndTheSignalMaskAlone) {
  sigset_t before;
  sigset_t after;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  errno = ERANGE;
  {
    SafeMemory memory;
    std::uint64_t word = 0;
    EXPECT_TRUE(memory.Read(start_, &word));
    EXPECT_FALSE(memory.Read(start_ + kPage, &word));
  }
  EXPECT_EQ(errno, ERANGE);
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (int signal = 1; signal < 65; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
}

struct Search {
  std::string file;  // of the object
  const char* name = nullptr;
  std::uintptr_t found = 0;
  bool seen = false;
};

int Look(dl_phdr_info* info, std::size_t, void* state) {
  Search& search = *static_cast<Search*>(state);
  const std::string path = info->dlpi_name;
  const LoadedSymbols symbols(*info);  // of every object, the vDSO among them
  const std::uintptr_t found = symbols.Find(search.name);
  if (path.substr(path.rfind('/') + 1) != search.file) return 0;
  search.seen = true;
  search.found = found;
  return 0;
}

Search Find(const std::string& file, const char* name) {
  Search search{file, name};
  dl_iterate_phdr(&Look, &search);
  return search;
}

TEST(LoadedSymbols, FindsWhatTheObjectDefines) {
  const Search search = Find("libc.so.6", "qsort");
  ASSERT_TRUE(search.seen);
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);  // a sanitizer has a qsort of its own
  ASSERT_NE(libc, nullptr);
  EXPECT_EQ(search.found, reinterpret_cast<std::uintptr_t>(dlsym(libc, "qsort")));
  dlclose(libc);
}

TEST(LoadedSymbols, FindsNothingElse) {
  for (const char* const name : {"_PyRuntime", "", "qsor", "qsort_"}) EXPECT_EQ(Find("libc.so.6", name).found, 0U) << name;
  const Search used = Find("libstdc++.so.6", "malloc");  // used there, and defined elsewhere
  EXPECT_EQ(used.found, 0U);
}

}  // namespace
}  // namespace cuaudit::python::frames_test
