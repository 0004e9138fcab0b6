// SPDX-License-Identifier: MIT
#include "faults/driver/find_driver.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace cuaudit::driver::find_driver_test
