// SPDX-License-Identifier: MIT
// Which libcuda a process has, and whose CUDA runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "faults/driver/foreign_runtime.h"
#include "faults/driver/genuine_driver.h"

namespace cuaudit::driver::find_driver_test {
namespace {

#if defined(__x86_64__)
constexpr std::int32_t kThisArchitecture = 0x0303;
#else
constexpr std::int32_t kThisArchitecture = 0x0a03;
#endif

struct Row {
  std::int32_t flags;
  std::string name;
  std::string path;
};

// A loader cache in the 1.1 format, `prefix` bytes of an older table in front.
std::vector<char> Cache(const std::vector<Row>& rows, std::size_t prefix = 0) {
  std::vector<char> bytes(prefix, '\x7f');
  std::string strings;
  const std::uint32_t strings_at = static_cast<std::uint32_t>(48 + 24 * rows.size());
  const auto put = [&](const void* data, std::size_t size) {
    bytes.insert(bytes.end(), static_cast<const char*>(data), static_cast<const char*>(data) + size);
  };
  put("glibc-ld.so.cache1.1", 20);
  const std::uint32_t head[7] = {static_cast<std::uint32_t>(rows.size()), 0, 0, 0, 0, 0, 0};
  put(head, sizeof(head));
  for (const Row& row : rows) {
    const std::uint32_t name = strings_at + static_cast<std::uint32_t>(strings.size());
    strings += row.name + '\0';
    const std::uint32_t path = strings_at + static_cast<std::uint32_t>(strings.size());
    strings += row.path + '\0';
    const std::uint32_t fields[3] = {name, path, 0};
    const std::uint64_t hwcap = 0;
    put(&row.flags, 4);
    put(fields, sizeof(fields));
    put(&hwcap, 8);
  }
  put(strings.data(), strings.size());
  return bytes;
}

const std::vector<Row> kRows = {{0x0003, "libcuda.so.1", "/lib32/libcuda.so.1"},
                                {kThisArchitecture, "libc.so.6", "/lib/libc.so.6"},
                                {kThisArchitecture, "libcuda.so.1", "/opt/driver/libcuda.so.1"}};

TEST(LoaderCache, FindsTheNameForThisArchitecture) {
  const std::vector<char> cache = Cache(kRows);
  const char* path = FindInLoaderCache(cache.data(), cache.size(), "libcuda.so.1");
  ASSERT_NE(path, nullptr);
  EXPECT_STREQ(path, "/opt/driver/libcuda.so.1");
  EXPECT_EQ(FindInLoaderCache(cache.data(), cache.size(), "libcuda.so"), nullptr);
}

TEST(LoaderCache, SkipsAnOlderTableInFront) {
  const std::vector<char> cache = Cache(kRows, 64);
  EXPECT_STREQ(FindInLoaderCache(cache.data(), cache.size(), "libcuda.so.1"), "/opt/driver/libcuda.so.1");
}

TEST(LoaderCache, CutAtAnyByteIsNeverReadPastItsEnd) {
  const std::vector<char> cache = Cache(kRows);
  for (std::size_t size = 0; size < cache.size(); ++size) {
    const std::vector<char> cut(cache.begin(), cache.begin() + static_cast<std::ptrdiff_t>(size));  // exact heap block: ASan guards its end
    EXPECT_EQ(FindInLoaderCache(cut.data(), cut.size(), "libcuda.so.1"), nullptr) << size;
  }
}

TEST(LoaderCache, RefusesACountLargerThanTheFile) {
  std::vector<char> cache = Cache(kRows);
  const std::uint32_t huge = 0xffffffffU;
  std::memcpy(cache.data() + 20, &huge, sizeof(huge));
  EXPECT_EQ(FindInLoaderCache(cache.data(), cache.size(), "libcuda.so.1"), nullptr);
}

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Explain(const char* object, const char* own_directory = "/opt/lib/cudart") {
  char text[1024];
  ExplainForeignRuntime(object, own_directory, text, sizeof(text));
  return text;
}

TEST(ForeignRuntime, IsKnownByTheTablesItRequires) {
  const unsigned char required[16] = {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2};
  EXPECT_TRUE(IsRuntimeTable(required));
  unsigned char other[16] = {};
  EXPECT_FALSE(IsRuntimeTable(other));
  EXPECT_FALSE(IsRuntimeTable(nullptr));
}

TEST(ForeignRuntime, AStaticOneIsToBeLinkedAgain) {
  EXPECT_THAT(Explain("/home/me/program"), AllOf(HasSubstr("/home/me/program"), HasSubstr("-cudart shared"), HasSubstr("-L/opt/lib/cudart"),
                                                 HasSubstr("--driver=real"), Not(HasSubstr("LD_PRELOAD"))));
}

TEST(ForeignRuntime, ASharedOneFoundByRPathIsToBePreceded) {
  EXPECT_THAT(Explain("/usr/local/cuda/lib64/libcudart.so.12"),
              AllOf(HasSubstr("LD_PRELOAD=/opt/lib/cudart/libcudart.so.12"), Not(HasSubstr("statically"))));
  EXPECT_THAT(Explain("libcudart.so.13.0.96"), HasSubstr("LD_PRELOAD=/opt/lib/cudart/libcudart.so.13,"));
}

TEST(ForeignRuntime, ACopyInAPythonWheelIsAShared) {
  EXPECT_THAT(Explain("/venv/wheel.libs/libcudart-1a2b3c4d.so.13.0.96"),
              AllOf(HasSubstr("LD_PRELOAD=/opt/lib/cudart/libcudart.so.13,"), Not(HasSubstr("statically"))));
}

TEST(RuntimeFile, IsKnownByNvidiasNamesAndByThoseInWheels) {
  for (const char* const path : {"libcudart.so", "libcudart.so.13", "/usr/local/cuda/lib64/libcudart.so.12.8.90",
                                 "libcudart-1a2b3c4d.so.13.0.96", "/venv/wheel.libs/libcudart-a7b20f20.so.11.0", "libcudart-0.so"}) {
    EXPECT_TRUE(RuntimeFileOf(path).shared) << path;
  }
  for (const char* const path : {"", "libcudart", "libcudartist.so", "libcudart_static.a", "libcudart-.so.13", "libcudart-mine.so.13",
                                 "libcudart.sock", "libcudart.so.13/prog", "xlibcudart.so.13", "libcuda.so.1", "libcudart-1a2b3c4d"}) {
    EXPECT_FALSE(RuntimeFileOf(path).shared) << path;
  }
}

TEST(RuntimeFile, HasItsMajorVersion) {
  EXPECT_EQ(RuntimeFileOf("libcudart.so.13").major, 13);
  EXPECT_EQ(RuntimeFileOf("/x/libcudart-12345678.so.12.8.90").major, 12);
  EXPECT_EQ(RuntimeFileOf("libcudart.so").major, 0);
  EXPECT_EQ(RuntimeFileOf("libcudart.so.99999999999999999999").major, 9999);
}

TEST(ForeignRuntime, AnOlderOneHasNoStandIn) {
  EXPECT_THAT(Explain("/usr/lib/libcudart.so.11.0"), AllOf(HasSubstr("libcudart.so.12 and libcudart.so.13"), Not(HasSubstr("LD_PRELOAD"))));
}

TEST(ForeignRuntime, WithoutOneOfOurOwnNoPathIsNamed) {
  for (const char* const object : {"/home/me/program", "/usr/local/cuda/lib64/libcudart.so.12"}) {
    EXPECT_THAT(Explain(object, ""), AllOf(HasSubstr("was not built"), HasSubstr("cuaudit doctor"), HasSubstr("--driver=real"),
                                           Not(HasSubstr("LD_PRELOAD")), Not(HasSubstr("-L"))));
  }
}

TEST(ForeignRuntime, ALongPathIsCut) {
  char text[32];
  ExplainForeignRuntime(std::string(500, 'x').c_str(), "/d", text, sizeof(text));
  EXPECT_EQ(std::string(text).size(), sizeof(text) - 1);
}

}  // namespace
}  // namespace cuaudit::driver::find_driver_test
