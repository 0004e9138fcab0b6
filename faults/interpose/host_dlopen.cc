// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/interpose/host_dlopen.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>

namespace cuaudit::faults {
namespace {

using Dlopen = void* (*)(const char*, int);
using Dlclose = int (*)(void*);

Dlopen NextDlopen() noexcept {
  static Dlopen next = nullptr;
  if (next == nullptr) next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  return next;
}

// The search path that the object at `caller` carries, or null.
const char* SearchPath(const link_map& map) noexcept {
  const char* strings = nullptr;
  ElfW(Xword) run_path = 0;
  ElfW(Xword) r_path = 0;
  for (const ElfW(Dyn)* row = map.l_ld; row->d_tag != DT_NULL; ++row) {
    if (row->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(row->d_un.d_ptr);
    if (row->d_tag == DT_RUNPATH) run_path = row->d_un.d_val;
    if (row->d_tag == DT_RPATH) r_path = row->d_un.d_val;
  }
  const ElfW(Xword) offset = run_path != 0 ? run_path : r_path;
  return strings == nullptr || offset == 0 ? nullptr : strings + offset;
}

// "$ORIGIN" and "${ORIGIN}" stand for the object's directory. False when the result does not fit.
bool Expand(const char* directory, std::size_t length, const char* origin, const char* file, char* out, std::size_t capacity) noexcept {
  std::size_t used = 0;
  const auto put = [&](const char* text, std::size_t bytes) {
    if (used + bytes >= capacity) return false;
    memcpy(out + used, text, bytes);
    used += bytes;
    return true;
  };
  const char* slash = strrchr(origin, '/');
  const std::size_t origin_length = slash == nullptr ? 0 : static_cast<std::size_t>(slash - origin);
  for (std::size_t i = 0; i < length;) {
    const std::size_t token = strncmp(directory + i, "${ORIGIN}", 9) == 0 ? 9 : strncmp(directory + i, "$ORIGIN", 7) == 0 ? 7 : 0;
    if (!(token != 0 ? put(origin, origin_length) : put(directory + i, 1))) return false;
    i += token != 0 ? token : 1;
  }
  return put("/", 1) && put(file, strlen(file) + 1);
}

}  // namespace

void* OpenAsCaller(const char* file, int flags, const void* caller) noexcept {
  const Dlopen next = NextDlopen();
  Dl_info info;
  void* found = nullptr;
  if (file != nullptr && file[0] != '\0' && strchr(file, '/') == nullptr && dladdr1(caller, &info, &found, RTLD_DL_LINKMAP) != 0 &&
      found != nullptr) {
    const link_map& map = *static_cast<const link_map*>(found);
    char executable[PATH_MAX] = "";
    const char* origin = map.l_name;
    if (origin == nullptr || origin[0] == '\0') {
      const ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
      executable[length > 0 ? length : 0] = '\0';
      origin = executable;
    }
    for (const char* at = SearchPath(map); at != nullptr && *at != '\0';) {
      const char* stop = strchrnul(at, ':');
      char path[PATH_MAX];
      if (Expand(at, static_cast<std::size_t>(stop - at), origin, file, path, sizeof(path)) && access(path, R_OK) == 0) {
        if (void* handle = next(path, flags)) return handle;
      }
      at = *stop == ':' ? stop + 1 : stop;
    }
  }
  return next(file, flags);
}

int NextDlclose(void* handle) noexcept {
  static Dlclose next = nullptr;
  if (next == nullptr) next = reinterpret_cast<Dlclose>(dlsym(RTLD_NEXT, "dlclose"));
  return next(handle);
}

}  // namespace cuaudit::faults
