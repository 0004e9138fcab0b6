// SPDX-License-Identifier: MIT
#include "faults/python/layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace cuaudit::python::layout_test {
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

}  // namespace
}  // namespace cuaudit::python::layout_test
