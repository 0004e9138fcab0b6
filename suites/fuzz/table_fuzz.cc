// SPDX-License-Identifier: MIT
// Tables that the drop-in library reads inside somebody's process. First byte: the loader's cache (/etc/ld.so.cache) as it is; behind a
// header that fits, with few entries; the file that gives each cycle its faults, with a header that fits or as it is.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/driver/genuine_driver.h"
#include "faults/journal/layout.h"
#include "faults/plan/fork_file.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

constexpr const char* kName = "libcuda.so.1";

void TryCache(std::string_view text) {
  // In a block of its own, so that a sanitizer sees a read beyond it.
  const std::unique_ptr<char[]> bytes(new char[text.size() + 1]);
  char* const begin = bytes.get() + 1;  // no alignment is promised
  std::memcpy(begin, text.data(), text.size());
  const char* const path = driver::FindInLoaderCache(begin, text.size(), kName);
  if (path == nullptr) return;
  const auto at = static_cast<std::size_t>(path - begin);
  Require(path >= begin && at < text.size(), "the path lies in the cache");
  Require(strnlen(path, text.size() - at) < text.size() - at, "and ends in it");
}

// The words of a cache are four bytes; the strings behind its entries hold the name and a path.
void TryEntries(FuzzInput input) {
  const std::uint32_t entries = input.Below(6);
  std::string file("glibc-ld.so.cache1.1");
  const auto word = [&file](std::uint32_t value) { file.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  word(input.Below(8) == 0 ? input.Number() : entries);
  for (int i = 0; i < 6; ++i) word(input.Below(16) == 0 ? input.Number() : 0);
  const std::uint32_t strings = 48 + entries * 24;
  for (std::uint32_t i = 0; i < entries; ++i) {
    word(input.Below(4) == 0 ? input.Number() : 0x0303);
    for (const std::uint32_t usual : {strings, strings + 13U}) word(input.Below(4) == 0 ? input.Byte() : usual);
    word(0);
    word(0);
    word(0);
  }
  file.append(kName, 13).append(input.Rest());
  TryCache(file);
}

void TryCycles(FuzzInput input, bool fits) {
  std::string file;
  if (fits) {
    const std::uint32_t rows = input.Below(4);
    faults::CycleHeader header{};
    std::memcpy(header.magic, faults::kCycleMagic, sizeof(header.magic));
    header.table_digest = driver::TableDigest();
    header.rows = rows;
    if (input.Below(4) == 0) {
      header.rows = std::uint64_t{input.Number()} << 32U;
      header.rows |= input.Number();
    }
    header.file_bytes = sizeof(header) + header.rows * sizeof(faults::CycleRow);
    file.append(reinterpret_cast<const char*>(&header), sizeof(header));
    file.append(input.Rest().substr(0, rows * sizeof(faults::CycleRow)));
    file.resize(sizeof(header) + rows * sizeof(faults::CycleRow));
  } else {
    file = input.Rest();
  }
  const std::size_t words = (file.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  const std::unique_ptr<std::uint64_t[]> bytes(new std::uint64_t[words]);
  std::memcpy(bytes.get(), file.data(), file.size());
  faults::CyclePlans plans;
  const char* const wrong = plans.Adopt(bytes.get(), file.size());
  Require((wrong == nullptr) == plans.is_open(), "a file, or a reason why there is none");
  for (std::uint32_t cycle = 0; wrong == nullptr && cycle < 4; ++cycle) {
    Require(plans.Of(cycle).size() <= faults::kMaxFaults, "a plan has room for its faults");
  }
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  switch (input.Below(4)) {
    case 0:
      cuaudit::fuzz::TryCache(input.Rest());
      break;
    case 1:
      cuaudit::fuzz::TryEntries(input);
      break;
    case 2:
      cuaudit::fuzz::TryCycles(input, false);
      break;
    default:
      cuaudit::fuzz::TryCycles(input, true);
  }
  return 0;
}
