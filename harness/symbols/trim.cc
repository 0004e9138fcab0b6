// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "harness/symbols/symbolizer.h"

namespace cuaudit::harness {
namespace {

// True for frames between the program and its driver call: the drop-in, cuaudit's libraries and the shared CUDA runtime. A genuine driver
// has the drop-in's name only when there is no drop-in, and then its frames are never the innermost ones of a record.
bool IsBelowTheProgram(const report::Frame& frame) {
  return frame.module == "libcuda.so.1" || frame.module.starts_with("libcuaudit_") || frame.module.starts_with("libcudart.so.");
}

// When a sanitizer owns the heap, its frames come first: in gcc's library or, with clang, in the program itself.
bool IsSanitizer(const report::Frame& frame) {
  static constexpr std::array<std::string_view, 3> kModules = {"libasan.so", "liblsan.so", "libtsan.so"};
  static constexpr std::array<std::string_view, 5> kFunctions = {"__sanitizer::", "__asan::", "__lsan::", "__tsan::", "__interceptor_"};
  const auto begins = [](std::string_view text) { return [text](std::string_view name) { return text.starts_with(name); }; };
  return std::any_of(kModules.begin(), kModules.end(), begins(frame.module)) ||
         std::any_of(kFunctions.begin(), kFunctions.end(), begins(frame.function));
}

bool ComesFrom(const report::Frame& frame, std::string_view path) { return frame.file.find(path) != std::string::npos; }

// cuaudit's CUDA runtime when it is linked statically. Its frames then lie in the program's own file.
bool IsOwnRuntime(const report::Frame& frame) {
  return frame.function.starts_with("cuaudit::cudart::") || frame.function.starts_with("cuaudit::driver::") ||
         ComesFrom(frame, "faults/cudart/") || ComesFrom(frame, "faults/driver/genuine_driver.cc") ||
         ComesFrom(frame, "generated/driver_methods.inc") || ComesFrom(frame, "generated/cudart_exports_");
}

// A function that the runtime exports, recognised by name because there is no debug information.
bool IsExport(const report::Frame& frame) {
  return frame.file.empty() && frame.function.find('(') == std::string::npos &&
         (frame.function.starts_with("cuda") || frame.function.starts_with("__cuda"));
}

}  // namespace

bool IsStartCode(const report::Frame& frame) {
  if (frame.module == kPythonModule) return false;  // whatever the program calls its functions
  static constexpr std::array<std::string_view, 3> kModules = {"libc.so", "libpthread.so", "ld-linux"};
  static constexpr std::array<std::string_view, 7> kFunctions = {
      "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "clone", "clone3"};
  return std::any_of(kModules.begin(), kModules.end(), [&](std::string_view name) { return frame.module.starts_with(name); }) ||
         std::find(kFunctions.begin(), kFunctions.end(), frame.function) != kFunctions.end();
}

std::vector<report::Frame> Trim(std::vector<report::Frame> frames) {
  std::size_t first = 0;
  std::size_t last = frames.size();
  const report::Frame* runtime = nullptr;
  for (; first < last; ++first) {
    const bool own = IsOwnRuntime(frames[first]);
    if (!own && !IsBelowTheProgram(frames[first]) && !IsSanitizer(frames[first])) break;
    if (own) runtime = &frames[first];
  }
  if (first < last && runtime != nullptr && runtime->module == frames[first].module && IsExport(frames[first])) ++first;
  while (first < last && IsStartCode(frames[last - 1])) --last;
  if (first == last && runtime != nullptr) {  // the runtime made the call by itself, for example at exit
    report::Frame whole;
    whole.module = runtime->module;
    whole.function = "cuaudit's CUDA runtime";
    return {whole};
  }
  if (first == last) return frames;
  const auto begin = frames.begin();
  return {begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last)};
}

}  // namespace cuaudit::harness
