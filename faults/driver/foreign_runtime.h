// SPDX-License-Identifier: MIT
// foreign_runtime.h: recognises a CUDA runtime: a shared one by the name of its file, NVIDIA's by the export tables that it asks a driver
// for.
//
// Every CUDA runtime from 11.8 on requires these tables of cuGetExportTable (kTables in foreign_runtime.cc) to authenticate the driver.
// A simulated driver is refused, rightly. The question is never answered; the program is told instead.
#pragma once

#include <cstddef>
#include <string_view>

namespace cuaudit::driver {

// Recognises a shared CUDA runtime by the name of its file.
//
// NVIDIA's names are libcudart.so, libcudart.so.13 and libcudart.so.13.0.96. auditwheel, which puts libraries into Python wheels, renames
// its copy to libcudart-1a2b3c4d.so.13.0.96, with digits of a hash.

struct RuntimeFile {
  bool shared = false;  // false: another file
  int major = 0;        // version; 0: the name has none
};

// `path` may have directories in front.
constexpr RuntimeFile RuntimeFileOf(std::string_view path) noexcept {
  // Libraries without a C++ runtime use this, so nothing here may throw: no substr.
  std::string_view rest = path;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '/') rest = std::string_view(path.data() + i + 1, path.size() - i - 1);
  }
  const auto take = [&rest](std::string_view text) {
    if (rest.size() < text.size() || std::string_view(rest.data(), text.size()) != text) return false;
    rest.remove_prefix(text.size());
    return true;
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!take("libcudart")) return {};
  if (take("-")) {
    const std::size_t before = rest.size();
    while (!rest.empty() && (is_digit(rest.front()) || (rest.front() >= 'a' && rest.front() <= 'f'))) rest.remove_prefix(1);
    if (rest.size() == before) return {};
  }
  if (!take(".so")) return {};
  RuntimeFile file = {rest.empty() || rest.front() == '.', 0};
  if (!file.shared || rest.empty()) return file;
  constexpr int kMostDigits = 4;
  rest.remove_prefix(1);
  for (int digits = 0; digits < kMostDigits && !rest.empty() && is_digit(rest.front()); ++digits) {
    file.major = file.major * 10 + (rest.front() - '0');
    rest.remove_prefix(1);
  }
  return file;
}

// `id`: the 16 bytes passed to cuGetExportTable; may be null.
[[nodiscard]] bool IsRuntimeTable(const void* id) noexcept;

// Writes one sentence for a program whose `object` (a file) contains such a runtime; cuts the sentence at `capacity`. `own_directory`:
// the directory of cuaudit's own runtime; empty when there is none.
void ExplainForeignRuntime(const char* object, const char* own_directory, char* text, std::size_t capacity) noexcept;

}  // namespace cuaudit::driver
