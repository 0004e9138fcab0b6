// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/probes/host_reading.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

// When a sanitizer is in the process, it owns the heap, and mallinfo2 returns zeros.
extern "C" __attribute__((weak)) std::size_t __sanitizer_get_current_allocated_bytes();

namespace cuaudit::faults {
namespace {

// A file of /proc, open as long as this object lives.
class ProcFile {
 public:
  explicit ProcFile(const char* path, int flags = O_RDONLY) noexcept : file_(open(path, flags | O_CLOEXEC)) {}
  ~ProcFile() {
    if (file_ >= 0) close(file_);
  }
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  bool valid() const noexcept { return file_ >= 0; }
  int get() const noexcept { return file_; }
  // Number of bytes read, 0 at the end, negative on an error.
  ssize_t Read(char* buffer, std::size_t bytes) const noexcept {
    ssize_t got = 0;
    do {
      got = read(file_, buffer, bytes);
    } while (got < 0 && errno == EINTR);
    return got;
  }

 private:
  int file_;
};

// The kernel counts the descriptor that is open for the reading itself, so it is subtracted. Since Linux 6.2 the size of the directory
// is the number of descriptors.
bool ReadDescriptors(std::uint64_t* value) noexcept {
  struct stat info = {};
  if (stat("/proc/thread-self/fd", &info) == 0 && info.st_size > 0) {
    *value = static_cast<std::uint64_t>(info.st_size);
    return true;
  }
  const ProcFile directory("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) return false;
  alignas(dirent64) char buffer[8192];
  std::uint64_t entries = 0;
  for (;;) {
    const long got = syscall(SYS_getdents64, directory.get(), buffer, sizeof(buffer));
    if (got < 0) return false;
    if (got == 0) break;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      if (entry->d_name[0] != '.') ++entries;
      at += entry->d_reclen;
    }
  }
  *value = entries - 1;
  return true;
}

// A directory has two links, and one more for each subdirectory. /proc/self/task has a subdirectory per thread.
bool ReadThreads(std::uint64_t* value) noexcept {
  struct stat info = {};
  if (stat("/proc/self/task", &info) != 0 || info.st_nlink < 3) return false;
  *value = static_cast<std::uint64_t>(info.st_nlink) - 2;
  return true;
}

bool ReadLoadedObjects(std::uint64_t* value) noexcept {
  std::uint64_t loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = info->dlpi_adds - info->dlpi_subs;
        return 1;  // the same for every object
      },
      &loaded);
  *value = loaded;
  return loaded != 0;
}

bool ReadHeap(std::uint64_t* value) noexcept {
  if (&__sanitizer_get_current_allocated_bytes != nullptr) {
    *value = __sanitizer_get_current_allocated_bytes();
    return true;
  }
  if (!HeapIsTheCLibrarys()) return false;
  const struct mallinfo2 info = mallinfo2();
  *value = info.uordblks + info.hblkhd;
  return true;
}

// /proc/thread-self/statm: "size resident shared ..." in pages. Shared pages belong to files: the program's code and the journal.
bool ReadPages(std::uint64_t* mapped, std::uint64_t* resident) noexcept {
  const ProcFile file("/proc/thread-self/statm");
  if (!file.valid()) return false;
  char text[128];
  const ssize_t length = file.Read(text, sizeof(text));
  std::uint64_t number[3] = {};
  std::size_t which = 0;
  for (ssize_t i = 0; i < length && which < 3; ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      number[which] = number[which] * 10 + static_cast<std::uint64_t>(text[i] - '0');
    } else {
      ++which;
    }
  }
  if (which < 3 || number[1] < number[2]) return false;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  *mapped = number[0] * page;
  *resident = (number[1] - number[2]) * page;
  return true;
}

bool ReadMappings(std::uint64_t* value) noexcept {
  const ProcFile file("/proc/thread-self/maps");
  if (!file.valid()) return false;
  char text[8192];
  std::uint64_t lines = 0;
  for (;;) {
    const ssize_t got = file.Read(text, sizeof(text));
    if (got < 0) return false;
    if (got == 0) break;
    lines += static_cast<std::uint64_t>(std::count(text, text + got, '\n'));
  }
  *value = lines;
  return true;
}

}  // namespace

// True when the program's malloc is the C library's, possibly wrapped by the host drop-in. mallinfo2 does not see any other allocator,
// so the heap would wrongly seem never to grow. In a program that takes the address of the C library's malloc, that address is an entry
// of the program's own procedure linkage table.
bool HeapIsTheCLibrarys() noexcept {
  static constinit std::atomic<int> known{0};
  int answer = known.load(std::memory_order_relaxed);
  if (answer == 0) {
    Dl_info info = {};
    void* symbol = nullptr;
    const void* const allocator = dlsym(RTLD_DEFAULT, "malloc");
    const bool found = allocator != nullptr && dladdr1(allocator, &info, &symbol, RTLD_DL_SYMENT) != 0;
    const char* const file = found && info.dli_fname != nullptr ? info.dli_fname : "";
    const bool entry = symbol != nullptr && static_cast<const ElfW(Sym)*>(symbol)->st_shndx == SHN_UNDEF;
    const bool known_file =
        strstr(file, "/libc.so") != nullptr || strstr(file, "/libc-2") != nullptr || strstr(file, "/libcuaudit_host.so") != nullptr;
    answer = entry || known_file ? 1 : -1;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == 1;
}

HostReading ReadHost(HostMeterSet wanted) noexcept {
  HostReading reading;
  const int saved = errno;
  const auto keep = [&](HostMeter meter, std::uint64_t value) {
    if (!wanted.Has(meter)) return;
    reading.value[static_cast<std::size_t>(meter)] = value;
    reading.read.Add(meter);
  };
  std::uint64_t value = 0;
  if (wanted.Has(HostMeter::HeapBytes) && ReadHeap(&value)) keep(HostMeter::HeapBytes, value);
  if (wanted.Has(HostMeter::Descriptors) && ReadDescriptors(&value)) keep(HostMeter::Descriptors, value);
  if (wanted.Has(HostMeter::Threads) && ReadThreads(&value)) keep(HostMeter::Threads, value);
  if (wanted.Has(HostMeter::LoadedObjects) && ReadLoadedObjects(&value)) keep(HostMeter::LoadedObjects, value);
  if (wanted.Has(HostMeter::ResidentBytes) || wanted.Has(HostMeter::MappedBytes)) {
    std::uint64_t mapped = 0;
    std::uint64_t resident = 0;
    if (ReadPages(&mapped, &resident)) {
      keep(HostMeter::MappedBytes, mapped);
      keep(HostMeter::ResidentBytes, resident);
    }
  }
  if (wanted.Has(HostMeter::Mappings) && ReadMappings(&value)) keep(HostMeter::Mappings, value);
  errno = saved;
  return reading;
}

}  // namespace cuaudit::faults
