// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "faults/python/layout.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/python/safe_memory.h"

namespace cuaudit::python {

namespace {

constexpr Layout k311 = {
    .first_interpreter = 40,
    .next_interpreter = 0,
    .first_thread = 16,
    .next_thread = 8,
    .thread_interpreter = 16,
    .thread_id = 152,
    .current = 56,
    .held = true,
    .held_frame = 8,
    .held_previous = 16,
    .code = 32,
    .previous = 48,
    .instruction = 56,
    .owner = 69,
    .last_of_call = 68,
    .filename = 112,
    .qualname = 128,
    .lines = 136,
    .first_line = 72,
    .instructions = 184,
    .text_length = 16,
    .text_state = 32,
    .text_kind_shift = 2,
    .ascii_characters = 48,
    .other_characters = 72,
    .bytes_size = 16,
    .bytes_content = 32,
};

constexpr Layout k312 = {
    .first_interpreter = 40,
    .next_interpreter = 0,
    .first_thread = 72,
    .next_thread = 8,
    .thread_interpreter = 16,
    .thread_id = 136,
    .current = 56,
    .held = true,
    .held_frame = 0,
    .held_previous = 8,
    .code = 0,
    .previous = 8,
    .instruction = 56,
    .owner = 70,
    .last_of_call = 0,
    .filename = 112,
    .qualname = 128,
    .lines = 136,
    .first_line = 68,
    .instructions = 192,
    .text_length = 16,
    .text_state = 32,
    .text_kind_shift = 2,
    .ascii_characters = 40,
    .other_characters = 56,
    .bytes_size = 16,
    .bytes_content = 32,
};

// The interpreter's own table, as 64-bit words from the start of _PyRuntime. Places that are the same in all versions that have it:
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kFreeThreaded = 2;
constexpr std::uint32_t kFirstInterpreter = 5;
constexpr std::uint32_t kNextInterpreter = 8;
constexpr std::uint32_t kFirstThread = 9;
constexpr std::uint32_t kWords = 60;
constexpr char kCookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

// First word of a group; the fields of a group keep their order.
struct Groups {
  std::uint32_t minor;
  std::uint32_t thread;  // size, previous, next, interpreter, current frame, id
  std::uint32_t frame;   // size, previous, executable, instruction, locals, owner
  std::uint32_t code;    // size, filename, name, qualname, lines, first line, ..., instructions
  std::uint32_t object;  // size, type
};
constexpr Groups kGroups[] = {{13, 19, 28, 34, 44}, {14, 22, 31, 39, 50}};

bool OfItself(const Groups& at, std::uint32_t version, std::uintptr_t runtime, SafeMemory* memory, Layout* layout) noexcept {
  std::uint64_t word[kWords];
  if (!memory->Read(runtime, static_cast<void*>(word), sizeof(word))) return false;
  if (memcmp(word, kCookie, sizeof(kCookie)) != 0 || word[kVersion] != version || word[kFreeThreaded] != 0) return false;
  // An object begins with its count of references and its type in builds that keep the headers as they are.
  if (word[at.object] != 16 || word[at.object + 1] != 8) return false;
  bool small = true;
  const auto offset = [&](std::uint32_t index, std::uint64_t limit) {
    small = small && word[index] < limit;
    return static_cast<std::uint32_t>(word[index]);
  };
  constexpr std::uint64_t kLarge = 1 << 20;
  constexpr std::uint64_t kInFrame = kFrameBytes - 8;
  *layout = k312;
  layout->first_interpreter = offset(kFirstInterpreter, kLarge);
  layout->next_interpreter = offset(kNextInterpreter, kLarge);
  layout->first_thread = offset(kFirstThread, kLarge);
  layout->next_thread = offset(at.thread + 2, kLarge);
  layout->thread_interpreter = offset(at.thread + 3, kLarge);
  layout->current = offset(at.thread + 4, kLarge);
  layout->thread_id = offset(at.thread + 5, kLarge);
  layout->held = false;
  layout->previous = offset(at.frame + 1, kInFrame);
  layout->code = offset(at.frame + 2, kInFrame);
  layout->instruction = offset(at.frame + 3, kInFrame);
  layout->owner = offset(at.frame + 5, kFrameBytes);
  layout->filename = offset(at.code + 1, kLarge);
  layout->qualname = offset(at.code + 3, kLarge);
  layout->lines = offset(at.code + 4, kLarge);
  layout->first_line = offset(at.code + 5, kLarge);
  layout->instructions = offset(at.code + 9, kLarge);
  return small;
}

}  // namespace

bool ChooseLayout(std::uint32_t version, std::uintptr_t runtime, SafeMemory* memory, Layout* layout) noexcept {
  constexpr std::uint32_t kCandidate = 0xc;  // alpha and beta versions may still change what the final one keeps
  if (version >> 24 != 3 || (version >> 4 & 0xf) < kCandidate) return false;
  const std::uint32_t minor = version >> 16 & 0xff;
  if (minor == 11 || minor == 12) {
    *layout = minor == 11 ? k311 : k312;
    return true;
  }
  for (const Groups& groups : kGroups) {
    if (groups.minor == minor) return OfItself(groups, version, runtime, memory, layout);
  }
  return false;
}

namespace {

std::uint32_t GnuHash(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

LoadedSymbols::LoadedSymbols(const dl_phdr_info& object) noexcept : base_(object.dlpi_addr) {
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the object
    if (object.dlpi_phdr[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(base_ + object.dlpi_phdr[i].p_vaddr);
  }
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // glibc relocates these entries in place, but not where the section is read-only, as in the vDSO.
    const std::uintptr_t address = entry->d_un.d_ptr < base_ ? base_ + entry->d_un.d_ptr : entry->d_un.d_ptr;
    const void* const table = reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
    if (entry->d_tag == DT_GNU_HASH) hash_ = static_cast<const std::uint32_t*>(table);
    if (entry->d_tag == DT_SYMTAB) symbols_ = table;
    if (entry->d_tag == DT_STRTAB) names_ = static_cast<const char*>(table);
  }
}

std::uintptr_t LoadedSymbols::Find(const char* name) const noexcept {
  if (hash_ == nullptr || symbols_ == nullptr || names_ == nullptr) return 0;
  const std::uint32_t buckets = hash_[0];
  const std::uint32_t first_hashed = hash_[1];
  const std::uint32_t words = hash_[2];
  const std::uint32_t shift = hash_[3];
  if (buckets == 0 || words == 0) return 0;
  const auto* const filter = reinterpret_cast<const ElfW(Addr)*>(hash_ + 4);
  const auto* const bucket = reinterpret_cast<const std::uint32_t*>(filter + words);
  const std::uint32_t* const chain = bucket + buckets;
  const auto* const symbols = static_cast<const ElfW(Sym)*>(symbols_);
  const std::uint32_t hash = GnuHash(name);
  constexpr std::uint32_t kBits = 8 * sizeof(ElfW(Addr));
  const ElfW(Addr) bits = (ElfW(Addr){1} << hash % kBits) | (ElfW(Addr){1} << (hash >> shift) % kBits);
  if ((filter[hash / kBits % words] & bits) != bits) return 0;
  std::uint32_t at = bucket[hash % buckets];
  if (at < first_hashed) return 0;
  for (;; ++at) {
    const std::uint32_t held = chain[at - first_hashed];
    const bool same = (held | 1) == (hash | 1) && symbols[at].st_shndx != SHN_UNDEF && strcmp(names_ + symbols[at].st_name, name) == 0;
    if (same) return base_ + symbols[at].st_value;
    if ((held & 1) != 0) return 0;
  }
}

namespace {

constexpr std::size_t kTypeAt = 8;  // in every object
constexpr std::uint32_t kMostBytes = 4;

// Appends the character in UTF-8. A surrogate stands for a byte that is no text, and becomes a question mark.
std::size_t Append(std::uint32_t character, char* to) noexcept {
  const auto part = [character](unsigned shift) { return static_cast<char>(0x80 | ((character >> shift) & 0x3f)); };
  if (character < 0x80) {
    to[0] = static_cast<char>(character);
    return 1;
  }
  if (character < 0x800) {
    to[0] = static_cast<char>(0xc0 | character >> 6);
    to[1] = part(0);
    return 2;
  }
  if ((character >= 0xd800 && character < 0xe000) || character > 0x10ffff) {
    to[0] = '?';
    return 1;
  }
  if (character < 0x10000) {
    to[0] = static_cast<char>(0xe0 | character >> 12);
    to[1] = part(6);
    to[2] = part(0);
    return 3;
  }
  to[0] = static_cast<char>(0xf0 | character >> 18);
  to[1] = part(12);
  to[2] = part(6);
  to[3] = part(0);
  return 4;
}

}  // namespace

bool CopyText(SafeMemory* memory, const Layout& layout, std::uintptr_t type, std::uintptr_t text, char* to, std::size_t room) noexcept {
  std::uintptr_t held = 0;
  std::uint64_t length = 0;
  std::uint32_t state = 0;
  if (text == 0 || !memory->Read(text + kTypeAt, &held) || held != type) return false;
  if (!memory->Read(text + layout.text_length, &length) || !memory->Read(text + layout.text_state, &state)) return false;
  const std::uint32_t width = (state >> layout.text_kind_shift) & 7;
  const bool compact = ((state >> (layout.text_kind_shift + 3)) & 1) != 0;
  const bool ascii = ((state >> (layout.text_kind_shift + 4)) & 1) != 0;
  if (!compact || (width != 1 && width != 2 && width != 4) || length > (std::uint64_t{1} << 32)) return false;
  const std::uint64_t most = (room - 1) / (ascii ? 1 : width == 1 ? 2 : width == 2 ? 3 : kMostBytes);
  const std::uint64_t count = length < most ? length : most;
  std::uintptr_t from = text + (ascii ? layout.ascii_characters : layout.other_characters) + (length - count) * width;
  std::size_t written = 0;
  if (ascii) {
    if (!memory->Read(from, to, count)) return false;
    written = count;
  } else {
    for (std::uint64_t i = 0; i < count; ++i, from += width) {
      std::uint32_t character = 0;  // least significant byte first, as this machine has them
      if (!memory->Read(from, &character, width)) return false;
      written += Append(character, to + written);
    }
  }
  to[written] = '\0';
  return true;
}

SafeMemory::SafeMemory() noexcept : errno_(errno) {}
SafeMemory::~SafeMemory() { errno = errno_; }

bool SafeMemory::Read(std::uintptr_t from, void* to, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  const std::uintptr_t last = from + bytes - 1;
  if (last < from) return false;
  for (std::uintptr_t page = from & ~(kPage - 1);; page += kPage) {
    if (!Readable(page)) return false;
    if (page == (last & ~(kPage - 1))) break;
  }
  memcpy(to, reinterpret_cast<const void*>(from), bytes);  // NOLINT(performance-no-int-to-ptr)
  return true;
}

bool SafeMemory::Readable(std::uintptr_t page) noexcept {
  const std::size_t kept = known_ < kPages ? known_ : kPages;
  for (std::size_t i = 0; i < kept; ++i) {
    if (page_[i] == page) return true;
  }
  constexpr int kNoRequest = -1;
  constexpr std::size_t kMaskBytes = 8;
  if (page == 0 || syscall(SYS_rt_sigprocmask, kNoRequest, page, nullptr, kMaskBytes) == 0 || errno != EINVAL) return false;
  page_[known_++ % kPages] = page;
  return true;
}

}  // namespace cuaudit::python
