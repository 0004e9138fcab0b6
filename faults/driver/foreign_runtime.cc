// SPDX-License-Identifier: MIT
#include "faults/driver/foreign_runtime.h"

#include <stdio.h>
#include <string.h>

namespace cuaudit::driver {
namespace {

constexpr unsigned char kTables[][16] = {
    {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
    {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66},
    {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc},
    {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93},
    {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2},
};

}  // namespace

bool IsRuntimeTable(const void* id) noexcept {
  if (id == nullptr) return false;
  for (const unsigned char(&table)[16] : kTables) {
    if (memcmp(id, table, sizeof(table)) == 0) return true;
  }
  return false;
}

void ExplainForeignRuntime(const char* object, const char* own_directory, char* text, std::size_t capacity) noexcept {
  const auto [shared, major] = RuntimeFileOf(object);
  const bool has_own = !shared || major == 12 || major == 13;
  if (has_own && own_directory[0] == '\0') {
    snprintf(
        text, capacity,
        "%s %s NVIDIA's CUDA runtime, which accepts NVIDIA's driver only, and cuaudit's own, which would stand in for it, was not built: "
        "'cuaudit doctor' says more; or run the program on a GPU with --driver=real",
        object, shared ? "is" : "contains");
    return;
  }
  if (!shared) {
    snprintf(text, capacity,
             "%s contains NVIDIA's CUDA runtime, linked statically, which accepts NVIDIA's driver only: link it again with 'nvcc -cudart "
             "shared', or with cuaudit's own by 'nvcc -L%s', or run it on a GPU with --driver=real",
             object, own_directory);
    return;
  }
  if (has_own) {
    snprintf(
        text, capacity,
        "%s is NVIDIA's CUDA runtime, which accepts NVIDIA's driver only; the program finds it by a search path of its own (RPATH or an "
        "absolute path): put cuaudit's in front with LD_PRELOAD=%s/libcudart.so.%d, or run it on a GPU with --driver=real",
        object, own_directory, major);
  } else {
    snprintf(text, capacity,
             "%s is NVIDIA's CUDA runtime, which accepts NVIDIA's driver only, and cuaudit's own stands in for libcudart.so.12 and "
             "libcudart.so.13: build the program with one of these, or run it on a GPU with --driver=real",
             object);
  }
}

}  // namespace cuaudit::driver
