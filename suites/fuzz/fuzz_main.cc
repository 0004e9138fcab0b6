// SPDX-License-Identifier: MIT
// What every fuzz target is linked with: what AddressSanitizer keeps and, where libFuzzer brings no main, one that runs the target over
// files and folders of them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// For programs of some ten thousand small runs a second: 256 MiB of freed blocks are page faults and little else.
extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier): the sanitizer's name

extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8:malloc_context_size=6";
}  // NOLINT(bugprone-reserved-identifier)

#ifndef CUAUDIT_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& place) {
  if (!std::filesystem::is_directory(place)) return {place};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(place)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stderr, nullptr, _IONBF, 0);
  std::size_t replayed = 0;
  for (int i = 1; i < count; ++i) {
    if (!std::filesystem::exists(arguments[i])) {
      std::fprintf(stderr, "%s: expected a file or a folder of inputs\n", arguments[i]);
      return 2;
    }
    for (const std::filesystem::path& path : FilesOf(arguments[i])) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      // In a block of exactly that size, so that a sanitizer sees a read beyond it.
      const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
      if (std::getenv("CUAUDIT_REPLAY_NAMES") != nullptr) std::fprintf(stderr, "%s\n", path.c_str());
      (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
      ++replayed;
    }
  }
  if (replayed == 0) {
    std::fprintf(stderr, "nothing was replayed: expected files or folders with inputs\n");
    return 2;
  }
  std::printf("%zu inputs replayed\n", replayed);
  return 0;
}
#endif
