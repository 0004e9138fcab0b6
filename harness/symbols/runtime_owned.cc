// SPDX-License-Identifier: MIT
#include "harness/symbols/runtime_owned.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "faults/driver/runtime_file.h"
#include "harness/symbols/symbolizer.h"

namespace cuaudit::harness {
namespace {

using driver::Kind;

// NVIDIA's own libraries have the runtime linked into them, without symbols.
bool IsRuntimeFrame(const report::Frame& frame) {
  static constexpr std::array<std::string_view, 11> kModules = {"libcublas",   "libcudnn",    "libcufft",    "libcurand",
                                                                "libcusolver", "libcusparse", "libnpp",      "libnvjpeg",
                                                                "libnccl",     "libnvrtc",    "libnvJitLink"};
  const auto begins = [](std::string_view text) { return [text](std::string_view name) { return text.starts_with(name); }; };
  return driver::RuntimeFileOf(frame.module).shared || std::any_of(kModules.begin(), kModules.end(), begins(frame.module)) ||
         frame.function.starts_with("__cudart") || frame.function.find("cuaudit::cudart::") != std::string::npos ||
         frame.file.find("faults/cudart/") != std::string::npos;
}

bool LoadsForTheProgram(const report::Frame& frame) {
  return frame.function.find("cudaLibraryLoad") != std::string::npos || frame.function.find("cudart::LibraryLoad") != std::string::npos;
}

// The drop-in, and what of the runtime calls the driver through a table.
bool IsBetween(const report::Frame& frame) {
  return frame.module.starts_with("libcuda.so") || frame.module.starts_with("libcuaudit") ||
         frame.function.find("cuaudit::faults::") != std::string::npos || frame.function.find("cuaudit::driver::") != std::string::npos ||
         frame.file.find("generated/driver_methods.inc") != std::string::npos || frame.file.find("faults/driver/") != std::string::npos;
}

}  // namespace

bool MayBeOfRuntime(Kind kind) { return kind == Kind::PrimaryContext || kind == Kind::Module || kind == Kind::Library; }

bool IsOfRuntime(Kind kind, const std::vector<report::Frame>& stack) {
  if (!MayBeOfRuntime(kind)) return false;
  const auto caller = std::find_if_not(stack.begin(), stack.end(), IsBetween);
  if (caller == stack.end() || !IsRuntimeFrame(*caller)) return false;
  if (kind == Kind::PrimaryContext) return true;
  // The function that the program called may be the runtime's outermost frame, with a name and no debug information.
  auto outer = std::find_if_not(caller, stack.end(), IsRuntimeFrame);
  if (outer != stack.end()) ++outer;
  return std::none_of(caller, outer, LoadsForTheProgram);
}

}  // namespace cuaudit::harness
