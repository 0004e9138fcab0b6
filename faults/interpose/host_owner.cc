// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

#include <atomic>

#include "faults/interpose/host_callers.h"
#include "faults/interpose/host_state.h"

namespace cuaudit::faults {
namespace {

struct Range {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  bool Has(std::uintptr_t address) const noexcept { return address - start < end - start; }
};

constinit Range c_library;
constinit Range loader;
constinit Range sanitizer;  // gcc's sanitizers are libraries; clang's are part of the program
constinit Range own;

constinit std::atomic<BlockOwner> owners[kMaxStacks + 1] = {};

// Functions of the C library whose caller must free what they allocate, without the leading underscores of their aliases.
// clang-format off
constexpr const char* kHandsOut[] = {
    "strdup", "strndup", "wcsdup", "asprintf", "vasprintf", "asprintf_chk", "vasprintf_chk", "getline", "getdelim", "realpath",
    "realpath_chk", "canonicalize_file_name", "getcwd", "getcwd_chk", "get_current_dir_name", "open_memstream", "open_wmemstream",
    "fmemopen", "fdopen", "IO_fdopen", "fopencookie", "scandir", "scandir64", "glob", "glob64", "if_nameindex", "getifaddrs",
    "posix_spawn_file_actions_addopen", "posix_spawn_file_actions_adddup2", "posix_spawn_file_actions_addclose", "hcreate_r",
    "tsearch", "argz_create", "argz_add", "envz_add", "fts_open", "fts64_open", "isoc99_sscanf", "isoc99_fscanf", "isoc99_scanf",
    "isoc99_vsscanf", "isoc99_vfscanf", "tempnam", "backtrace_symbols", "obstack_begin", "obstack_newchunk", "reallocarray",
    "setmntent", "opendir", "fdopendir", "fopen", "IO_fopen", "fopen64", "regcomp"};
// Functions that also fill caches. Only blocks that they allocate in their own code belong to the caller.
constexpr const char* kHandsOutItself[] = {"newlocale", "duplocale", "getaddrinfo", "wordexp", "sem_open", "mq_open", "timer_create"};
// clang-format on

// Functions that allocate for dlerror. Their blocks belong to the library, whoever called.
constexpr const char* kLoads[] = {"dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym", "dlerror"};

template <std::size_t count>
bool IsOneOf(const char* const (&names)[count], const char* name) noexcept {
  while (*name == '_') ++name;
  for (const char* const one : names) {
    if (strcmp(name, one) == 0) return true;
  }
  return false;
}

// Prefix of the name of a sanitizer's interceptor; the name of the intercepted function follows.
constexpr char kInterceptor[] = "interceptor_";
const char* WithoutInterceptor(const char* name) noexcept {
  const char* bare = name;
  while (*bare == '_') ++bare;
  return strncmp(bare, kInterceptor, sizeof(kInterceptor) - 1) == 0 ? bare + sizeof(kInterceptor) - 1 : name;
}
bool IsAllocator(const char* name) noexcept {
  for (const char* const one : {"malloc", "calloc", "realloc", "posix_memalign", "memalign", "aligned_alloc", "valloc"}) {
    if (strcmp(WithoutInterceptor(name), one) == 0) return true;
  }
  return false;
}

// True when a sanitizer asks for the stack range of a starting thread. It frees the answer soon; until then the block belongs to the
// thread.
bool AsksForItsStack(const char* name) noexcept {
  while (*name == '_') ++name;
  return HeapIsASanitizers() && strcmp(name, "pthread_getattr_np") == 0;
}

struct Walk {
  static constexpr std::size_t kMost = 40;
  std::uintptr_t address[kMost];
  std::size_t count = 0;
};

_Unwind_Reason_Code Step(_Unwind_Context* context, void* state) {
  Walk& walk = *static_cast<Walk*>(state);
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  walk.address[walk.count++] = address - 1;
  return walk.count == Walk::kMost ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// Name of the exported function that contains the address; null for a hidden function.
const char* NameAt(std::uintptr_t address) noexcept {
  Dl_info info;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of code
  return dladdr(reinterpret_cast<void*>(address), &info) == 0 ? nullptr : info.dli_sname;
}

BlockOwner Decide() noexcept {
  Walk walk;
  _Unwind_Backtrace(&Step, &walk);
  const auto in_library = [](std::uintptr_t address) { return c_library.Has(address) || loader.Has(address); };
  std::size_t at = 0;
  while (at < walk.count && own.Has(walk.address[at])) ++at;
  if (sanitizer.end != 0) {
    // gcc's interceptor for strdup allocates itself, so no frame of the C library follows.
    while (at < walk.count && sanitizer.Has(walk.address[at])) ++at;
  } else {
    // clang's interceptors lie in the program. The last of these frames is the one for the allocating function.
    constexpr std::size_t kSanitizerFrames = 8;
    for (std::size_t i = at; i < walk.count && i < at + kSanitizerFrames && !in_library(walk.address[i]); ++i) {
      const char* const name = NameAt(walk.address[i]);
      if (name == nullptr || !IsAllocator(name)) continue;
      at = i + 1;
      break;
    }
  }
  const std::size_t first = at;
  bool loads = false;
  for (; at < walk.count && in_library(walk.address[at]); ++at) loads = loads || loader.Has(walk.address[at]);
  if (at == first) return BlockOwner::Program;
  if (loads) return BlockOwner::Loader;
  const char* name = NameAt(walk.address[at - 1]);
  // Called through one of this library's wrappers. The other wrapped functions hand memory out.
  if (at < walk.count && own.Has(walk.address[at])) {
    return name != nullptr && IsOneOf(kLoads, name) ? BlockOwner::Library : BlockOwner::Program;
  }
  if (at < walk.count) {
    const char* const caller = NameAt(walk.address[at]);
    const bool stands_in = caller != nullptr && (sanitizer.Has(walk.address[at]) || WithoutInterceptor(caller) != caller);
    if (stands_in || (caller != nullptr && IsOneOf(kHandsOut, caller))) name = WithoutInterceptor(caller);
  }
  if (name == nullptr) return BlockOwner::Library;
  if (AsksForItsStack(name)) return BlockOwner::Loader;
  const bool itself = at == first + 1 && IsOneOf(kHandsOutItself, name);
  return itself || IsOneOf(kHandsOut, name) ? BlockOwner::Program : BlockOwner::Library;
}

int Visit(dl_phdr_info* info, std::size_t, void*) noexcept {
  Range code;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    code = {info->dlpi_addr + header.p_vaddr, info->dlpi_addr + header.p_vaddr + header.p_memsz};
  }
  const char* const slash = info->dlpi_name == nullptr ? nullptr : strrchr(info->dlpi_name, '/');
  const char* const file = slash == nullptr ? "" : slash + 1;
  const auto is = [file](const char* prefix) { return strncmp(file, prefix, strlen(prefix)) == 0; };
  if (is("libc.so") || is("libc-2")) c_library = code;
  if (is("ld-linux") || is("ld-2")) loader = code;
  if (is("libasan") || is("liblsan") || is("libtsan")) sanitizer = code;
  if (code.Has(reinterpret_cast<std::uintptr_t>(&FindCodeRanges))) own = code;
  return 0;
}

constexpr std::uintptr_t kStdioBufferCode = 512;  // the function is about 200 bytes long

constinit std::uintptr_t stdio_buffers = 0;

// Runs before main, and so before the result is needed.
__attribute__((constructor)) void FindStdioBuffers() {
  stdio_buffers = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_NEXT, "_IO_file_doallocate"));
}

}  // namespace

void FindCodeRanges() noexcept { dl_iterate_phdr(&Visit, nullptr); }

std::uint16_t OwnerFlags(const void* caller, std::uint32_t stack) noexcept {
  Quiet quiet;
  const BlockOwner owner = OwnerOf(caller, stack);
  std::uint16_t flags = 0;
  const bool of_stdio = reinterpret_cast<std::uintptr_t>(caller) - stdio_buffers < kStdioBufferCode;
  if (owner == BlockOwner::Library || of_stdio) flags |= kKeptByLibrary;
  if (owner == BlockOwner::Loader) flags |= kPartOfOther;
  return flags;
}

BlockOwner OwnerOf(const void* caller, std::uint32_t stack) noexcept {
  if (stack == 0 || stack > kMaxStacks) return BlockOwner::Unknown;
  const auto from = reinterpret_cast<std::uintptr_t>(caller);
  if (caller != nullptr && !c_library.Has(from) && !loader.Has(from)) return BlockOwner::Program;
  const BlockOwner known = owners[stack].load(std::memory_order_relaxed);
  if (known != BlockOwner::Unknown) return known;
  const BlockOwner owner = Decide();
  owners[stack].store(owner, std::memory_order_relaxed);
  return owner;
}

}  // namespace cuaudit::faults
