// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/driver/genuine_driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/driver/call_shape.h"

namespace cuaudit::driver {
namespace {

constexpr const char* kSoname = "libcuda.so.1";
constexpr const char* kOtherDirectories[] = {"/usr/local/nvidia/lib64",
                                             "/usr/local/nvidia/lib",
                                             "/usr/lib/wsl/lib",
                                             "/usr/lib/x86_64-linux-gnu",
                                             "/usr/lib/aarch64-linux-gnu",
                                             "/usr/lib64",
                                             "/usr/lib"};
constexpr char kCacheMagic[] = "glibc-ld.so.cache1.1";

#if defined(__x86_64__)
constexpr int32_t kCacheFlags = 0x0303;
#elif defined(__aarch64__)
constexpr int32_t kCacheFlags = 0x0a03;
#else
#error "unknown architecture in the loader cache"
#endif

struct CacheHeader {
  char magic[20];
  uint32_t count;
  uint32_t string_bytes;
  uint8_t flags;
  uint8_t padding[3];
  uint32_t extension_offset;
  uint32_t unused[3];
};
static_assert(sizeof(CacheHeader) == 48);

struct CacheEntry {
  int32_t flags;
  uint32_t name;
  uint32_t path;
  uint32_t os_version;
  uint64_t hwcap;
};
static_assert(sizeof(CacheEntry) == 24);

bool SameFile(const char* path, const char* other) noexcept {
  struct stat a;
  struct stat b;
  return other != nullptr && stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool Accept(const char* candidate, const char* exclude, char* path, size_t capacity) noexcept {
  char resolved[PATH_MAX];
  if (realpath(candidate, resolved) == nullptr || SameFile(resolved, exclude)) return false;
  struct stat info;
  if (stat(resolved, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const size_t length = strlen(resolved);
  if (length >= capacity) return false;
  memcpy(path, resolved, length + 1);
  return true;
}

bool AcceptIn(const char* directory, const char* exclude, char* path, size_t capacity) noexcept {
  char candidate[PATH_MAX];
  const size_t length = strlen(directory);
  if (length == 0 || length + 1 + strlen(kSoname) >= sizeof(candidate)) return false;
  memcpy(candidate, directory, length);
  candidate[length] = '/';
  strcpy(candidate + length + 1, kSoname);
  return Accept(candidate, exclude, path, capacity);
}

bool FindInSearchDirectories(const char* exclude, char* path, size_t capacity) noexcept {
  void* self = dlopen(nullptr, RTLD_LAZY);
  if (self == nullptr) return false;
  Dl_serinfo size;
  bool found = false;
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0 && size.dls_size < (size_t{1} << 20)) {
    void* memory = mmap(nullptr, size.dls_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
      Dl_serinfo* list = static_cast<Dl_serinfo*>(memory);
      if (dlinfo(self, RTLD_DI_SERINFOSIZE, list) == 0 && dlinfo(self, RTLD_DI_SERINFO, list) == 0) {
        for (unsigned i = 0; i < list->dls_cnt && !found; ++i) found = AcceptIn(list->dls_serpath[i].dls_name, exclude, path, capacity);
      }
      munmap(memory, size.dls_size);
    }
  }
  dlclose(self);
  return found;
}

bool FindInCacheFile(const char* exclude, char* path, size_t capacity) noexcept {
  const int file = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat info;
  bool found = false;
  if (fstat(file, &info) == 0 && info.st_size > 0) {
    const size_t size = static_cast<size_t>(info.st_size);
    void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
      const char* cached = FindInLoaderCache(bytes, size, kSoname);
      found = cached != nullptr && Accept(cached, exclude, path, capacity);
      munmap(bytes, size);
    }
  }
  close(file);
  return found;
}

}  // namespace

const char* FindInLoaderCache(const void* bytes, size_t size, const char* soname) noexcept {
  const char* file = static_cast<const char*>(bytes);
  const size_t magic_bytes = sizeof(kCacheMagic) - 1;
  // An old-format table may come first. The new table starts at its own magic, which is aligned to eight bytes.
  size_t start = 0;
  while (start + sizeof(CacheHeader) <= size && memcmp(file + start, kCacheMagic, magic_bytes) != 0) start += 4;
  if (start + sizeof(CacheHeader) > size) return nullptr;
  CacheHeader header;
  memcpy(&header, file + start, sizeof(header));
  const char* base = file + start;
  const size_t available = size - start;
  if (header.count > (available - sizeof(header)) / sizeof(CacheEntry)) return nullptr;
  for (uint32_t i = 0; i < header.count; ++i) {
    CacheEntry entry;
    memcpy(&entry, base + sizeof(header) + i * sizeof(CacheEntry), sizeof(entry));
    if (entry.flags != kCacheFlags || entry.name >= available || entry.path >= available) continue;
    const size_t name_room = available - entry.name;
    const size_t path_room = available - entry.path;
    if (strnlen(base + entry.name, name_room) == name_room || strnlen(base + entry.path, path_room) == path_room) continue;
    if (strcmp(base + entry.name, soname) == 0) return base + entry.path;
  }
  return nullptr;
}

bool FindGenuineDriver(const char* exclude, char* path, size_t capacity) noexcept {
  if (FindInSearchDirectories(exclude, path, capacity) || FindInCacheFile(exclude, path, capacity)) return true;
  for (const char* directory : kOtherDirectories) {
    if (AcceptIn(directory, exclude, path, capacity)) return true;
  }
  return false;
}

namespace {

template <CallId id, typename Function>
struct Forward;

template <CallId id, typename... P>
struct Forward<id, CUresult(P...)> {
  static CUresult Call(void* self, P... arguments) {
    void* symbol = static_cast<GenuineDriver*>(self)->symbol[Index(id)];
    if (symbol == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return reinterpret_cast<CUresult (*)(P...)>(symbol)(arguments...);
  }
};

// The addresses of functions are link-time constants, so the table needs no constructor.
const DriverTable kTable = {{
#define CUAUDIT_CALL(id, base, version, per_thread) reinterpret_cast<Entry>(&Forward<CallId::id, CallType<CallId::id>::Function>::Call),
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                            },
                            {
#define CUAUDIT_CALL(id, base, version, per_thread) true,
#include "driver_calls.inc"
#undef CUAUDIT_CALL
                            }};

}  // namespace

const char* OpenGenuineDriver(const char* path, GenuineDriver* driver) noexcept {
  if (path == nullptr || path[0] != '/') return "the genuine driver is opened by absolute path";
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "the dynamic loader refused the genuine driver";
  for (std::size_t i = 0; i < kCallCount; ++i) driver->symbol[i] = dlsym(handle, kCalls[i].symbol.data());
  if (driver->symbol[Index(CallId::Init)] == nullptr) {
    dlclose(handle);
    return "the file has no cuInit: not a CUDA driver";
  }
  driver->handle = handle;
  return nullptr;
}

DriverRef Driver(GenuineDriver* driver) noexcept { return {&kTable, driver}; }

std::size_t FindSymbol(const GenuineDriver& driver, const void* address) noexcept {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    if (driver.symbol[i] == address && address != nullptr) return i;
  }
  return kCallCount;
}

}  // namespace cuaudit::driver
