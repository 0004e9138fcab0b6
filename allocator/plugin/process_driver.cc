// SPDX-License-Identifier: MIT
#include "allocator/plugin/process_driver.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <memory>

namespace cuaudit::alloc {

const char* OpenProcessDriver(driver::GenuineDriver* driver) noexcept {
  if (driver->handle != nullptr) return nullptr;
  void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "libcuda.so.1 is not found: no CUDA driver here";
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return "the dynamic loader does not say where libcuda.so.1 lies";
  const std::unique_ptr<char, decltype(&std::free)> path(realpath(map->l_name, nullptr), std::free);
  if (path == nullptr) return "libcuda.so.1 lies nowhere";
  return driver::OpenGenuineDriver(path.get(), driver);
}

}  // namespace cuaudit::alloc
