// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "harness/symbols/symbolizer.h"

namespace cuaudit::harness {
namespace {

// The genuine driver is loaded under the same name only where no drop-in is; its frames are never the innermost ones of a record.
bool IsOwn(const report::Frame& frame) { return frame.module == "libcuda.so.1" || frame.module.starts_with("libcuaudit_"); }

bool IsStartCode(const report::Frame& frame) {
  static constexpr std::array<std::string_view, 3> kModules = {"libc.so", "libpthread.so", "ld-linux"};
  static constexpr std::array<std::string_view, 7> kFunctions = {
      "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "clone", "clone3"};
  return std::any_of(kModules.begin(), kModules.end(), [&](std::string_view name) { return frame.module.starts_with(name); }) ||
         std::find(kFunctions.begin(), kFunctions.end(), frame.function) != kFunctions.end();
}

}  // namespace

std::vector<report::Frame> Trim(std::vector<report::Frame> frames) {
  std::size_t first = 0;
  std::size_t last = frames.size();
  while (first < last && IsOwn(frames[first])) ++first;
  while (first < last && IsStartCode(frames[last - 1])) --last;
  if (first == last) return frames;
  const auto begin = frames.begin();
  return {begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last)};
}

}  // namespace cuaudit::harness
